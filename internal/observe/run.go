package observe

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hightide/internal/event"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// Outcome is how the command ended.
type Outcome struct {
	ExitCode mem.Optional
	Signal   mem.Optional
	Stopped  bool  // as it was asked to, by Steps, Duration or the context: in good order, or by the signal that followed
	Sink     error // why the recording is incomplete, where it is
}

// Run starts the command, records it until it ends and returns how it did. Errors are those of
// starting: *launch.Error, or that the channel folder cannot be made. A failing sink is not an error:
// the command goes on, unrecorded.
//
// Once ctx is cancelled the command is asked to stop, as after --duration: by its agent, and with SIGTERM
// once the grace period is over. Of a Target it is the recording that ends, see attached.go.
func Run(ctx context.Context, opts *Options, sink Sink) (Outcome, error) {
	vendors := opts.Devices
	if vendors == nil {
		vendors = sampler.OpenVendors("/")
	}
	l, err := startCommand(ctx, opts, vendors, sink)
	if err != nil {
		for _, v := range vendors {
			v.Close()
		}
		return Outcome{}, err
	}
	defer l.shared.Close()
	defer l.child.Close()
	return l.run(ctx), nil
}

// startCommand starts the command. Where that fails it leaves nothing behind but the vendors, which are the caller's until
// then.
func startCommand(ctx context.Context, opts *Options, vendors []sampler.Vendor, sink Sink) (*loop, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var program launch.Program
	if opts.Target == nil {
		found, err := launch.Find(opts.Command[0], opts.Env)
		if err != nil {
			return nil, err
		}
		program = found
	}
	shared, full, err := holdSomewhere(opts)
	if err != nil {
		return nil, err
	}
	r := newRecorder(opts, sink)
	r.info = identify(opts, vendors)
	r.emit(r.info)
	r.flush(false) // killed at once, the recording still says whose it is
	if full != nil {
		r.log(0, fmt.Sprintf("what programs report goes over the disk: %v", full))
	}
	r.confine()
	child, err := r.child(program)
	if err != nil {
		_ = r.confined.release()
		shared.Close()
		return nil, err
	}
	shared.leads(child.PID)
	r.alertsWithout(vendors)
	r.begun()
	return &loop{Recorder: r, shared: shared, child: child, git: make(chan *mem.Git, 1), vendors: vendors}, nil
}

// confine prepares the limit on the command's memory.
func (r *Recorder) confine() {
	if r.opts.Target != nil {
		return
	}
	r.confined = confine(r.opts.Memory)
	if r.confined.by() == nil {
		return
	}
	r.killed = 0
	r.opts.Runtime.Group = r.confined.within()
	r.info.Host.Limit = mem.Some(min(r.info.Host.Limit.Or(r.confined.limit), r.confined.limit))
	r.emit(r.info)
}

// leaderID is the number of the command's own process; 0: it was not seen yet.
func (l *loop) leaderID() uint32 {
	if p := l.byPID[l.child.PID]; p != nil {
		return p.ID
	}
	return 0
}

// child starts the command, or takes the process that runs already.
func (r *Recorder) child(program launch.Program) (*launch.Child, error) {
	if r.opts.Target != nil {
		return r.opts.Target.Attach(&r.opts.Runtime), nil
	}
	env := launch.Environment(r.opts.Env, r.fitting(program), r.opts.channelVars(r.opts.Channels))
	return program.Start(r.opts.Command, env, &r.opts.Runtime)
}

// holdSomewhere makes the folder of channels; where shared memory is full, among the run's files. full is why.
func holdSomewhere(opts *Options) (shared *Shared, full, err error) {
	shared, full = Hold(opts.Channels, opts.ID, opts.OutDir)
	if full == nil || opts.OutDir == "" {
		return shared, nil, full
	}
	other := SharedPath(filepath.Join(opts.OutDir, "channels"), opts.ID)
	if shared, err = Hold(other, opts.ID, opts.OutDir); err != nil {
		return nil, nil, full
	}
	opts.Channels = other
	return shared, full, nil
}

// fitting leaves out the libraries that cannot be preloaded into the command, and says so.
func (r *Recorder) fitting(program launch.Program) []launch.Helper {
	helpers := make([]launch.Helper, 0, len(r.opts.Helpers))
	for _, h := range r.opts.Helpers {
		if h.Preload != "" && program.Refuse != "" {
			r.emit(mem.Event{Time: r.now(), Kind: "unobserved", Text: fmt.Sprintf("%s of %s: %s", h.Name, program.Image,
				program.Refuse),
				Facts: facts("helper", h.Name, "program", program.Image, "why", program.Refuse)})
			h.Preload, h.Env = "", nil
		}
		helpers = append(helpers, h)
	}
	return helpers
}

// loop is the part of a Recorder that knows the clock.
type loop struct {
	*Recorder
	shared  *Shared
	child   *launch.Child
	git     chan *mem.Git
	sampler sampler.Watch
	vendors []sampler.Vendor

	nextSample, nextFlush, nextStatus, nextSlow int64
	flushed                                     int64 // when it was last done
	followed                                    bool  // by a reader, at the last visit
	nextVisit                                   int64 // before it there is no more to do than a look at what grows
	deadline                                    int64 // when to ask for the stop; 0: never
	asked                                       int64 // when it was last told to stop; 0: never
	hard                                        int   // how hard: 0 its agents were asked, 1 SIGTERM, 2 SIGKILL
	leaving                                     bool  // the recording is to end, and the process to go on
	asksIn                                      bool  // the agent was asked into a stranger's process
}

// The time between two visits of the channels. Every waking up costs, most of it in the kernel, and a
// full ring drops records (the agent's holds a few thousand edges): where one fills up, visits come closer.
const (
	visitEvery     = int64(100 * time.Millisecond)
	visitBusyEvery = int64(25 * time.Millisecond)
	hurriedEvery   = int64(25 * time.Millisecond) // between samples while processes appear, or the tree grows fast
	lookEvery      = int64(10 * time.Millisecond) // at a process that grows fast: it may be killed for that

	// Somebody reads along: what a program told is to be there within 200 ms, of which a follower takes up to 40.
	visitFollowedEvery = int64(50 * time.Millisecond)
)

func (l *loop) run(ctx context.Context) Outcome {
	l.sampler = sampler.Open(sampler.Options{Leader: l.child.PID, WatchLeader: true, Running: l.child.Stranger,
		Interval: l.opts.interval(), Vendors: l.vendors, Group: l.confined.by(), Table: l.opts.Table,
		Members: l.child.Members}, watcher{l.Recorder})
	defer l.sampler.Close()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() { l.git <- sampler.ReadGit(running, l.info.Cwd) }()
	cancelled := ctx.Done()
	if l.opts.Duration > 0 {
		l.deadline = l.info.StartMono + int64(l.opts.Duration)
	}
	wake := newTimer()
	defer wake.close()
	wake.set(0)
	if l.child.Stranger {
		l.visit()
		l.tellRecording()
	}
	for !l.leaving {
		select {
		case change, ok := <-l.child.Changes:
			if !ok || !change.Status.Stopped() {
				return l.finish(change, ok)
			}
			l.paused(change.Status.StopSignal())
		case s := <-l.child.Ending:
			l.ending(s)
		case s := <-l.child.Stopping:
			l.child.Pass(s)
		case s := <-l.child.Others:
			l.child.Pass(s)
		case <-cancelled:
			cancelled = nil
			if !l.child.Stranger {
				l.emit(mem.Event{Time: l.now(), Kind: "stop", Text: mem.StopCancelled})
			}
			l.askToStop()
		case git := <-l.git:
			if git != nil {
				l.info.Git = git
				l.emit(l.info)
			}
		case <-wake.C:
			l.visit()
			wake.set(l.pause())
		}
	}
	return l.leave()
}

// ending handles a signal that ends a process. One of ours gets it too; from a stranger's process it takes us away.
func (l *loop) ending(s os.Signal) {
	if l.child.Stranger {
		l.leaving = true
		return
	}
	l.child.Pass(s)
}

func (l *loop) paused(s syscall.Signal) {
	l.flush(false)
	follows := l.child.Follows(s)
	l.opts.Events.Tell(event.Paused{Job: follows})
	if follows {
		l.child.FollowStop()
		l.opts.Events.Tell(event.Resumed{})
	}
}

// flushEvery is as long as what a crash may lose allows, for each flush makes the recording larger. Where
// somebody reads along, there is one at each visit.
const flushEvery = int64(time.Second / 2)

// visit does what is due.
func (l *loop) visit() {
	now := l.now()
	if now < l.nextVisit {
		l.sampler.SampleGrowing(now)
		return
	}
	sampled := due(&l.nextSample, now, int64(l.opts.interval()))
	if sampled {
		l.sampler.Tick(now)
		if ended := l.confined.look(l.sampler, now); ended != nil {
			ended.Process = l.leaderID()
			l.emit(*ended)
		}
		if l.sampler.Hurried() {
			l.nextSample = min(l.nextSample, now+hurriedEvery)
		}
	}
	l.scan()
	l.drainAll()
	l.joinSpeakers(now)
	if sampled { // with what was allocated until now
		l.lookAtResident(now)
		l.sampleHeap(now)
	}
	if due(&l.nextSlow, now, int64(time.Second/4)) {
		l.slow(now)
	}
	l.followed = Followed(l.sink)
	if due(&l.nextFlush, now, flushEvery) || l.crowded || l.followed && now >= l.flushed+visitBusyEvery {
		l.flush(false)
		l.flushed = now
	}
	if due(&l.nextStatus, now, int64(time.Second/4)) && l.opts.Events != nil {
		l.opts.Events.Tell(l.status(now))
	}
}

// due says whether it is time, and sets the next one. After a standstill (SIGSTOP, a laptop asleep)
// it goes on from now.
func due(next *int64, now, every int64) bool {
	if now < *next {
		return false
	}
	*next += every
	if *next <= now {
		*next = now + every
	}
	return true
}

func (l *loop) pause() time.Duration {
	now := l.now()
	every := visitEvery
	switch {
	case l.busy:
		every = visitBusyEvery
	case l.followed:
		every = visitFollowedEvery
	}
	next := min(l.nextSample, now+every)
	if gap := l.nextSample - next; gap > 0 && gap < every/4 {
		next = l.nextSample // one waking up instead of two
	}
	l.nextVisit = next
	if l.sampler.Growing() {
		next = min(next, now+lookEvery)
	}
	return time.Duration(max(next-now, int64(time.Millisecond)))
}

// slow does what a few times a second is enough for: growth, stopping, the kernel's kills.
func (l *loop) slow(now int64) {
	for _, p := range l.order {
		l.listen(p)
		if len(p.channels) == 0 {
			continue
		}
		if p.growth.worthScanning(now) || p.growsOverTime(now) || p.files.worthScanning(now) {
			for _, c := range p.channels {
				c.reader.ScanContainers()
			}
		}
		if p.steps.total.Steps > 0 {
			l.alertGrowth(p, now)
		}
	}
	l.leaving = l.leaving || l.child.Stranger && l.askedToLeave()
	l.stopping = l.stopping || l.opts.Steps > 0 && l.steps() >= l.opts.Steps
	if l.deadline > 0 && now >= l.deadline && !l.stopping {
		if l.opts.Label == mem.Imagined {
			l.emit(mem.Event{Time: now, Kind: "stop", Text: mem.StopDuration})
		}
		l.askToStop()
	}
	if l.stopping {
		l.asked = cmp.Or(l.asked, now)
		if now >= l.asked+int64(l.grace()) {
			l.stopHarder(now)
		}
	}
}

// grace between one attempt to stop the command and the next. Nobody listens in a program without an agent. An agent
// ends the training after a step; what then follows may be writing a checkpoint.
func (l *loop) grace() time.Duration {
	listens, step := false, int64(0)
	for _, p := range l.order {
		listens = listens || p.hello && p.steps.total.Steps > 0
		step = max(step, p.steps.took)
	}
	switch {
	case l.hard > 0:
		return cmp.Or(l.opts.Patience, 30*time.Second)
	case !listens:
		return 0
	case l.opts.Grace > 0:
		return l.opts.Grace
	case l.steps() <= l.endsAfter: // else it caught SystemExit and goes on
		return 2 * time.Minute
	}
	return max(10*time.Second, min(3*time.Duration(step), 5*time.Minute))
}

// askToStop asks every agent to end its training after the step that all of them can still reach.
func (l *loop) askToStop() {
	if l.child.Stranger {
		l.leaving = true
		return
	}
	l.stopping = true
	l.stopAt = l.steps() + 1
	for _, p := range l.order {
		for _, c := range p.channels {
			c.reader.StopAtStep(l.stopAt)
		}
	}
}

// joinSpeakers has the sampler look at processes that speak here and that it cannot find by their parents.
func (l *loop) joinSpeakers(now int64) {
	for _, p := range l.order {
		if len(p.channels) == 0 || p.watched || p.gone || p.joined {
			continue
		}
		p.joined = true
		if p.Role == "" || p.Role == "main" {
			p.Role = "child"
		}
		l.sampler.Join(p.PID, p.StartTicks, now)
	}
}

// stopHarder sends SIGTERM, and SIGKILL to what is still there when patience ends.
func (l *loop) stopHarder(now int64) {
	signal := syscall.SIGTERM
	if l.hard > 0 {
		signal = syscall.SIGKILL
	}
	l.hard, l.asked = l.hard+1, now
	l.log(0, fmt.Sprintf("the command did not stop when asked; sending %v", signal))
	l.child.Signal(signal)
}

// stopRest tells what the command left behind to end too: a shell that SIGTERM ended leaves its programs.
func (l *loop) stopRest() {
	for _, p := range l.sampler.Processes() {
		if launch.Alive(p.PID, p.StartTicks) {
			_ = system.Kill(p.PID, syscall.SIGTERM)
		}
	}
}

// steps is how many the process has taken that took the most.
func (r *Recorder) steps() uint64 {
	var most uint64
	for _, p := range r.order {
		most = max(most, p.steps.total.Steps)
	}
	return most
}
