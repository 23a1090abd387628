package analyze

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Curve says what a series of a run is: whose, of what, and what people call it. It has no points yet.
func Curve(run *mem.Run, s *mem.Series) report.Series {
	return report.Series{
		Name: s.Name, Subject: subjectOf(run, s), Title: titleOf(s.Name), Unit: s.Unit, XUnit: mem.UnitNanoseconds,
		Label: s.Label, Error: s.Error,
	}
}

// Between is Curve with the points of a stretch of time, in ns since the run began. It has the nearest point on
// either side of it too, so that a line can be drawn from edge to edge. Of more than n points, at least four, it
// keeps the lowest and the highest of each part.
func Between(run *mem.Run, s *mem.Series, from, to int64, n int) report.Series {
	curve := Curve(run, s)
	start := run.Start()
	first := sort.Search(len(s.Times), func(i int) bool { return s.Times[i]-start >= from })
	last := sort.Search(len(s.Times), func(i int) bool { return s.Times[i]-start > to })
	first, last = max(first-1, 0), min(last+1, len(s.Times))
	curve.X, curve.Y = []int64{}, []int64{}
	if first < last {
		curve.X, curve.Y = thin(s.Times[first:last], s.Values[first:last], max(n, leastThinned))
	}
	since(curve.X, start)
	return curve
}

// leastThinned is the fewest points that thin can keep: two ends, a low and a high.
const leastThinned = 4

// since has moments count from the beginning of a run.
func since(moments []int64, start int64) {
	for i := range moments {
		moments[i] = max(moments[i]-start, 0)
	}
}

func titleOf(name mem.Quantity) string {
	return cmp.Or(knownTitle(name), strings.NewReplacer(".", ", ", "_", " ").Replace(string(name)))
}

// knownTitle is that of a quantity of our own; "" of another.
func knownTitle(name mem.Quantity) string {
	if i := slices.IndexFunc(curveNames, func(c curveName) bool { return c.name == name }); i >= 0 {
		return curveNames[i].title
	}
	return ""
}

// subjectOf is whose curve a series is.
func subjectOf(run *mem.Run, s *mem.Series) report.Subject {
	of := s.Device
	if s.Process != 0 {
		of = processName(run.Process(s.Process))
		if s.Device != "" {
			of += " on " + s.Device
		}
	}
	if s.Framework != "" {
		of = strings.TrimSpace(of + " (" + s.Framework + ")")
	}
	return report.Subject{Process: s.Process, Device: s.Device, Framework: s.Framework, Of: of}
}

// MainCurve is the series that a report of the run leads with; nil: it has none.
func MainCurve(run *mem.Run) *mem.Series {
	in := &Input{Run: run, series: map[seriesKey]*mem.Series{}}
	in.index()
	in.leader = in.findLeader()
	return in.leadingSeries().series
}
