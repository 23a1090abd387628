package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	leastDeviceGrowth = 64 * mem.KiB
	growthShare       = 2000 // one in so many of the peak is not worth a word
	doubtOfStretches  = 0.7  // how sure growth is where no steps are known
)

// growth finds what lines hold more of after each step, by the rules that hold for a heap (usage.TrendOf). Where no steps are
// known, equal stretches of the trace stand for them.
func (g *grouper) growth(steps *usage.Steps) []report.TraceGrowth {
	found := []report.TraceGrowth{}
	bins, source := g.d.GrowthBins(steps)
	least := float64(max(leastDeviceGrowth, g.d.PeakLevels.Allocated/growthShare))
	for _, line := range g.d.Growing(g.names, bins, least, usage.Trend{}, g.wants) {
		if source == usage.Stretches && line.Site.Name == usage.NoFrames { // it may be the gradients of a single backward pass
			continue
		}
		t := report.TraceGrowth{Name: line.Site.Name, Steps: len(bins.X) - 1, Source: source, PerStep: bytesPer(line.Slope), Grown: bytesPer(line.Growth),
			Confidence: line.Confidence(), Frames: g.d.Stacks.Frames(line.Stack)}
		if source == usage.Stretches {
			t.Confidence *= doubtOfStretches
			t.PerStep = 0
		}
		found = append(found, t)
	}
	slices.SortStableFunc(found, func(p, q report.TraceGrowth) int {
		return cmp.Or(cmp.Compare(q.Grown, p.Grown), cmp.Compare(p.Name, q.Name))
	})
	return found
}
