package tune

import (
	"context"
	"maps"
	"slices"

	"hightide/internal/levers"
	"hightide/internal/mem"
)

// ofHost looks at what the plan that was found takes of the host's memory, and adds levers of the host until that is
// little enough: each alone, then all of them, then fewer workers. Those that are not needed are taken out. Each run is
// started for itself and alone, as forks share what they have in common.
func (s *search) ofHost(ctx context.Context) {
	base := s.pick()
	if base == nil {
		return
	}
	s.apart, s.tight = map[string]*Point{}, !base.Enough
	if s.enough(ctx, base.Plan, nil) {
		return
	}
	var with []string
	for _, name := range levers.OfHost { // the cheapest first
		if name == levers.Workers || !levers.Find(name).For(s.framework) {
			continue
		}
		if s.enough(ctx, base.Plan, []string{name}) {
			return
		}
		if s.apart[key(s.with(base.Plan, name))] != nil {
			with = append(with, name)
		}
	}
	if len(with) > 1 && s.enough(ctx, base.Plan, with) {
		s.leaner(ctx, base.Plan, with)
		return
	}
	if s.framework != levers.PyTorch {
		return
	}
	for i := range levers.Find(levers.Workers).Steps {
		step := degree(levers.Workers, i)
		if s.enough(ctx, base.Plan, append(slices.Clone(with), step)) {
			s.leaner(ctx, base.Plan, append(slices.Clone(with), step))
			return
		}
	}
}

// leaner takes levers out of a plan that reaches the goal, one after the other, as long as it still does.
func (s *search) leaner(ctx context.Context, plan *levers.Plan, with []string) {
	for i := 0; i < len(with) && len(with) > 1; {
		if less := slices.Delete(slices.Clone(with), i, i+1); s.enough(ctx, plan, less) {
			with = less
		} else {
			i++
		}
	}
}

// with is a plan with further levers.
func (s *search) with(plan *levers.Plan, more ...string) *levers.Plan {
	next := *plan
	next.Levers, next.Planned = maps.Clone(plan.Levers), levers.Figures{}
	for _, step := range more {
		name, settings := named(step)
		next.Levers[name] = settings
	}
	return &next
}

// enough runs a plan with further levers, and says whether it reaches the goal on the device and on the host.
func (s *search) enough(ctx context.Context, plan *levers.Plan, more []string) bool {
	plan = s.with(plan, more...)
	if p := s.apart[key(plan)]; p != nil || ctx.Err() != nil {
		return p != nil && p.Enough
	}
	s.result.Runs++
	o := s.host.Try(ctx, []Run{{Plan: plan, Apart: true, Counted: plan.Slices()}})[0]
	p := s.point(plan, o)
	if p == nil {
		return false
	}
	for _, step := range more {
		name, _ := named(step)
		delete(s.result.Refused, name) // of another degree
	}
	p.Host, p.Off = o.Host, o.HostError
	highest, known := o.Host.Get()
	p.Enough = (p.Enough || s.tight && o.Fits()) && known && mem.Bytes(highest+o.HostError.Or(0)) <= s.Host
	s.apart[key(plan)] = p
	s.Events.Tell(*p)
	return p.Enough
}
