package analyze

import (
	"cmp"
	"fmt"
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

// unlooked says that growth was not looked for, and why; "": it was.
func unlooked(d *usage.Device, steps *usage.Steps) string {
	if bins, _ := d.GrowthBins(steps); len(bins.Stretches) > 0 {
		return ""
	}
	switch {
	case d.Moments == 0:
		return "Growth was not looked for: the file records one state, and no events."
	case steps == nil:
		return fmt.Sprintf("Growth was not looked for: no steps are seen, and %s are too few to tell it without.", report.Counted(int64(d.Moments), "event"))
	case len(steps.Steps) == 0:
		return "Growth was not looked for: no steps are seen, and within one step memory grows and shrinks by itself."
	}
	return fmt.Sprintf("Growth was not looked for: %s are too few to tell it from a warm-up.", report.Counted(int64(len(steps.Steps)), "step"))
}

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
		t := report.TraceGrowth{Name: line.Site.Name, Steps: bins.Steps(line.From), Source: source, PerStep: bytesPer(line.Slope), Grown: bytesPer(line.Growth),
			Confidence: line.Confidence(), Frames: g.d.Stacks.Frames(line.Stack)}
		if source == usage.Stretches {
			t.Confidence *= doubtOfStretches
			t.PerStep = 0
		} else if line.From > 0 {
			t.Since = mem.Some(int64(bins.X[line.From]) + 2) // from 1, and the first is not looked at
		}
		found = append(found, t)
	}
	slices.SortStableFunc(found, func(p, q report.TraceGrowth) int {
		return cmp.Or(cmp.Compare(q.Grown, p.Grown), cmp.Compare(p.Name, q.Name))
	})
	return found
}
