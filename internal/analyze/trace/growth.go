package trace

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
	growthShare       = 2000           // one in so many of the peak is told only where every step keeps it
	leastBlock        = mem.Bytes(512) // the allocator gives no less
	doubtOfStretches  = 0.7            // how sure growth is where no steps are known
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
		return fmt.Sprintf("Growth was not looked for: no steps are seen, and %s too few to tell it without.",
			counted(d.Moments, "event"))
	case len(steps.Steps) == 0:
		return "Growth was not looked for: no steps are seen, and within one step memory grows and shrinks by itself."
	}
	return fmt.Sprintf("Growth was not looked for: %s too few to tell it from a warm-up.",
		counted(len(steps.Steps), "step"))
}

// counted is "1 step is", "2 steps are".
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one + " is"
	}
	return report.Counted(int64(n), one) + " are"
}

// leastGrowth is from how much on, over a trace, a line is said to grow that not every step lets grow alike.
func leastGrowth(peak mem.Bytes) mem.Bytes { return max(leastDeviceGrowth, peak/growthShare) }

// lookedFor says what growth would have been told, where unlooked has nothing to say.
func lookedFor(d *usage.Device, steps *usage.Steps) string {
	if _, source := d.GrowthBins(steps); source == usage.Stretches {
		return fmt.Sprintf("a line that gains %v or more over the trace, all along it (no steps are known)",
			leastGrowth(d.PeakLevels.Allocated))
	}
	return fmt.Sprintf("a line that keeps %v or more over the trace, in most of its steps, or one block of any size in "+
		"each of them", leastGrowth(d.PeakLevels.Allocated))
}

// growth finds what lines hold more of after each step, by the rules that hold for a heap (usage.TrendOf). Where no
// steps are known, equal stretches of the trace stand for them.
func (g *grouper) growth(steps *usage.Steps) []report.TraceGrowth {
	found := []report.TraceGrowth{}
	bins, source := g.d.GrowthBins(steps)
	worth := leastGrowth(g.d.PeakLevels.Allocated)
	least := float64(worth)
	if source != usage.Stretches && len(bins.X) > 0 {
		least = min(least, float64(leastBlock)*float64(bins.Steps(0))/2)
	}
	for _, line := range g.d.Growing(g.names, bins, least, usage.Trend{}, g.wants) {
		// it may be the gradients of a single backward pass
		if source == usage.Stretches && line.Site.Name == usage.NoFrames {
			continue
		}
		if mem.Bytes(line.Growth) < worth && !line.Every { // what only some steps add may be anything
			continue
		}
		t := report.TraceGrowth{Name: line.Site.Name, Steps: bins.Steps(line.From), Source: source,
			PerStep: mem.Rounded(line.Slope), Grown: mem.Rounded(line.Growth),
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

// largerNotes says of which lines the blocks are replaced by ever larger ones.
func (g *grouper) largerNotes(steps *usage.Steps, label mem.Label) []string {
	bins, source := g.d.GrowthBins(steps)
	var notes []string
	for _, line := range g.d.Larger(g.names, bins, float64(leastGrowth(g.d.PeakLevels.Allocated)), g.wants) {
		by := fmt.Sprintf("by %v per step", mem.Rounded(line.Slope))
		if source == usage.Stretches {
			by = fmt.Sprintf("by %v over the trace", mem.Rounded(line.Growth))
		}
		notes = append(notes, fmt.Sprintf("What %s holds gets larger, %s (%s) to %v at the end. Most of what it allocated "+
			"before was freed: little is kept of it.", line.Site.Name, by, label, line.Held))
	}
	return notes[:min(len(notes), growthFindings)]
}

// growthFindings is how many lines that grow are findings of their own.
const growthFindings = 5

// stepSources is how steps were come by, in words.
var stepSources = map[string]string{"inferred": "inferred from what repeats", "annotations": "as annotated",
	"recorded": "as recorded"}
