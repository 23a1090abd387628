package usage

import (
	"maps"
	"math"
	"slices"
	"sort"

	"hightide/internal/mem"
)

// sampled is what a heap's figures are known by: the readings of each stack, and how they were sampled.
type sampled struct {
	Sampling
	points map[uint32][]mem.SitePoint
	times  []int64
	ages   []mem.HeapAges
}

// FromHeap is the history of one process's heap; nil where it was not sampled. A moment is a reading.
func FromHeap(run *mem.Run, process uint32) *History {
	heap := run.Heap[process]
	if heap == nil {
		return nil
	}
	h := &History{Stacks: &run.Stacks, Label: mem.Sampled, Moments: len(heap.History)}
	for _, p := range heap.History {
		h.Times = append(h.Times, p.Time)
	}
	if run.Process(process).HeapTraced() {
		h.Label = mem.Measured
	}
	s := SamplingOf(run, process)
	h.errs = &sampled{s, heap.Sites, h.Times, heap.Ages}
	h.layers(heap)
	h.Peak = heapPeak(heap, s)
	h.Peak.Moment = h.MomentAt(h.Peak.Time)
	return h
}

// heapPeak is the picture that the recorder made at the highest live heap, else the highest reading.
func heapPeak(heap *mem.Heap, s Sampling) Peak {
	var p Peak
	for _, at := range heap.History {
		if at.Live > p.Bytes {
			p = Peak{Time: at.Time, Step: at.Step, Bytes: at.Live, Variance: at.Variance}
		}
	}
	if at := heap.Peak; at != nil {
		p = Peak{Time: at.Time, Step: at.Step, Bytes: at.Live, Variance: at.Variance, uses: []Use{}}
		for _, site := range at.Sites {
			p.uses = append(p.uses, Use{site.Stack, site.Live, site.Count, s.Variance(site, site.Live), site.Phase, site.Absent})
		}
	}
	return p
}

// layers turns the readings of each stack into spans. What a stack rises by is a layer upon what it held; what it
// falls by is taken from the top. So a layer lasts as long as the stack holds no less.
func (h *History) layers(heap *mem.Heap) {
	type layer struct {
		bytes mem.Bytes
		from  int32
	}
	type span struct {
		layer
		stack uint32
		to    int32
	}
	var all []span
	var open []layer
	for _, stack := range slices.Sorted(maps.Keys(heap.Sites)) {
		held := mem.Bytes(0)
		for _, p := range heap.Sites[stack] {
			at := int32(h.reading(p.Time))
			for held > max(p.Live, 0) {
				top := &open[len(open)-1]
				cut := min(held-max(p.Live, 0), top.bytes)
				if top.from < at {
					all = append(all, span{layer{cut, top.from}, stack, at})
				}
				held -= cut
				if top.bytes -= cut; top.bytes == 0 {
					open = open[:len(open)-1]
				}
			}
			if p.Live > held {
				open = append(open, layer{p.Live - held, at})
				held = p.Live
			}
		}
		for _, l := range open {
			all = append(all, span{l, stack, int32(Never)})
		}
		open = open[:0]
	}
	// By their beginning, in the order of stacks where that is the same: sorted by counting.
	next := make([]int, len(h.Times)+2)
	for _, s := range all {
		next[s.from+1]++
	}
	for i := range next[1:] {
		next[i+1] += next[i]
	}
	h.Stack, h.Bytes = make([]uint32, len(all)), make([]mem.Bytes, len(all))
	h.From, h.To = make([]int32, len(all)), make([]int32, len(all))
	for _, s := range all {
		if int(s.stack) >= h.Stacks.Len() { // what defined it was lost
			s.stack = 0
		}
		i := next[s.from]
		next[s.from]++
		h.Stack[i], h.Bytes[i], h.From[i], h.To[i] = s.stack, s.bytes, s.from, s.to
	}
}

// reading is the moment of a time at which something was read.
func (h *History) reading(time int64) Moment {
	return sort.Search(len(h.Times), func(i int) bool { return h.Times[i] >= time })
}

// at is what a stack held at a moment, as it was read.
func (s *sampled) at(stack uint32, at Moment) (use mem.SiteUse) {
	if at < 0 || len(s.times) == 0 {
		return use
	}
	points, time := s.points[stack], s.times[min(at, len(s.times)-1)]
	n := sort.Search(len(points), func(i int) bool { return points[i].Time > time })
	if n == 0 {
		return use
	}
	return points[n-1].SiteUse
}

// Freed is what each stack of a sampled heap allocated in all and no longer held at a moment. What is allocated later
// counts as well: a stack that holds as much as before is written no sooner than at the end.
func (h *History) Freed(at Moment) map[uint32]mem.Bytes {
	freed := map[uint32]mem.Bytes{}
	if h.errs == nil {
		return freed
	}
	for stack := range h.errs.points {
		held := h.errs.at(stack, at)
		if bytes := h.errs.at(stack, Never).Allocated - held.Live - held.Absent; bytes > 0 {
			freed[stack] = bytes
		}
	}
	return freed
}

// measure adds what is known of how sure a use is.
func (s *sampled) measure(use *Use, at Moment) {
	site := s.at(use.Stack, at)
	use.Blocks, use.Phase = site.Count, site.Phase
	use.Variance = s.Variance(site, use.Bytes)
}

// Noise is what sampling adds to the growth of a stack over three moments: to that between the first and the last,
// and to that of the later half. An exact history has none. excess is what one of its samples stands for beyond its
// own size.
func (h *History) noise(stack uint32, first, middle, last Moment) (whole, later, excess float64) {
	if h.errs == nil {
		return 0, 0, 0
	}
	s := h.errs
	a, b, c := s.at(stack, first), s.at(stack, middle), s.at(stack, last)
	excess = s.Mean
	if c.Count > 0 {
		excess = s.of(c)
	} else if a.Count > 0 {
		excess = s.of(a)
	}
	rise, turned := turnover(a, c)
	if c.Excess > 0 && rise > 0 { // what was there before is no part of the rise
		if added := float64(c.Live)*s.of(c) - float64(a.Live)*s.of(a); added > 0 {
			excess = added / float64(rise)
		}
	}
	whole = float64(min(max(rise, 0)+turned, a.Live+c.Live)) * max(excess, 0)
	_, turned = turnover(b, c)
	return whole, float64(turned) * max(excess, 0), excess
}

// turnover is how many bytes more a site holds in its second use than in its first, and the bytes whose
// sampling makes noise of that even where nothing grows. That is what was freed and what took its place, but no more
// than the two ends hold.
func turnover(from, to mem.SiteUse) (rise, turned mem.Bytes) {
	rise = to.Live - from.Live
	freed := max(to.Allocated-from.Allocated, 0) - rise
	return rise, max(min(2*freed, from.Live+to.Live), 0)
}

// DefaultMean is the heap library's mean distance between samples, in bytes.
const DefaultMean = float64(512 * mem.KiB)

// Sampling says how a process's heap was sampled, and so how far its figures can be off.
//
// A block of size s is recorded with probability 1-exp(-s/mean) and then stands for
// w = s/(1-exp(-s/mean)) bytes; its share of the variance is w(w-s). A site's blocks are taken to be
// of like size, so its average weight gives s, and s the variance.
type Sampling struct{ Mean float64 }

// SamplingOf is how a process's heap was sampled.
func SamplingOf(run *mem.Run, process uint32) Sampling {
	mean := DefaultMean
	if run.Process(process).HeapTraced() {
		return Sampling{} // all of it is known
	}
	if p := run.Process(process); p != nil {
		if v := p.HeapMean.Or(0); v > 0 {
			mean = float64(v)
		}
	}
	return Sampling{calibrate(run.Heap[process], mean)}
}

// WholeBlock is the size from which on the heap library records each block.
const WholeBlock = 4 * mem.MiB

// Least is the least growth in blocks that are much smaller than the mean, in bytes, which is no chance of the sample:
// the variance of what is kept is the mean for each of its bytes, and its later half must be clear of its own.
func (s Sampling) Least() float64 {
	return max(square(significance), 2*square(laterRises)) * s.Mean
}

// calibrate raises the mean where the recorder's own variance at the peak says that it was larger:
// it adapts to the load, and the process has only its last value. What no mean explains leaves it as it is.
func calibrate(heap *mem.Heap, mean float64) float64 {
	if heap == nil || heap.Peak == nil || heap.Peak.Variance <= 0 {
		return mean
	}
	before := -1.0
	for range 8 {
		var sum float64
		for _, u := range heap.Peak.Sites[:min(len(heap.Peak.Sites), 2000)] {
			sum += Sampling{mean}.Variance(u, u.Live)
		}
		if sum <= before {
			return mean / 1.5
		}
		if sum >= 0.7*heap.Peak.Variance {
			break
		}
		before = sum
		mean *= 1.5
	}
	return mean
}

// excess is w-s for a site whose blocks stand for w bytes each: the variance a byte of it carries.
func (s Sampling) excess(w float64) float64 {
	if w <= s.Mean*1.0005 {
		return w // blocks much smaller than the mean: each stands for the mean alone
	}
	if w > 12*s.Mean {
		return 0
	}
	size := w
	for range 24 {
		size = w * -math.Expm1(-size/s.Mean)
	}
	return w - size
}

// of is the variance that a byte of a site carries: as the recorder says it, where the mean changed.
func (s Sampling) of(site mem.SiteUse) float64 {
	if site.Excess > 0 {
		return float64(site.Excess)
	}
	return s.excess(float64(site.Live) / float64(max(site.Count, 1)))
}

// Variance of so much of what a site holds, in bytes².
func (s Sampling) Variance(site mem.SiteUse, live mem.Bytes) float64 {
	if live <= 0 || site.Count == 0 {
		return 0
	}
	site.Live = live
	return float64(live) * s.of(site)
}

// Half95 is the half width of the 95 % interval around what an estimate says. The variance is estimated with it, too
// small where the estimate is. So both ends of the score interval are inside, that of the counts for which the
// estimate would be within 1.96 of their own standard deviations. Of a few samples only, it is no wider than the
// estimate.
func Half95(variance float64, estimate mem.Bytes) mem.Bytes {
	if variance <= 0 {
		return 0
	}
	plain, grain := 1.96*math.Sqrt(variance), 0.0
	if estimate > 0 {
		grain = variance / float64(estimate) // what one sample stands for
	}
	score := 1.96*math.Sqrt(variance+square(0.98*grain)) + 1.92*grain
	return mem.Bytes(math.Round(max(plain, min(score, float64(estimate)))))
}
