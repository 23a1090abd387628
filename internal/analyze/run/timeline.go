package run

import (
	"cmp"
	"slices"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// How much of a run the picture carries: enough for a wide screen, and a report of an hour's run
// under a megabyte.
const (
	leadPoints      = 2000
	allPoints       = 16000
	leastPoints     = 200
	barsShown       = 2500
	stepsShown      = 1000
	marksShown      = 200
	processesCurved = 12
)

// timeline makes the picture: curves thinned without losing their peaks, an even selection of phases
// and steps, and marks for what happened.
func timeline(in *Input) (r report.Part) {
	in.curves(&r)
	in.bars(&r)
	in.stepPoints(&r)
	in.marks(&r)
	return r
}

func (in *Input) curves(r *report.Part) {
	large := in.largestProcesses(processesCurved)
	rank := map[mem.Quantity]int{}
	for i, c := range facts.CurveNames {
		rank[c.Name] = i
	}
	var chosen []*mem.Series
	for _, s := range in.Run.Series {
		if settled := in.Find(0, mem.SeriesTreePSS); s.Name == mem.SeriesTreePSS && s.Process == 0 && settled != nil &&
			settled.ID == s.ID {
			s = settled
		}
		_, known := rank[s.Name]
		if !known || len(s.Values) == 0 || s.Process != 0 && !large[s.Process] || in.quiet(s) {
			continue
		}
		chosen = append(chosen, s)
	}
	slices.SortStableFunc(chosen, func(a, b *mem.Series) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(a.Process, b.Process),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Framework, b.Framework))
	})
	share := leadPoints
	if len(chosen) > 1 {
		share = min(max((allPoints-leadPoints)/(len(chosen)-1), leastPoints), leadPoints)
	}
	for i, s := range chosen {
		points := share
		if i == 0 {
			points = leadPoints
		}
		r.Series = append(r.Series, facts.Thinned(in.Run, s, points))
	}
}

// quiet series have nothing to show: all zero, where zero is the ordinary case.
func (in *Input) quiet(s *mem.Series) bool {
	switch s.Name {
	case mem.SeriesRSSFile: // every process has some: its libraries
		_, _, rose := in.FilesRose(s.Process)
		return !rose
	case mem.SeriesPSS: // one reading is no course: it may be from any moment, far from the highest
		return len(s.Values) < 2
	case mem.SeriesRSSShared:
		return float64(s.Values[s.Peak()]) < facts.LeastTotal
	case mem.SeriesSwap, mem.SeriesMajorFaults, mem.SeriesInactiveSplit, mem.SeriesAllocated, mem.SeriesReserved,
		mem.SeriesDeviceProcess:
		return s.Values[s.Peak()] == 0
	}
	return false
}

func (in *Input) largestProcesses(n int) map[uint32]bool {
	all := slices.Clone(in.Run.Processes)
	high := map[uint32]int64{}
	for _, p := range all {
		high[p.ID] = in.ProcessPeak(p).Or(0)
	}
	slices.SortStableFunc(all, func(a, b *mem.Process) int { return cmp.Compare(high[b.ID], high[a.ID]) })
	chosen := map[uint32]bool{in.Leader: true}
	for _, p := range all {
		if len(chosen) >= n {
			break
		}
		chosen[p.ID] = true
	}
	return chosen
}

// bars selects spans for the timeline: all, or those of whole steps at even distances. Modules lie
// inside forward and are left out where they would crowd out whole steps.
func (in *Input) bars(r *report.Part) {
	inSteps, total := in.spansOfSteps()
	withModules := in.Run.Spans.Len()
	stride := uint64(1)
	for kept := total; kept > barsShown; {
		stride++
		if stride > 64 {
			stride += stride / 8
		}
		kept = 0
		for _, of := range inSteps {
			if of.step%stride == 0 {
				if kept += min(of.spans, 64); kept > barsShown {
					break
				}
			}
		}
		if stride > 1<<40 {
			break
		}
	}
	inStep := map[stepKey]int{}
	for s := range in.Run.Spans.All() {
		if s.Phase == mem.PhaseUser || s.Step%stride != 0 || s.Phase == mem.PhaseModule && withModules > barsShown ||
			len(r.Phases) >= barsShown {
			continue
		}
		if k := (stepKey{s.Process, s.Step}); stride > 1 {
			if inStep[k]++; inStep[k] > 64 {
				continue
			}
		}
		r.Phases = append(r.Phases, report.PhaseBar{Process: s.Process, Phase: s.Phase, Name: s.Name, Step: s.Step,
			Start: in.Since(s.Start), End: in.Since(s.End)})
	}
	in.userBars(r)
	slices.SortStableFunc(r.Phases, func(a, b report.PhaseBar) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
}

// userBars adds the longest of the spans that the program named.
func (in *Input) userBars(r *report.Part) {
	const most = 1000
	var spans []mem.Span
	for s := range in.Run.Spans.User() {
		spans = append(spans, *s)
	}
	slices.SortStableFunc(spans, func(a, b mem.Span) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	for _, s := range spans[:min(len(spans), most)] {
		r.Phases = append(r.Phases, report.PhaseBar{Process: s.Process, Phase: s.Phase, Name: s.Name, Step: s.Step,
			Start: in.Since(s.Start), End: in.Since(s.End), RSSPeak: s.RSSPeak})
	}
}

type stepKey struct {
	process uint32
	step    uint64
}

type stepSpans struct {
	stepKey
	spans int
}

// spansOfSteps counts the spans of each step, modules left out, and all of them. Those of a step mostly
// stand together, so few need to be looked up.
func (in *Input) spansOfSteps() (steps []stepSpans, total int) {
	places := map[stepKey]int{}
	last := -1
	for s := range in.Run.Spans.All() {
		if s.Phase == mem.PhaseModule || s.Phase == mem.PhaseUser {
			continue
		}
		total++
		if key := (stepKey{s.Process, s.Step}); last < 0 || steps[last].stepKey != key {
			place, seen := places[key]
			if !seen {
				place = len(steps)
				places[key] = place
				steps = append(steps, stepSpans{stepKey: key})
			}
			last = place
		}
		steps[last].spans++
	}
	return steps, total
}

func (in *Input) stepPoints(r *report.Part) {
	large := in.largestProcesses(processesCurved)
	total := 0
	for id, steps := range in.Steps {
		if large[id] {
			total += len(steps)
		}
	}
	stride := (total + stepsShown - 1) / stepsShown
	for _, p := range in.Run.Processes {
		if !large[p.ID] {
			continue
		}
		steps := in.Steps[p.ID]
		_, _, files := in.FilesRose(p.ID)
		for i, s := range steps {
			if i%max(stride, 1) == 0 || i == len(steps)-1 {
				point := report.StepPoint{Process: s.Process, Step: s.Number, Time: in.Since(s.Time), RSS: s.RSS, Heap: s.Heap,
					Device: s.Device}
				if rss, ok := s.RSS.Get(); ok && files {
					point.Kept = mem.Some(in.NotTakenBack(p.ID, facts.Levels{Times: []int64{s.Time}, Values: []int64{rss}})[0])
				}
				r.Steps = append(r.Steps, point)
			}
		}
	}
}

// marks are the events worth a line on the timeline.
func (in *Input) marks(r *report.Part) {
	for _, e := range in.Run.Events {
		switch e.Kind {
		case "oom", "kill", "alert", "exception", "stop", "gap", "mark":
		default:
			continue
		}
		if len(r.Marks) < marksShown {
			r.Marks = append(r.Marks, report.Mark{Time: in.Since(e.Time), Kind: e.Kind, Text: report.FirstLine(e.Text, 160),
				Process: e.Process})
		}
	}
	if t, ok := in.Peak.Time.Get(); ok {
		r.Marks = append(r.Marks, report.Mark{Time: t, Kind: "peak", Text: "peak", Process: in.Peak.Process})
	}
	for _, s := range in.Run.Snapshots {
		r.Marks = append(r.Marks, report.Mark{Time: in.Since(s.Time), Kind: "snapshot", Text: s.Name, Process: s.Process})
	}
	slices.SortStableFunc(r.Marks, func(a, b report.Mark) int { return cmp.Compare(a.Time, b.Time) })
}
