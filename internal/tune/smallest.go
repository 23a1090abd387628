package tune

import (
	"context"
	"maps"
	"slices"

	"hightide/internal/levers"
	"hightide/internal/mem"
)

// smallest finds, where nothing fits, the smallest peak of the plans that save most.
func (s *search) smallest(ctx context.Context) {
	for _, p := range s.ran {
		if p.Verdict.Fits() {
			return
		}
	}
	s.strongest(ctx)
}

// strongest runs with plenty of memory the plans that save most, and keeps the one that takes least.
func (s *search) strongest(ctx context.Context) {
	with := append(s.free(), levers.Checkpoint)
	if s.usable(levers.Budget) {
		with = append(with, strongest(levers.Budget))
	}
	if s.usable(levers.Remat) {
		with = append(with, levers.Remat)
	}
	runs := []Run{{Plan: s.plan(s.recorded.names(), with...), Roomy: true}}
	for _, more := range append(s.hosts(), s.Allow...) {
		if s.usable(more) {
			with = append(levers.Beside(with, more), s.strongestOf(more))
			plan := s.plan(s.recorded.names(), with...)
			runs = append(runs, Run{Plan: plan, Roomy: true, Counted: plan.Slices()})
		}
	}
	s.result.Runs += len(runs)
	for i, o := range s.host.Try(ctx, runs) {
		if point := s.point(runs[i].Plan, o); point != nil && point.Verdict.Fits() {
			least, ok := s.result.Need.Get() // a lever may cost more than it saves, as by larger workspaces
			if before := s.result.Smallest; before != nil {
				least, ok = before.Verdict.Used.Get()
			}
			if !ok || point.Verdict.Used.Or(0) < least {
				s.result.Smallest = point
			}
		}
	}
}

// floor is, of runs that all had plenty of memory, the least that a plan takes, and with what.
func (s *search) floor(ctx context.Context) (mem.Bytes, string) {
	s.strongest(ctx)
	least, what := s.result.Need.Or(0), "no change"
	points := slices.Collect(maps.Values(s.ran))
	if p := s.result.Smallest; p != nil {
		points = append(points, p)
	}
	for _, p := range points {
		if used, known := p.Verdict.Used.Get(); known && p.Verdict.Fits() && (used < least || used == least && p.What < what) {
			least, what = used, p.What
		}
	}
	return mem.Bytes(least), what
}

// strongestOf is a lever with its strongest degree that is possible here.
func (s *search) strongestOf(name string) string {
	lever := levers.Find(name)
	for i := len(lever.Steps) - 1; i >= 0; i-- {
		if step := degree(name, i); s.possible(s.plan(nil, step)) {
			return step
		}
	}
	return name
}
