package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"hightide/internal/launch"
)

// tuning sets Go's collector and threads to what a command is at. Several kinds of work may be under
// way; the settings are those of the one that began last.
type tuning struct {
	lock    sync.Mutex
	active  []*settings
	applied settings
	cores   int
	start   time.Duration // how long a recording is taken for a short one
}

// settings of Go's runtime.
type settings struct {
	percent int // of the heap that may be garbage before it is collected
	threads int // that run Go code at once
}

const (
	usualPercent = 100      // Go's own choice: a heap is collected once it has doubled
	largeHeap    = 64 << 20 // from here on, memory that is no longer needed is given back at once
)

// newTuning has the first collection come at 32 MiB of heap instead of 4. Most commands are over by
// then, and collecting on the way there took a tenth of their time. After it all is as usual.
func newTuning() *tuning {
	cores := runtime.GOMAXPROCS(0)
	first := &settings{8 * usualPercent, cores}
	t := &tuning{applied: settings{usualPercent, cores}, cores: cores, start: 300 * time.Millisecond}
	t.begin(first)
	runtime.AddCleanup(&struct{ _ *byte }{}, func(int) { t.change(first, settings{usualPercent, cores}) }, 0)
	return t
}

// tune is launch.Runtime.Tune.
func (t *tuning) tune(w launch.Work) (done func()) {
	s, before := &settings{60, t.cores}, func() {} // those of trials
	switch w {
	case launch.Recording:
		// It shares the machine with what it measures: one thread, since there is one loop, and a heap of
		// a few MB that is collected rather than doubled twice. While the command starts, and in a
		// run that is over by then, time counts for more.
		s.percent = 200
		later := time.AfterFunc(t.start, func() { t.change(s, settings{60, 1}) })
		before = func() { later.Stop() }
	case launch.Reading:
		s.percent = 25
		before = func() {
			var heap runtime.MemStats
			if runtime.ReadMemStats(&heap); heap.HeapInuse > largeHeap {
				debug.FreeOSMemory() // what only reading needed: analyses take as much again
			}
		}
	case launch.Explaining:
		s.percent = 40
	case launch.Forgetting:
		debug.FreeOSMemory()
		return before
	case launch.Reporting:
		debug.FreeOSMemory()
		s.percent = 25
	case launch.Matrix: // as Recording, but a few tens of MiB: what is collected less often is time that trials have
		*s = settings{4 * usualPercent, 1}
	}
	t.begin(s)
	return func() { before(); t.end(s) }
}

func (t *tuning) begin(s *settings) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.active = append(t.active, s)
	t.apply()
}

func (t *tuning) end(s *settings) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.active = slices.DeleteFunc(t.active, func(one *settings) bool { return one == s })
	t.apply()
}

// change gives work other settings; where it has ended, that changes nothing.
func (t *tuning) change(s *settings, to settings) {
	t.lock.Lock()
	defer t.lock.Unlock()
	*s = to
	t.apply()
}

// apply sets what changed. Each setting stops all goroutines for a moment.
func (t *tuning) apply() {
	now := *t.active[len(t.active)-1] // the first one never ends
	if now.percent != t.applied.percent {
		debug.SetGCPercent(now.percent)
	}
	if now.threads != t.applied.threads {
		runtime.GOMAXPROCS(now.threads)
	}
	t.applied = now
}
