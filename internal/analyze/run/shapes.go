package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	shapesShown  = 12
	changesShown = 4
)

// shapes says what memory did as a whole: of the process that matters in words, of each curve in a table.
func shapes(in *Input) (r report.Part) {
	in.shapeNote(&r)
	t := report.Table{
		Name: "shapes", Title: "Curves", Note: in.shapeSpan() +
			" Changes are where a curve went to another level and stayed there.",
		Columns: []report.Column{report.TextColumn("curve", "curve"), report.TextColumn("pattern", "pattern"),
			{Name: "period", Title: "period", Unit: mem.UnitNanoseconds, Label: mem.Estimated},
			report.BytesColumn("lowest", "lowest", ""), report.BytesColumn("median", "median", ""),
			report.BytesColumn("highest", "highest", ""),
			report.TextColumn("changes", "changes"), report.TextColumn("label", "label")},
	}
	for _, s := range in.shaped() {
		times, values := in.whileWorking(cmp.Or(s.Process, in.Leader), s.Times, s.Values)
		shape := usage.ShapeOf(times, values)
		if shape.Kind == "" || len(t.Rows) >= shapesShown {
			continue
		}
		sorted := slices.Sorted(slices.Values(values))
		t.Add(in.curveName(s), shape.Kind, facts.NonZero(mem.Some(shape.Period)), sorted[0], sorted[len(sorted)/2],
			sorted[len(sorted)-1], in.changes(shape), string(s.Label))
	}
	r.AddTable(t)
	return r
}

// shapeSpan says what part of a run the patterns are of.
func (in *Input) shapeSpan() string {
	if in.ClockOf(in.Leader).Minutes {
		return "From the beginning to the end."
	}
	return "From the end of the first step to that of the last."
}

// whileWorking cuts a curve to the time in which a process worked: what it loads before its first step and gives back
// at its end is no pattern of its work.
func (in *Input) whileWorking(process uint32, times, values []int64) ([]int64, []int64) {
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	first, _ := slices.BinarySearch(times, from)
	beyond, _ := slices.BinarySearch(times, to+1)
	beyond = max(first, beyond)
	return times[first:beyond], values[first:beyond]
}

// shaped are the curves that are looked at: of the whole tree, and of the process and the devices that matter.
func (in *Input) shaped() (all []*mem.Series) {
	for _, s := range in.Run.Series {
		switch s.Name {
		case mem.SeriesTreePSS, mem.SeriesTreeRSS, mem.SeriesDeviceUsed:
			all = append(all, s)
		case mem.SeriesRSSFile:
			if _, _, rose := in.FilesRose(s.Process); rose && s.Process == in.Leader {
				all = append(all, s)
			}
		case mem.SeriesHeapLive, mem.SeriesAllocated, mem.SeriesReserved:
			if s.Process == in.Leader {
				all = append(all, s)
			}
		}
	}
	return all
}

// curveName is what a curve is of, and of whom where that is not the whole run.
func (in *Input) curveName(s *mem.Series) string {
	name := cmp.Or(facts.KnownTitle(s.Name), string(s.Name))
	if s.Process != 0 {
		name += " of " + in.ProcessName(s.Process)
	}
	if s.Device != "" {
		name += " on " + s.Device
	}
	return name
}

// changes are the largest ones between levels, in order of time.
func (in *Input) changes(s usage.Shape) string {
	type change struct {
		at       int64
		from, to mem.Bytes
	}
	var all []change
	for i := 1; i < len(s.Levels); i++ {
		all = append(all, change{s.Levels[i].From, mem.Bytes(s.Levels[i-1].Value), mem.Bytes(s.Levels[i].Value)})
	}
	slices.SortStableFunc(all, func(a, b change) int { return int(abs(b.to-b.from) - abs(a.to-a.from)) })
	left := len(all) - changesShown
	all = all[:min(len(all), changesShown)]
	slices.SortFunc(all, func(a, b change) int { return int(a.at - b.at) })
	var texts []string
	for _, c := range all {
		texts = append(texts, fmt.Sprintf("%s: %v to %v", report.Duration(in.Since(c.at)), c.from, c.to))
	}
	if left > 0 {
		texts = append(texts, fmt.Sprintf("%d smaller ones", left))
	}
	return strings.Join(texts, "; ")
}

// shapeNote is of the memory that the process which matters has at the ends of its steps; without steps, of all its
// samples. Mapped files whose pages the kernel can take back are left out, as of its growth.
func (in *Input) shapeNote(r *report.Part) {
	times, values, at := in.atSteps(in.Leader)
	of := "RSS of " + in.ProcessName(in.Leader)
	if _, _, rose := in.FilesRose(in.Leader); rose { // which are read with the samples, not at the ends of steps
		s := in.Find(in.Leader, mem.SeriesRSS)
		times, values, at = s.Times, s.Values, "over time"
		of += ", without mapped files,"
	}
	times, values = in.whileWorking(in.Leader, times, in.NotTakenBack(in.Leader, facts.Levels{Times: times, Values: values}))
	if text := in.shapeText(usage.ShapeOf(times, values), at == atTheEnds); text != "" {
		r.AddNote("Pattern of the " + of + " " + at + ": " + text + " (measured).")
	}
}

const atTheEnds = "at the end of each step"

// atSteps is the RSS of a process at the ends of its steps, or at all times.
func (in *Input) atSteps(process uint32) (times, values []int64, at string) {
	for _, s := range in.Steps[process] {
		if v, ok := s.RSS.Get(); ok {
			times, values = append(times, s.Time), append(values, v)
		}
	}
	if len(times) > 0 {
		return times, values, atTheEnds
	}
	if s := in.Find(process, mem.SeriesRSS); s != nil {
		return s.Times, s.Values, "over time"
	}
	return nil, nil, ""
}

// shapeText describes a pattern. Between steps nothing new is needed; over time what was imported counts as well.
func (in *Input) shapeText(s usage.Shape, betweenSteps bool) string {
	switch s.Kind {
	case usage.Steady:
		return "steady after warm-up"
	case usage.WarmUp:
		return "a rise until " + report.Duration(in.Since(s.At)) + " after the start, then steady"
	case usage.SawTooth:
		if s.Period > 0 {
			return "a saw-tooth: it fills and is given back about every " + report.Duration(s.Period)
		}
		return "a saw-tooth: it fills and is given back again and again"
	case usage.Spikes:
		if s.Times > 1 {
			return fmt.Sprintf("flat but for %d spikes, %s together: that at %s decides the peak", s.Times,
				report.Duration(s.Lasts), report.Duration(in.Since(s.At)))
		}
		return "flat but for a spike: " + report.Duration(s.Lasts) + " at " + report.Duration(in.Since(s.At)) +
			" decide the peak"
	case usage.Staircase:
		return fmt.Sprintf("a staircase: it rises %d times and stays there", len(s.Levels)-1)
	case usage.Growth:
		if !in.grown.Grows() {
			return "higher at its end than at its beginning" // by less than is told as a growth
		}
		return "steady growth"
	case usage.NotBack:
		what := "insufficient cleanup"
		if !betweenSteps {
			what += ", or modules and data that are needed to the end"
		}
		return fmt.Sprintf("%s: it falls again, but not to where it began. It is %v at the beginning and %v at the end", what,
			mem.Bytes(s.First), mem.Bytes(s.Last))
	case usage.Uneven:
		return "uneven"
	}
	return ""
}

func abs(b mem.Bytes) mem.Bytes { return max(b, -b) }
