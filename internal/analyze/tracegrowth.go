package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const (
	growthEnds    = 64   // step ends looked at, at most
	growthRising  = 0.75 // of the steps must grow
	growthStretch = 12   // equal parts of a trace without steps
	leastGrowth   = 64 * mem.KiB
	growthShare   = 2000 // one in so many of the peak is not worth a word
)

// growth compares what lines hold at the ends of steps, the first ones left out. What counts is what is
// kept for good, the lowest value still to come: a saw-tooth does not grow. It must rise in most steps,
// and no single one may make up half of it. The confidence is the share of steps that rise, less the
// chance that as many rise by luck.
func (g *grouper) growth(steps *report.TraceSteps) []report.TraceGrowth {
	b := g.b
	ends, source := b.stepEnds(steps)
	found := []report.TraceGrowth{}
	if len(ends) < leastSteps {
		return found
	}
	levels, frames := g.levelsBySite(ends)
	for name, held := range levels {
		for i := len(held) - 2; i >= 0; i-- {
			held[i] = min(held[i], held[i+1])
		}
		t := report.TraceGrowth{Name: name, Steps: len(ends) - 1, Source: source, Grown: held[len(held)-1] - held[0]}
		var rises []mem.Bytes
		rising := 0
		for i := 1; i < len(held); i++ {
			rises = append(rises, held[i]-held[i-1])
			if held[i] > held[i-1] {
				rising++
			}
		}
		slices.Sort(rises)
		if t.PerStep = rises[len(rises)/2]; t.Grown < max(leastGrowth, b.peak.allocated/growthShare) ||
			float64(rising) < growthRising*float64(len(rises)) || len(rises) > 2 && rises[len(rises)-1] > t.Grown/2 {
			continue
		}
		t.Confidence = float64(rising) / float64(len(rises)) * (1 - 1/float64(uint64(1)<<min(len(rises), 20)))
		if source == "stretches" {
			t.Confidence *= 0.7
			t.PerStep = 0
		}
		t.Frames = b.snapshot.Stacks.Frames(frames[name])
		found = append(found, t)
	}
	slices.SortFunc(found, func(p, q report.TraceGrowth) int {
		return cmp.Or(cmp.Compare(q.Grown, p.Grown), cmp.Compare(p.Name, q.Name))
	})
	return found
}

// stepEnds are the events that end whole steps after the first, or equal stretches where no steps are known.
func (b *traceBooks) stepEnds(steps *report.TraceSteps) (ends []int, source string) {
	if steps != nil && len(steps.Steps) > leastSteps {
		source = steps.Source
		for _, s := range steps.Steps[1 : len(steps.Steps)-1] {
			ends = append(ends, s.To)
		}
	} else if n := b.trace.Len(); steps == nil && n >= 1000 { // a single step grows and shrinks by itself
		source = "stretches"
		for i := 2; i <= growthStretch; i++ {
			ends = append(ends, n*i/growthStretch-1)
		}
	}
	for len(ends) > growthEnds {
		for i := range len(ends) / 2 {
			ends[i] = ends[2*i+1]
		}
		ends = ends[:len(ends)/2]
	}
	return ends, source
}

// levelsBySite is what each line holds after some events, and the stack that allocated most of it.
func (g *grouper) levelsBySite(ends []int) (map[string][]mem.Bytes, map[string]uint32) {
	levels, most, frames := map[string][]mem.Bytes{}, map[string]mem.Bytes{}, map[string]uint32{}
	for i := range g.b.lives {
		l := &g.b.lives[i]
		if l.born < 0 || !g.wants(l.stack) {
			continue
		}
		from, _ := slices.BinarySearch(ends, int(l.born))
		to, _ := slices.BinarySearch(ends, int(l.freed)) // first end at or after which it is gone
		if from >= to {
			continue
		}
		name := g.site(l)
		held := levels[name]
		if held == nil {
			held = make([]mem.Bytes, len(ends))
			levels[name] = held
		}
		for k := from; k < to; k++ {
			held[k] += l.size
		}
		if l.size > most[name] {
			most[name], frames[name] = l.size, l.stack
		}
	}
	return levels, frames
}
