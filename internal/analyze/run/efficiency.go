package run

import (
	"fmt"
	"slices"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// efficiency shows what the score is made of.
func efficiency(in *Input) (r report.Part) {
	r.AddTable(in.scored.parts)
	return r
}

func (in *Input) score() (all scored) {
	l := in.Lead
	if l.Series == nil || len(l.Series.Values) < 2 || in.Verdict != nil {
		return all
	}
	all.parts = report.Table{
		Name: "efficiency", Title: "Efficiency",
		Columns: []report.Column{report.TextColumn("part", "part"), report.TextColumn("what", "what"),
			{Name: "score", Title: "score", Unit: mem.UnitMilli, Label: mem.Estimated}},
	}
	sum := 0.0
	add := func(part, what string, share float64) {
		share = min(max(share, 0), 1)
		sum += share
		all.parts.Add(part, what, int64(share*1000+0.5))
	}
	values := slices.Sorted(slices.Values(l.Series.Values))
	peak, half := values[len(values)-1], values[len(values)/2]
	if peak <= 0 {
		return scored{}
	}
	add("use", fmt.Sprintf("half of the samples have at least %v of the peak of %v", mem.Bytes(half), mem.Bytes(peak)),
		float64(half)/float64(peak))
	if in.grown.NotLooked == "" {
		kept := in.grown.Kept()
		add("growth", fmt.Sprintf("%v were kept by what grows", mem.Bytes(kept)), 1-float64(kept)/float64(peak))
	}
	if idle, of, ok := in.idleAtPeak(l); ok {
		add("fragmentation", fmt.Sprintf("%v of %v lay free in the allocator at the peak", mem.Bytes(idle), mem.Bytes(of)),
			1-float64(idle)/float64(of))
	}
	if lost, ok := in.lostToFaults(); ok {
		add("faults", fmt.Sprintf("%s went into page faults", report.Duration(lost)),
			1-float64(lost)/float64(max(in.End-in.Start, 1)))
	}
	all.milli = mem.Some(int64(10*sum/float64(len(all.parts.Rows))*1000 + 0.5))
	return all
}

// idleAtPeak is what an allocator had and nobody used when the leading curve was highest, and of how much.
func (in *Input) idleAtPeak(l facts.Lead) (idle, of int64, ok bool) {
	if l.Series == nil || len(l.Series.Values) == 0 {
		return 0, 0, false
	}
	at := l.Series.Times[l.Series.Peak()]
	if l.Name == mem.SeriesReserved {
		if allocated := in.sameAllocator(l.Series, mem.SeriesAllocated); allocated != nil {
			of = l.Series.Values[l.Series.Peak()]
			return of - allocated.At(at).Or(of), of, of > 0
		}
		return 0, 0, false
	}
	if rss, found := in.RSSAt(in.Leader, at); found {
		if free, known := in.HolesAt(in.Leader, at).Get(); known {
			return free, rss, rss > 0
		}
	}
	return 0, 0, false
}

// lostToFaults is an estimate of the time that page faults of all processes took.
func (in *Input) lostToFaults() (lost int64, ok bool) {
	for _, p := range in.Run.Processes {
		minor, major := in.LastOf(p.ID, mem.SeriesMinorFaults), in.LastOf(p.ID, mem.SeriesMajorFaults)
		ok = ok || minor.Known() || major.Known()
		lost += minor.Or(0)*int64(minorFaultCost) + major.Or(0)*int64(majorFaultCost)
	}
	return lost, ok
}
