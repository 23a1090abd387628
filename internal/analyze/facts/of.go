// Package facts has what is so of a run, whatever is made of it: its processes' names, its clocks, curves, peaks, its
// one figure and how it ended. They are found once, as values, and analyses are handed them.
//
//	mem.Run ──▶ Of ──▶ Facts ──▶ growth, analyses
//	       └──▶ Conclude, Curve: what a list, or a page that follows a run, needs
//
// Read of.go first, then facts.go.
package facts

import (
	"sort"

	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Of are the facts of a run, all that analyses need. Line returns the text of a line of the observed program, "" where
// it is not known; nil: no line's text is known.
func Of(run *mem.Run, line func(file string, line int) string) *Facts {
	in := &Facts{
		Run: run, line: line, Start: run.Start(), Steps: map[uint32][]mem.Step{}, clocks: map[uint32]*Clock{},
		series: map[seriesKey]*mem.Series{}, Names: usage.NewNames(&run.Stacks), Histories: map[uint32]*usage.History{},
	}
	for process := range run.Heap {
		in.Histories[process] = usage.FromHeap(run, process)
	}
	counts := map[uint32]int{}
	for _, s := range run.Steps {
		counts[s.Process]++
	}
	for process, n := range counts {
		in.Steps[process] = make([]mem.Step, 0, n)
	}
	for _, s := range run.Steps {
		in.Steps[s.Process] = append(in.Steps[s.Process], s)
	}
	for _, steps := range in.Steps {
		sort.SliceStable(steps, func(i, j int) bool { return steps[i].Time < steps[j].Time })
	}
	in.index()
	for _, p := range run.Processes {
		in.clocks[p.ID] = in.newClock(p.ID)
	}
	in.conclude()
	in.Peak = in.peaks()
	return in
}

// ofFigure are the facts that a run's one figure and its curve need. Spans, stacks, heaps and steps need not be there.
func ofFigure(run *mem.Run) *Facts {
	in := &Facts{Run: run, Start: run.Start(), series: map[seriesKey]*mem.Series{}}
	in.index()
	return in
}

// index finds the series that have readings, what the PSS of the tree can have been, and what the run is known by.
func (in *Facts) index() {
	for _, s := range in.Run.Series {
		if key := (seriesKey{s.Process, s.Name}); in.series[key] == nil && len(s.Times) > 0 {
			in.series[key] = s
		}
	}
	in.boundPSS()
	in.End = in.lastMoment()
	in.Leader = in.findLeader()
	in.Lead = in.leadingSeries()
}

// Conclude says what a run comes to: its one figure, and how it ended. Every list, page and comparison shows these
// and no others. It takes no spans, stacks, heaps or contents of snapshots, so a run that was read without them gives
// the same.
func Conclude(run *mem.Run) mem.Conclusion {
	in := ofFigure(run)
	in.conclude()
	peak := in.devicePeaks()
	return mem.Conclusion{Figure: in.Figure, Ending: in.Ending(), Allocated: peak.Allocated, Reserved: peak.Reserved,
		DeviceUsed: peak.DeviceUsed}
}

// conclude finds the verdict of an imagined run, and the one figure of any.
func (in *Facts) conclude() {
	if in.judged() {
		in.Verdict = imagined.Judge(in.Run)
	}
	in.Figure = in.figureOf(in.Verdict)
}

// MainCurve is the series that a report of the run leads with; nil: it has none.
func MainCurve(run *mem.Run) *mem.Series {
	return ofFigure(run).Lead.Series
}

// HostOf is the highest of what a run's processes took of the host together, pages that several shared counted
// once, and how far that may be off.
func HostOf(run *mem.Run) (peak, half mem.Optional) { return ofFigure(run).sharedPeak() }
