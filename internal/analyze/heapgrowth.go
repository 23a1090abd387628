package analyze

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"hightide/internal/mem"
)

// growthBins is how finely growth is looked at.
const growthBins = 64

// growingLine is a line of a process whose heap grows steadily.
type growingLine struct {
	trend
	place   place
	process uint32
	stack   uint32 // the one that grows most
	grown   mem.Bytes
	phase   mem.Phase
	stacks  int
	kept    mem.Bytes // live at the end of the window
}

// grid is the moments at which a process's heap is compared.
type grid struct {
	times []int64 // where each bin begins
	x     []float64
	end   int64
}

// gridOf cuts the history of a heap into bins of whole frames, inside the window of the clock.
func (in *Input) gridOf(h *mem.Heap, c *clock, p *mem.Process) grid {
	from, to := c.window(p, in.end)
	points := h.History
	i := sort.Search(len(points), func(i int) bool { return points[i].Time >= from })
	j := sort.Search(len(points), func(i int) bool { return points[i].Time > to })
	g := grid{end: to}
	n := min(growthBins, j-i)
	for b := range n {
		t := points[i+b*(j-i)/n].Time
		x := c.at(t)
		if len(g.x) > 0 && x <= g.x[len(g.x)-1] {
			continue
		}
		g.times, g.x = append(g.times, t), append(g.x, x)
	}
	return g
}

// lineHistory is what the stacks of one line held, in the bins of a grid.
type lineHistory struct {
	low       []float64
	noise            // of the growth
	stack     uint32 // the one that grew most
	stackRise mem.Bytes
	phase     mem.Phase
	stacks    int
	last      mem.Bytes
}

// growingLines finds the lines of a process whose heap grows steadily, fastest first.
func (in *Input) growingLines(process uint32, least float64) []growingLine {
	h := in.Run.Heap[process]
	if h == nil {
		return nil
	}
	c, p := in.clockOf(process), in.Run.Process(process)
	g := in.gridOf(h, c, p)
	if len(g.x) < 2 {
		return nil
	}
	whole := in.heapTrend(process, g, least)
	s := in.samplingOf(process)
	lines := map[place]*lineHistory{}
	var order []place
	for _, stack := range slices.Sorted(mapKeys(h.Sites)) {
		at := in.places.of(stack)
		l := lines[at]
		if l == nil {
			l = &lineHistory{low: make([]float64, len(g.x)), phase: h.Sites[stack][0].Phase}
			lines[at] = l
			order = append(order, at)
		}
		l.add(h.Sites[stack], g, s)
	}
	var found []growingLine
	for _, at := range order {
		l := lines[at]
		if l.low[len(l.low)-1]-l.low[0] < least/2 {
			continue
		}
		t := trendOf(curve{g.x, l.low}, l.noise, least)
		if t.why == "too short" {
			t = shareOf(whole, g, l, least)
		}
		if !t.steady {
			continue
		}
		found = append(found, growingLine{trend: t, place: at, process: process, stack: l.stack, grown: l.stackRise, phase: l.phase, stacks: l.stacks, kept: l.last})
	}
	slices.SortStableFunc(found, func(a, b growingLine) int {
		return cmp.Or(cmp.Compare(b.slope, a.slope), cmp.Compare(a.place.File, b.place.File), cmp.Compare(a.place.Line, b.place.Line))
	})
	return found
}

// heapTrend is the growth of a process's whole heap, of which there are readings at every step and
// every sampling interval, also where its sites were written only a few times.
func (in *Input) heapTrend(process uint32, g grid, least float64) trend {
	var times, values []int64
	for _, s := range in.steps[process] {
		if v, ok := s.Heap.Get(); ok {
			times, values = append(times, s.Time), append(values, v)
		}
	}
	if len(times) == 0 {
		s := in.find(process, mem.SeriesHeapLive)
		if s == nil {
			return trend{why: "too short"}
		}
		times, values = s.Times, s.Values
	}
	history := in.Run.Heap[process].History
	variance := min(history[len(history)-1].Variance, float64(values[len(values)-1])*defaultMean)
	return trendOf(binned(times, values, g.times[0], g.end, growthBins, in.clockOf(process).at), noise{variance: variance}, least)
}

// shareOf judges a line of which there are too few readings to see its course: where the whole heap
// grows steadily, a line that rose by a good part of that is what grows.
func shareOf(whole trend, g grid, l *lineHistory, least float64) trend {
	from, end := 0, len(g.x)-1
	for end-from > 1 && g.x[from] < g.x[0]+warmUp*(g.x[end]-g.x[0]) {
		from++
	}
	span, rise := g.x[end]-g.x[from], l.low[end]-l.low[from]
	t := trend{slope: rise / span, half: 1.96 * math.Sqrt(l.variance) / span, growth: rise, why: "too short"}
	if !whole.steady || rise < least || rise < significance*math.Sqrt(l.variance) || t.slope < 0.15*whole.slope || t.slope > 2*whole.slope {
		return t
	}
	if l.low[end]-l.low[len(g.x)/2] < laterRises*math.Sqrt(l.later) {
		t.why = "stops"
		return t
	}
	t.steady, t.why = true, ""
	return t
}

func mapKeys[V any](m map[uint32]V) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// add sums one site into its line. Between the points of a site it holds what the last one said.
func (l *lineHistory) add(points []mem.SitePoint, g grid, s sampling) {
	l.stacks++
	var held, first, middle, last mem.SiteUse
	k := 0
	for b, t := range g.times {
		end := g.end + 1
		if b+1 < len(g.times) {
			end = g.times[b+1]
		}
		for k < len(points) && points[k].Time <= t {
			held = points[k].SiteUse
			k++
		}
		low := held.Live
		if b == 0 {
			first = held
		}
		if b == len(g.times)/2 {
			middle = held
		}
		for k < len(points) && points[k].Time < end {
			held = points[k].SiteUse
			low = min(low, held.Live)
			k++
		}
		last = held
		l.low[b] += float64(low)
	}
	l.measure(first, middle, last, s)
}

// measure adds to the error of the line's growth, and to the noise of its later half.
func (l *lineHistory) measure(first, middle, last mem.SiteUse, s sampling) {
	excess := s.mean
	if last.Count > 0 {
		excess = s.excess(float64(last.Live) / float64(last.Count))
	} else if first.Count > 0 {
		excess = s.excess(float64(first.Live) / float64(first.Count))
	}
	rise, turned := turnover(first, last)
	l.variance += float64(min(max(rise, 0)+turned, first.Live+last.Live)) * max(excess, 0)
	_, turned = turnover(middle, last)
	l.later += float64(turned) * max(excess, 0)
	l.last += last.Live
	if rise > l.stackRise || l.stack == 0 {
		l.stack, l.stackRise, l.phase = last.Stack, rise, last.Phase
		if last.Stack == 0 {
			l.stack, l.phase = first.Stack, first.Phase
		}
		l.grain = excess
	}
}

// turnover is how many bytes more a site holds in its second use than in its first, and the bytes whose
// sampling makes noise of that even where nothing grows: what was freed and what took its place, but no more than
// the two ends hold.
func turnover(from, to mem.SiteUse) (rise, turned mem.Bytes) {
	rise = to.Live - from.Live
	freed := max(to.Allocated-from.Allocated, 0) - rise
	return rise, max(min(2*freed, from.Live+to.Live), 0)
}
