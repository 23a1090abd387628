package metrics

import (
	"context"
	"sync"

	"hightide/internal/engine"
	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// watched is what is known of the runs that are recorded now. Each look reads only what was written since the one
// before.
type watched struct {
	engine *engine.Engine

	lock       sync.Mutex
	runs       map[string]*engine.Watched
	unreadable int
	states     map[store.State]int // runs that there are, by state
}

func newWatched(e *engine.Engine) *watched {
	return &watched{engine: e, runs: map[string]*engine.Watched{}}
}

// update brings the runs up to date. A run that has ended is forgotten; one that cannot be read is counted.
func (l *watched) update(ctx context.Context) error {
	rows, err := l.engine.Runs(ctx, store.Filter{})
	if err != nil {
		return err
	}
	l.states, l.unreadable = map[store.State]int{store.Running: 0, store.Finished: 0, store.CutOff: 0}, 0
	recorded := map[string]*engine.Watched{}
	for _, row := range rows {
		l.states[row.State]++
		if row.State != store.Running {
			continue
		}
		r := l.runs[row.ID]
		if r == nil {
			r = &engine.Watched{}
		}
		if err := l.engine.Look(ctx, row.ID, r); err != nil {
			l.unreadable++
			continue
		}
		recorded[row.ID] = r
	}
	l.runs = recorded
	return ctx.Err()
}

// processes are those that have not ended, by their number in the run; the figures of others are of the past.
func processes(r *live.Run) map[uint32]*mem.Process {
	all := map[uint32]*mem.Process{}
	for _, p := range r.Alive() {
		all[p.ID] = p
	}
	return all
}
