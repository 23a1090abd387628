package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"hightide/internal/engine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// hubs are the runs that somebody looks at, or did a moment ago.
type hubs struct {
	engine *engine.Engine
	ctx    context.Context // of the followers
	mu     sync.Mutex
	all    map[string]*hub
	gone   sync.WaitGroup // followers that still run
}

const (
	idleFor = 30 * time.Second // how long a run that nobody looks at is held
	// of recordings, as they are on disk, held for nobody; in memory they are some times larger
	heldBytes = 32 << 20
	heldLeast = 1 << 20 // as much as a small one counts for
)

func newHubs(ctx context.Context, e *engine.Engine) *hubs {
	return &hubs{engine: e, ctx: ctx, all: map[string]*hub{}}
}

// openHub gives the hub of a run, which has read all that was there. Give it back after use.
func (s *hubs) openHub(ctx context.Context, row store.Run) (*hub, func(), error) {
	h := s.use(row)
	release := sync.OnceFunc(func() { s.release(h) })
	select {
	case <-h.caught:
		return h, release, nil
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
}

// use finds the hub of a run or makes one.
func (s *hubs) use(row store.Run) *hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[row.ID]
	if h == nil || h.outdated(row) {
		ctx, stop := context.WithCancel(s.ctx)
		h = &hub{id: row.ID, stop: stop, gone: make(chan struct{}), caught: make(chan struct{}),
			reporting: make(chan struct{}, 1), run: mem.NewRun(),
			row: row, rowAt: time.Now(), feed: newFeed()}
		s.all[row.ID] = h
		s.gone.Go(func() { defer close(h.gone); h.follow(ctx, s.engine) })
	}
	h.users++
	h.awake()
	s.trim()
	return h
}

// outdated says whether the recording was changed after it had been read to its end, as by a new tag.
func (h *hub) outdated(row store.Run) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.ended != nil && (h.row.Size != row.Size || h.row.State != row.State)
}

// release notes that one user has gone.
func (s *hubs) release(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	h.used = time.Now()
	h.rest()
	if s.all[h.id] != h {
		h.awake()
		h.stop() // another has taken its place
		return
	}
	h.idle = time.AfterFunc(idleFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.users == 0 && time.Since(h.used) >= idleFor {
			s.drop(h)
		}
	})
	s.trim()
}

// trim gives up what nobody looks at, the longest ago first, where it is too much.
func (s *hubs) trim() {
	idle := slices.DeleteFunc(slices.Collect(maps.Values(s.all)), func(h *hub) bool { return h.users > 0 })
	slices.SortFunc(idle, func(a, b *hub) int { return b.used.Compare(a.used) })
	held := int64(0)
	for _, h := range idle {
		h.mu.RLock()
		held += max(h.at, heldLeast)
		h.mu.RUnlock()
		if held > heldBytes {
			s.drop(h)
		}
	}
}

// forget gives up a run that was deleted.
func (s *hubs) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[id]; h != nil && h.users == 0 {
		s.drop(h)
	}
}

// awake has the timer forget a run that is looked at or gone, as it would hold it in memory.
func (h *hub) awake() {
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
}

func (s *hubs) drop(h *hub) {
	h.awake()
	h.stop()
	if s.all[h.id] == h {
		delete(s.all, h.id)
	}
	if gone := h.gone; h.large() {
		go func() { // without h, which it would hold
			<-gone
			s.engine.Runtime.TuneTo(launch.Forgetting)()
		}()
	}
}
