package observe

import (
	"fmt"
	"syscall"
	"time"

	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/system"
)

// finish records the end. Processes that the command leaves behind are given a moment: workers end
// when they notice.
func (l *loop) finish(last launch.Change, ok bool) Outcome {
	l.child.Ended()
	end := l.now()
	var outcome Outcome
	if ok {
		outcome.ExitCode, outcome.Signal = status(last.Status)
	}
	outcome.Stopped = l.hard > 0 || l.stopping && outcome.ExitCode == mem.Some(0)
	for wait := 0; wait < 8; wait++ {
		if wait == 0 {
			l.sampler.Last(end) // what is read now was so at the latest then
			if l.hard > 0 {
				l.stopRest()
			}
		} else {
			l.sampler.Tick(l.now())
		}
		l.scan()
		l.drainAll()
		if len(l.sampler.Processes()) == 0 {
			break
		}
		if Followed(l.sink) {
			l.flush(false)
		}
		time.Sleep(25 * time.Millisecond)
	}
	l.mainEnded(last, ok, end, outcome)
	if !outcome.Stopped {
		l.leftRunning()
	}
	l.endConfined(end)
	return l.close(end, outcome, reason(outcome))
}

// leftRunning names the processes that live on, as what a shell starts with & does: a figure of the run is without them.
func (l *loop) leftRunning() {
	for _, p := range l.order { // also those that only spoke, and were not read yet
		if p.PID != l.child.PID && p.Role != mem.RoleAside && !p.gone && launch.Alive(p.key.pid, p.key.start) {
			l.emit(mem.Event{Time: l.now(), Process: p.ID, Kind: "unobserved", Text: fmt.Sprintf("process %d, %s: it went "+
				"on after the command had ended; wait for it in the command, or record it with `hightide attach %d`", p.PID,
				mem.CommandLine(p.Command), p.PID)})
		}
	}
}

// close ends the recording. Processes that live on are unobserved from here.
func (l *loop) close(end int64, outcome Outcome, reason string) Outcome {
	for _, p := range l.order {
		if len(p.channels) > 0 {
			l.drain(p, false)
			l.release(p, l.now())
		}
	}
	l.alertsNever()
	l.neverCame()
	l.flush(true)
	l.emit(mem.End{Time: end, ExitCode: outcome.ExitCode, Signal: outcome.Signal, Reason: reason})
	if l.fail == nil {
		l.fail = l.sink.Flush()
	}
	outcome.Sink = l.fail
	return outcome
}

// mainEnded notes how the command's own process ended.
func (l *loop) mainEnded(last launch.Change, ok bool, end int64, outcome Outcome) {
	p := l.byPID[l.child.PID]
	if p == nil { // gone before the first look
		p = l.process(procKey{l.child.PID, 0})
		p.Command, p.Role = l.info.Command, "main"
	}
	l.ended(p, end)
	p.End, p.ExitCode, p.Signal = mem.Some(end), outcome.ExitCode, outcome.Signal
	if ok {
		l.highWater(last.MaxRSS())
	}
	l.alertMarks(p, end)
	if outcome.Signal.Known() {
		l.crashed(p, end)
	}
	event := mem.Event{Time: end, Process: p.ID, Kind: "exit", Text: "it ended; how is not known here"}
	if code, ok := outcome.ExitCode.Get(); ok {
		event.Text = fmt.Sprintf("exit code %d", code)
	}
	if signal, ok := outcome.Signal.Get(); ok {
		event.Text = "ended by " + system.SignalName(syscall.Signal(signal))
	}
	l.emit(event)
	if code, _ := outcome.ExitCode.Get(); outcome.Signal.Or(0) == int64(syscall.SIGKILL) || code == 137 {
		l.killedByKernel(p, end)
	}
}

// crashed tells where a process was when a fatal signal ended it.
func (r *Recorder) crashed(p *process, at int64) {
	if found := p.crash; found != nil {
		r.emit(mem.Event{Time: at, Process: p.ID, Kind: "exception", Text: found.text, Where: found.where,
			Facts: facts("class", system.SignalName(found.signal))})
	}
}

// endConfined tells how it went with the limit on memory, and gives the group back.
func (l *loop) endConfined(end int64) {
	if l.confined == nil {
		return
	}
	l.emit(l.confined.outcome(end))
	if err := l.confined.release(); err != nil {
		l.log(0, fmt.Sprintf("the control group is left, as somebody is still in it: %v", err))
	}
}

// killedByKernel tells an OOM kill from any other SIGKILL: the control group counted one.
func (l *loop) killedByKernel(p *process, end int64) {
	if l.kills == 0 {
		return
	}
	event := mem.Event{Time: end, Process: p.ID, Kind: "kill", Bytes: p.rss, Facts: facts("source", "kernel"),
		Text: fmt.Sprintf("killed by the kernel: the control group ran out of memory (its count of such kills rose by %d)",
			l.kills)}
	l.emit(event)
}

func status(s syscall.WaitStatus) (code, signal mem.Optional) {
	if s.Signaled() {
		return mem.Optional{}, mem.Some(int64(s.Signal()))
	}
	return mem.Some(int64(s.ExitStatus())), mem.Optional{}
}

func reason(o Outcome) string {
	switch {
	case o.Stopped:
		return "stopped"
	case o.Signal.Known():
		return "signal"
	case !o.ExitCode.Known():
		return "gone" // a stranger's process: nobody told us how
	}
	return "exit"
}
