package facts

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

// Thinned is Curve with at most n of its points, at least four: the lowest and the highest of each part.
func Thinned(run *mem.Run, s *mem.Series, n int) report.Series {
	curve := Curve(run, s)
	curve.X, curve.Y = thin(s.Times, s.Values, n)
	since(curve.X, run.Start())
	return curve
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
	return cmp.Or(KnownTitle(name), strings.NewReplacer(".", ", ", "_", " ").Replace(string(name)))
}

// KnownTitle is that of a quantity of our own; "" of another.
func KnownTitle(name mem.Quantity) string {
	if i := slices.IndexFunc(CurveNames, func(c curveName) bool { return c.Name == name }); i >= 0 {
		return CurveNames[i].title
	}
	return ""
}

// subjectOf is whose curve a series is.
func subjectOf(run *mem.Run, s *mem.Series) report.Subject {
	of := s.Device
	if s.Process != 0 {
		of = ProcessName(run.Process(s.Process))
		if s.Device != "" {
			of += " on " + s.Device
		}
	}
	if s.Framework != "" {
		of = strings.TrimSpace(of + " (" + s.Framework + ")")
	}
	return report.Subject{Process: s.Process, Device: s.Device, Framework: s.Framework, Of: of}
}

// curveName is a series, and how it is called.
type curveName struct {
	Name  mem.Quantity
	title string
}

// CurveNames are the series that the picture can show, most wanted first.
var CurveNames = []curveName{
	{mem.SeriesTreeRSS, "RSS, all processes"}, {mem.SeriesTreePSS, "PSS, all processes"},
	{mem.SeriesAllocated, "allocated"},
	{mem.SeriesReserved, "reserved"}, {mem.SeriesDeviceUsed, "device, used"}, {mem.SeriesDeviceProcess, "device, process"},
	{mem.SeriesRSS, "RSS"}, {mem.SeriesRSSFile, "RSS, mapped files"}, {mem.SeriesRSSShared, "RSS, shared memory"},
	{mem.SeriesHeapLive, "heap, live"}, {mem.SeriesTreeUSS, "USS, all processes"},
	{mem.SeriesCgroupUsed, "control group, used"},
	{mem.SeriesCgroupLimit, "control group, limit"}, {mem.SeriesSystemAvailable, "system, available"},
	{mem.SeriesSwap, "swap"},
	{mem.SeriesPSS, "PSS"}, {mem.SeriesDeviceUtilisation, "utilisation"}, {mem.SeriesDeviceTemperature, "temperature"},
	{mem.SeriesDevicePower, "power"}, {mem.SeriesInactiveSplit, "unusable gaps"}, {mem.SeriesMajorFaults, "major faults"},
}

// thin keeps at most n points of a curve, at least four. These are the first, the last, and of each stretch of time its
// lowest and its highest, so that no peak is lost. It returns fresh slices.
func thin(times, values []int64, n int) ([]int64, []int64) {
	if len(times) <= n {
		return slices.Clone(times), slices.Clone(values)
	}
	buckets := (n - 2) / 2
	x, y := make([]int64, 0, n), make([]int64, 0, n)
	keep := func(i int) { x, y = append(x, times[i]), append(y, values[i]) }
	keep(0)
	first, last := times[0], times[len(times)-1]
	width := max((last-first)/int64(buckets)+1, 1)
	for i := 1; i < len(times)-1; {
		bucket := (times[i] - first) / width
		low, high := i, i
		for ; i < len(times)-1 && (times[i]-first)/width == bucket; i++ {
			if values[i] < values[low] {
				low = i
			}
			if values[i] > values[high] {
				high = i
			}
		}
		keep(min(low, high))
		if low != high {
			keep(max(low, high))
		}
	}
	keep(len(times) - 1)
	return x, y
}
