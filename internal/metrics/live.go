package metrics

import (
	"context"
	"sync"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// live is what is known of the runs that are recorded now. Each look reads only what was written since the one before.
type live struct {
	engine *engine.Engine

	lock       sync.Mutex
	runs       map[string]*run
	unreadable int
	states     map[store.State]int // runs that there are, by state
}

// run is the newest of each kind of frame of one recording.
type run struct {
	next      int64
	info      mem.RunInfo
	processes map[uint32]mem.Process
	series    map[uint32]mem.SeriesDef
	latest    map[uint32]int64
	steps     map[uint32]mem.StepTotal
	drops     map[mem.Drop]uint64 // keyed without its counts
	events    map[string]int
}

func newLive(e *engine.Engine) *live { return &live{engine: e, runs: map[string]*run{}} }

func newRun() *run {
	return &run{processes: map[uint32]mem.Process{}, series: map[uint32]mem.SeriesDef{}, latest: map[uint32]int64{},
		steps: map[uint32]mem.StepTotal{}, drops: map[mem.Drop]uint64{}, events: map[string]int{}}
}

// look brings the runs up to date. A run that has ended is forgotten; one that cannot be read is counted.
func (l *live) look(ctx context.Context) error {
	rows, err := l.engine.Runs(ctx, store.Filter{})
	if err != nil {
		return err
	}
	l.states, l.unreadable = map[store.State]int{store.Running: 0, store.Finished: 0, store.CutOff: 0}, 0
	recorded := map[string]*run{}
	for _, row := range rows {
		l.states[row.State]++
		if row.State != store.Running {
			continue
		}
		r := l.runs[row.ID]
		if r == nil {
			r = newRun()
		}
		if r.next, err = l.engine.Since(ctx, row.ID, r.next, r.take); err != nil {
			l.unreadable++
			continue
		}
		recorded[row.ID] = r
	}
	l.runs = recorded
	return ctx.Err()
}

func (r *run) take(frame mem.Frame) {
	switch f := frame.(type) {
	case mem.RunInfo:
		r.info = f
	case mem.Process:
		r.processes[f.ID] = f
	case mem.SeriesDef:
		r.series[f.ID] = f
	case mem.Samples:
		if n := len(f.Values); n > 0 {
			r.latest[f.Series] = f.Values[n-1]
		}
	case mem.StepTotal:
		r.steps[f.Process] = f
	case mem.Drop:
		r.drops[mem.Drop{Process: f.Process, Place: f.Place}] = f.Records
	case mem.Event:
		r.events[f.Kind]++
	}
}

// over says whether a process has ended: its figures are then of the past.
func (r *run) over(process uint32) bool { return r.processes[process].End.Known() }
