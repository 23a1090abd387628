package facts

import (
	"slices"
	"sort"

	"hightide/internal/mem"
)

// What a tree of processes took together is known to bounds that are wide at some moments and narrow at others
// (internal/sampler/footprint.go). The highest it took lies between the highest lower and the highest upper bound:
//
//	upper ┄┄┄┄╭╌╌╮                   what processes share only becomes less: by as much as a later moment
//	      ╭──╯   ╰╌╌╌────╮           shows more of it to be shared, a moment's upper bound is too high
//	lower ╯              ╰───
//
// The curve that is shown goes through the middle of the bounds, and no higher than the middle of the peak's.

// leastPSSError is the part of a PSS that it may always be off by: processes are read one after the other while they
// run.
const leastPSSError = 0.005

// boundPSS finds that peak, and replaces the curve by one that has it.
func (in *Facts) boundPSS() {
	pss, half := in.Find(0, mem.SeriesTreePSS), in.Find(0, mem.SeriesTreePSSError)
	if pss == nil {
		return
	}
	n := len(pss.Values)
	least, most := make([]int64, n), make([]int64, n)
	for i, v := range pss.Values {
		e := int64(0)
		if half != nil {
			e = half.At(pss.Times[i]).Or(0)
		}
		least[i], most[i] = v-e, v+e
	}
	in.boundByLater(pss.Times, least, most)
	low, high := slices.Max(least), slices.Max(most)
	in.PSSPeak = PSSPeak{low + (high-low)/2, (high - low + 1) / 2}
	in.PSSPeak.Half = max(in.PSSPeak.Half, int64(leastPSSError*float64(in.PSSPeak.Bytes)))
	in.series[seriesKey{0, mem.SeriesTreePSS}] = through(pss, least, most, in.PSSPeak.Bytes)
}

// boundByLater lowers upper bounds by what later moments tell of sharing. Where that contradicts the lower bound,
// both are off by as much.
func (in *Facts) boundByLater(times, least, most []int64) {
	pages, segments := laterOf(in.Find(0, mem.SeriesTreeShared)), laterOf(in.Find(0, mem.SeriesTreeSegments))
	for i, t := range times {
		bound := most[i] - pages.rise(t) - segments.rise(t)
		most[i] = max(bound, least[i])
		least[i] = min(bound, least[i])
	}
}

// later is a series, with the highest value from each of its moments on.
type later struct {
	*mem.Series
	highest []int64
}

func laterOf(s *mem.Series) later {
	if s == nil {
		return later{}
	}
	l := later{s, slices.Clone(s.Values)}
	for i := len(l.highest) - 2; i >= 0; i-- {
		l.highest[i] = max(l.highest[i], l.highest[i+1])
	}
	return l
}

// rise is by how much the highest value from a moment on is above that of the moment.
func (l later) rise(t int64) int64 {
	if l.Series == nil {
		return 0
	}
	i := sort.Search(len(l.Times), func(i int) bool { return l.Times[i] >= t })
	if i == len(l.Times) {
		return 0
	}
	then := l.Values[i]
	if i > 0 && l.Times[i] > t { // between two values
		then = max(then, l.Values[i-1])
	}
	return max(l.highest[i]-then, 0)
}

// through is a curve within the bounds that reaches the peak and is nowhere higher. Of the moments that can have
// had the peak it is the one that is known to have had most.
func through(s *mem.Series, least, most []int64, peak int64) *mem.Series {
	curve, top := *s, -1
	curve.Values = make([]int64, len(s.Values))
	for i := range curve.Values {
		curve.Values[i] = min(least[i]+(most[i]-least[i])/2, peak)
		if most[i] >= peak && (top < 0 || least[i] > least[top]) {
			top = i
		}
	}
	curve.Values[top] = peak
	return &curve
}
