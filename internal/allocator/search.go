package allocator

import (
	"cmp"
	"slices"
	"sync"

	"hightide/internal/mem"
)

// Candidate is a setting and what it led to.
type Candidate struct {
	Settings Settings
	Outcome  *Outcome
}

// better orders candidates. First comes one that runs to its end, then the later an OOM. Next come fewer requests
// refused that the record refused too, then the lower peak, then fewer calls of the driver, then the shorter line.
func better(a, b *Candidate) int {
	if (a.Outcome.OOM == nil) != (b.Outcome.OOM == nil) {
		if a.Outcome.OOM == nil {
			return -1
		}
		return 1
	}
	if a.Outcome.OOM != nil && a.Outcome.OOM.Event != b.Outcome.OOM.Event {
		return cmp.Compare(b.Outcome.OOM.Event, a.Outcome.OOM.Event)
	}
	u, v := &a.Outcome.Usage, &b.Outcome.Usage
	return cmp.Or(cmp.Compare(u.OOMs, v.OOMs), cmp.Compare(u.PeakReserved, v.PeakReserved),
		cmp.Compare(u.DeviceAllocs+u.Retries, v.DeviceAllocs+v.Retries),
		cmp.Compare(len(a.Settings.String()), len(b.Settings.String())))
}

// Search runs a Program under a grid of settings, then around the best ones until nothing gets better.
// The result is ordered, the best first; the setup's own settings are always among them. Workers run at
// once; stop ends it early.
func Search(p *Program, setup Setup, workers int, stop func() bool) []Candidate {
	return SearchTelling(p, setup, workers, stop, nil)
}

// SearchTelling is a Search that tells, one call at a time, how many settings were run of those that are known to be
// tried.
func SearchTelling(p *Program, setup Setup, workers int, stop func() bool, tell func(done, all int)) []Candidate {
	largeSegments := !setup.Rules.NoLargeSegment
	s := &search{p: p, setup: setup, seen: map[Settings]bool{}, workers: max(workers, 1), stop: stop, tell: tell}
	s.try(append([]Settings{setup.Settings}, grid(setup, largeSegments)...))
	for range 4 {
		best := s.found[:min(len(s.found), 3)]
		var near []Settings
		for i := range best {
			near = append(near, neighbours(best[i].Settings, setup, largeSegments)...)
		}
		before := s.found[0]
		s.try(near)
		if better(&s.found[0], &before) == 0 {
			break
		}
	}
	return s.found
}

type search struct {
	p       *Program
	setup   Setup
	workers int
	stop    func() bool
	seen    map[Settings]bool
	found   []Candidate

	tell      func(done, all int) // nil: nobody listens
	lock      sync.Mutex          // of the two below
	done, all int
}

// ran counts a setting that was run.
func (s *search) ran() {
	if s.tell == nil {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.done++
	s.tell(s.done, s.all)
}

// try runs what was not run yet.
func (s *search) try(list []Settings) {
	list = slices.DeleteFunc(list, func(x Settings) bool {
		known := s.seen[x]
		s.seen[x] = true
		return known || x.Check() != nil
	})
	s.all += len(list)
	results := make([]Candidate, len(list))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(s.workers, len(list)) {
		group.Go(func() {
			for i := range next {
				setup := s.setup
				setup.Settings = list[i]
				results[i] = Candidate{list[i], Run(s.p, setup)}
				s.ran()
			}
		})
	}
	for i := range list {
		if s.stop != nil && s.stop() && i > 0 {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	for _, r := range results {
		if r.Outcome != nil {
			s.found = append(s.found, r)
		}
	}
	slices.SortStableFunc(s.found, func(a, b Candidate) int { return better(&a, &b) })
}

var (
	gridSplits    = []mem.Bytes{0, 32 * mem.MiB, 64 * mem.MiB, 128 * mem.MiB, 256 * mem.MiB, 512 * mem.MiB}
	gridDivisions = []int{0, 2, 4, 8}
	gridLarge     = []mem.Bytes{0, 32 * mem.MiB, 64 * mem.MiB, 128 * mem.MiB}
	gridGC        = []float64{0, 0.6, 0.8}
)

// grid is the first settings to try. Garbage collection needs a memory limit, which only the setup sets.
func grid(setup Setup, largeSegments bool) []Settings {
	var list []Settings
	for _, split := range gridSplits {
		for _, divisions := range gridDivisions {
			for _, large := range gridLarge {
				if large > 0 && (!largeSegments || split > 0 && split < large) {
					continue
				}
				s := Settings{MaxSplit: split, LargeSegment: large, Divisions: sameDivisions(divisions),
					Fraction: setup.Settings.Fraction}
				list = append(list, s)
				if split == 0 && !setup.Rules.NoExpandable {
					s.Expandable = true
					list = append(list, s)
				}
			}
		}
	}
	if setup.limited() {
		for _, gc := range gridGC[1:] {
			list = append(list, Settings{GCThreshold: gc, Fraction: setup.Settings.Fraction})
		}
	}
	if !largeSegments { // more splits instead
		for _, split := range []mem.Bytes{24, 48, 96, 192, 384, 1024} {
			for _, divisions := range gridDivisions {
				list = append(list, Settings{MaxSplit: split * mem.MiB, Divisions: sameDivisions(divisions),
					Fraction: setup.Settings.Fraction})
			}
		}
	}
	return list
}

func (s *Setup) limited() bool {
	return s.Settings.Fraction > 0 && s.Settings.Fraction < 1 && s.Memory > 0
}

func sameDivisions(n int) (d [16]int) {
	for i := range d {
		d[i] = n
	}
	return d
}

// neighbours change one thing at a time.
func neighbours(s Settings, setup Setup, largeSegments bool) []Settings {
	var list []Settings
	add := func(change func(*Settings)) {
		x := s
		change(&x)
		list = append(list, x)
	}
	if !setup.Rules.NoExpandable {
		add(func(x *Settings) { x.Expandable = !x.Expandable })
	}
	for _, d := range []int{0, 1, 2, 4, 8, 16} {
		add(func(x *Settings) { x.Divisions = sameDivisions(d) })
	}
	add(func(x *Settings) { x.MaxSplit = 0 })
	if s.MaxSplit > 0 {
		for _, by := range []mem.Bytes{3, 5, 6, 8} { // times a quarter
			add(func(x *Settings) { x.MaxSplit = x.MaxSplit * by / 4 / mem.MiB * mem.MiB })
		}
		if !setup.Rules.NoRounding {
			add(func(x *Settings) { x.MaxNonSplitRound = 2 * x.MaxSplit })
		}
	}
	if largeSegments {
		for _, large := range []mem.Bytes{0, 12, 16, 24, 32, 48, 64, 96, 128, 256} {
			add(func(x *Settings) { x.LargeSegment = large * mem.MiB })
		}
	}
	if setup.limited() {
		for _, gc := range []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9} {
			add(func(x *Settings) { x.GCThreshold = gc })
		}
	}
	return list
}
