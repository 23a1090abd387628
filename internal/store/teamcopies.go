package store

import (
	"os"
	"sync"
	"time"

	"hightide/internal/wire"
)

// liveRuns are those that are sent now.
type liveRuns struct {
	mu      sync.Mutex
	all     map[string]*sentRun
	viewers map[string]int
}

// sentRun is one of them.
type sentRun struct {
	mu     sync.Mutex
	file   *os.File
	size   int64
	stream string // whose bytes these are
	tail   *wire.Tail
	roll   *rollup
	told   time.Time // when the row was written last
	heard  time.Time // guarded by liveRuns.mu
	users  int       // likewise
}

// heardFor is how long who writes a run may be silent; see isHeard.
const heardFor = 60 * time.Second

// use gives the copy of a run. Release it after use. One that has been silent for long is closed.
func (l *liveRuns) use(run string) (one *sentRun, release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, other := range l.all {
		if other.users == 0 && time.Since(other.heard) > heardFor {
			other.close()
			delete(l.all, id)
		}
	}
	if l.all == nil {
		l.all = map[string]*sentRun{}
	}
	if one = l.all[run]; one == nil {
		one = &sentRun{}
		l.all[run] = one
	}
	one.users++
	return one, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users, one.heard = one.users-1, time.Now(); one.users == 0 && l.all[run] != one {
			one.close()
		}
	}
}

func (l *sentRun) close() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// close gives back what is open.
func (l *liveRuns) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		one.close()
	}
	l.all = nil
}

// watch notes that somebody follows a run, until it is called again.
func (l *liveRuns) watch(run string) (left func()) {
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.viewers == nil {
			l.viewers = map[string]int{}
		}
		if l.viewers[run] += n; l.viewers[run] == 0 {
			delete(l.viewers, run)
		}
	}
	add(1)
	return func() { add(-1) }
}

func (l *liveRuns) watched(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.viewers[run] > 0
}
