package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/launch"
	"hightide/internal/mem"
)

// A process that ran before anybody looked is recorded as one of ours is, with three differences. It is sent no
// signal and goes on where the recording ends first. How it ended is known only where the kernel tells. And of what
// was before there are the kernel's mark and nothing else.

// Recording says that a Target is recorded. By its variables the helpers in the process and in its children find the
// recording: PYTHONPATH and LD_PRELOAD, where they are, go in front of what those are there.
type Recording struct {
	Channels string
	Env      map[string]string
}

func (l *loop) tellRecording() {
	if l.opts.Begun == nil {
		return
	}
	vars := l.opts.channelVars(l.opts.Channels)
	for _, entry := range launch.Environment(nil, l.opts.Helpers, nil) {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	err := l.opts.Begun(Recording{l.opts.Channels, vars})
	switch {
	case err != nil:
		l.emit(mem.Event{Time: l.now(), Kind: "unobserved",
			Text: fmt.Sprintf("the inside of process %d: the agent could not be brought in: %v", l.child.PID, err)})
	case l.opts.Brings:
		l.asksIn = true
	}
}

// neverCame says at the end that the agent was asked in and the process ran no line of Python that could have taken
// it in.
func (l *loop) neverCame() {
	if p := l.byPID[l.child.PID]; l.asksIn && (p == nil || !p.hello) {
		l.emit(mem.Event{Time: l.now(), Kind: "unobserved",
			Text: fmt.Sprintf("the inside of process %d: the agent was asked in, and came not: "+
				"its main thread ran no line of Python until the recording ended", l.child.PID)})
	}
}

// begun notes what is recorded, and of a process that ran before since when it did.
func (r *Recorder) begun() {
	t := r.opts.Target
	if t == nil {
		r.emit(mem.Event{Time: r.now(), Kind: "start", Text: mem.CommandLine(r.info.Command)})
		return
	}
	age := max(r.info.StartMono-r.began(t.StartTicks), 0)
	r.emit(mem.Event{Time: r.now(), Kind: "attach", Facts: facts("why_not_inside", t.Foreign),
		Numbers: map[string]int64{"age_ns": age},
		Text: fmt.Sprintf("process %d, %s, had run for %v", t.PID, mem.CommandLine(r.info.Command),
			time.Duration(age).Round(time.Second))})
}

// ranBefore keeps the kernel's mark of a process from before the recording.
func (r *Recorder) ranBefore(p *process, mark mem.Optional) {
	if bytes, ok := mark.Get(); ok && p.earlier == 0 {
		p.earlier = bytes
		p.PeakBefore, p.dirty = mem.Some(bytes), true
	}
}

// leaveFile in the folder of channels asks for the end of the recording of a process that goes on.
const leaveFile = "stop"

func (l *loop) askedToLeave() bool {
	_, err := os.Lstat(filepath.Join(l.opts.Channels, leaveFile))
	return err == nil
}

// leave ends the recording of a process that goes on.
func (l *loop) leave() Outcome {
	l.child.Ended()
	l.sampler.Last(l.now())
	l.scan()
	l.drainAll()
	for _, p := range l.order {
		l.tellSilent(p)
	}
	return l.close(l.now(), Outcome{Stopped: true}, "left")
}
