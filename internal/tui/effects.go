package tui

import (
	"context"
	"errors"
	"os/user"
	"strconv"
	"time"

	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/sampler"
	"hightide/internal/store"

	tea "charm.land/bubbletea/v2"
)

// doer asks the engine for what update wants, and tells update what comes.
type doer struct {
	ctx     context.Context
	options *Options
	send    func(tea.Msg)
	jobs    jobSignals
}

// all makes commands of what was asked.
func (d *doer) all(asks []ask) (commands []tea.Cmd) {
	for _, a := range asks {
		commands = append(commands, d.command(a))
	}
	return commands
}

func (d *doer) command(a ask) tea.Cmd {
	e := d.options.Engine
	switch a := a.(type) {
	case askQuit:
		return tea.Quit
	case askInterrupt:
		return func() tea.Msg { d.options.Launch.Interrupt(); return nil }
	case askStopJob, askStopSelf, askTerminal, askAway:
		return d.stop(a)
	case askFollow:
		return func() tea.Msg { go d.follow(a.id); return nil }
	case askReport:
		return func() tea.Msg { return d.report(a.id) }
	case askEnviron:
		return func() tea.Msg {
			values, err := e.Environ(a.key.pid, a.key.start)
			return Environ{a.key.pid, values, err}
		}
	case askDetails:
		return func() tea.Msg {
			facts, err := e.Details(a.key.pid, a.key.start)
			return Detailed{a.key.pid, facts, err}
		}
	case askSignal:
		return func() tea.Msg { return Sent{a.key.pid, a.name, e.Signal(a.key.pid, a.key.start, a.signal)} }
	case askHeap:
		return func() tea.Msg { return d.explain(a.ref) }
	case askSource:
		return func() tea.Msg { return Quoted{a.file, e.Source(a.file, a.began)} }
	}
	return nil
}

func (d *doer) report(id string) Reported {
	begun := time.Now()
	r, _, err := d.options.Engine.Report(d.ctx, id)
	now := time.Now()
	return Reported{ID: id, Report: r, Err: err, Took: now.Sub(begun), Now: now}
}

func (d *doer) explain(ref string) Explained {
	r, err := d.options.Engine.Explain(d.ctx, []string{ref}, trace.Options{Pictures: true})
	return Explained{Ref: ref, Report: r, Began: time.Now(), Err: err}
}

func (d *doer) every() time.Duration {
	if d.options.Every <= 0 {
		return time.Second
	}
	return d.options.Every
}

// machine looks at the machine until the views are left.
func (d *doer) machine() {
	known := map[uint32]string{}
	for picture := range d.options.Engine.Machine(d.ctx, d.every()) {
		d.send(Looked{picture, newUsers(&picture, known), time.Now()})
	}
}

// newUsers are the names of users that were not known yet.
func newUsers(p *sampler.Picture, known map[uint32]string) map[uint32]string {
	fresh := map[uint32]string{}
	for i := range p.Processes {
		uid := p.Processes[i].User
		if _, seen := known[uid]; seen {
			continue
		}
		name := strconv.Itoa(int(uid))
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		known[uid], fresh[uid] = name, name
	}
	return fresh
}

// runsEvery is how often the list of runs is looked at, and listed is how many of it.
const (
	runsEvery = 2 * time.Second
	listed    = 200
)

func (d *doer) runs() {
	ticks := time.NewTicker(runsEvery)
	defer ticks.Stop()
	for {
		runs, err := d.options.Engine.Runs(d.ctx, store.Filter{Limit: listed})
		if d.ctx.Err() != nil {
			return
		}
		d.send(Listed{runs, err})
		select {
		case <-d.ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// handful is how many frames of a run are told at once before it is time.
const handful = 4096

// follow tells the frames of a run until it ends. They are gathered: a frame of the screen is worth many of a
// recording.
func (d *doer) follow(id string) {
	gathered, last, often := Followed{ID: id}, time.Time{}, d.every()
	if d.options.Launch != nil {
		often /= 4 // it is in front
	}
	for batch, err := range d.options.Engine.Follow(d.ctx, id, 0) {
		if err != nil {
			gathered.Err, gathered.Gone = err, errors.Is(err, store.ErrNotFound)
			break
		}
		gathered.Frames = append(gathered.Frames, batch.Frames...)
		gathered.Damage = append(gathered.Damage, batch.Damage...)
		if now := time.Now(); now.Sub(last) >= often || len(gathered.Frames) >= handful || ends(batch.Frames) {
			d.send(gathered)
			gathered, last = Followed{ID: id}, now
		}
	}
	if d.ctx.Err() == nil {
		gathered.Done = true
		d.send(gathered)
	}
}

func ends(frames []mem.Frame) bool {
	for _, f := range frames {
		if _, end := f.(mem.End); end {
			return true
		}
	}
	return false
}

// launch tells what comes of the program that hightide runs.
func (d *doer) launch(l *Launch) {
	for m := range l.Messages {
		d.send(m)
	}
}

func (d *doer) resized(size tea.WindowSizeMsg) {
	if l := d.options.Launch; l != nil && l.Resized != nil {
		l.Resized(size.Width, max(size.Height-outputFrame, 1))
	}
}
