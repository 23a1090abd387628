// Package usage says what each stack held, when: the one model between recordings and snapshots on one side and
// everything that is said of them on the other.
//
//	mem.Heap (a sampled host heap) ──▶ FromHeap ──┐             ┌─▶ Held, Groups      who held it at a moment
//	                                              ├─▶ History ──┼─▶ Kept, TrendOf     what grows for good
//	mem.Trace (a device's allocator) ─▶ FromTrace ┘             ├─▶ Bands             its course by group
//	                                                            └─▶ Tree              a flame graph
//
// A History is spans: so many bytes of one stack from one moment to another. A trace has one for each block, exact,
// and a moment for each event. A sampled heap has layers, of what a stack's estimate rose by and when it fell below
// that again, and a moment for each reading. Its figures carry a variance, which is zero for a trace. What is asked
// of a History is asked of spans, so host heaps and device traces have one peak, one growth, one timeline, one flame
// graph.
//
// Names gives stacks the lines that people look for, Categories says what memory is for. What only a device's
// allocator knows (segments, pools, what was asked for before rounding, free memory in pieces) is in Device. It has
// no host counterpart: no heap tells how malloc divides its memory.
//
// Three things are told twice, for a reason:
// - Steps and phases of a run are what the agent saw, with the memory of the process at their edges. Of a trace they
// are inferred
//
//	from its stacks (Device.Steps), as nothing else in a file tells them.
//
// - The picture of a run is its series: readings of processes and machines, which belong to no stack. Bands by line
// are drawn of
//
//	traces alone. Those of a sampled heap would not add up to the RSS above them, of which the heap is only a part.
//
// - A growth in a run is joined with the container that was seen to gain items, and held against the room that is
// left. No file
//
//	tells of either.
//
// Everything is a pure function. Read History here, then FromTrace in trace.go and FromHeap in heap.go.
package usage

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"hightide/internal/mem"
)

// Moment is a point in the order of a History: just after an event of a trace, or a reading of a heap. Beginning is
// before the first.
type Moment = int

// Beginning and Never are the moments before the first and after the last of any History.
const (
	Beginning Moment = -1
	Never     Moment = math.MaxInt32
)

// History is what each stack held, when.
type History struct {
	Stacks  *mem.StackTable
	Label   mem.Label
	Moments int     // their number
	Times   []int64 // ns, by moment; empty: not known
	Spans

	Peak Peak
	errs *sampled // nil: exact
}

// Spans are what was held in columns, in order of From: Bytes of a Stack were held at the moments m with From ≤ m < To.
type Spans struct {
	Stack    []uint32
	Bytes    []mem.Bytes
	From, To []int32 // From is -1 for what was there at the beginning, To is Never for what outlives the history
}

// Peak is the highest moment. The recorder of a heap sees it between two readings, with a picture of its own: then
// Moment is the last reading before it.
type Peak struct {
	Moment   Moment
	Time     int64 // 0: not known
	Step     uint64
	Bytes    mem.Bytes
	Variance float64 // bytes²; 0: exact
	uses     []Use
}

// Use is what one stack held at a moment.
type Use struct {
	Stack    uint32
	Bytes    mem.Bytes
	Blocks   uint64  // of a sampled heap: those sampled
	Variance float64 // of Bytes, bytes²; 0: exact
	Phase    mem.Phase
	Absent   mem.Bytes // allocated besides, and not resident
}

// Len is the number of spans.
func (s *Spans) Len() int { return len(s.Bytes) }

// HeldAt says whether a span was held at a moment.
func (s *Spans) HeldAt(span int, at Moment) bool {
	return int(s.From[span]) <= at && at < int(s.To[span])
}

// Each calls with every span that was held at a moment, in the order in which they began. It looks through two
// columns, with no index: of ten million events, what was held at any moment takes 16 ms (BenchmarkHeld).
func (s *Spans) Each(at Moment, with func(span int)) {
	m := int32(min(at, Never))
	to := s.To
	for i, from := range s.From {
		if from > m {
			return
		}
		if to[i] > m {
			with(i)
		}
	}
}

// Total is what was held at a moment.
func (h *History) Total(at Moment) (sum mem.Bytes) {
	h.Each(at, func(i int) { sum += h.Bytes[i] })
	return sum
}

// Held is what each stack held at a moment, by stack.
func (h *History) Held(at Moment) []Use {
	var uses mem.Tally[uint32, Use]
	h.Each(at, func(i int) {
		use := uses.At(h.Stack[i])
		use.Stack = h.Stack[i]
		use.Bytes += h.Bytes[i]
		use.Blocks++
	})
	if h.errs != nil {
		for i := range uses.All {
			h.errs.measure(&uses.All[i], at)
		}
	}
	slices.SortFunc(uses.All, func(a, b Use) int { return cmp.Compare(a.Stack, b.Stack) })
	return uses.All
}

// KeptSince is what each stack held at a moment of what it took after an earlier one, by stack. Beside a sampled
// figure no error is known.
func (h *History) KeptSince(from, at Moment) []Use {
	var uses mem.Tally[uint32, Use]
	h.Each(at, func(i int) {
		if int(h.From[i]) > from {
			use := uses.At(h.Stack[i])
			use.Stack = h.Stack[i]
			use.Bytes += h.Bytes[i]
		}
	})
	return uses.All
}

// AtPeak is what each stack held at the highest moment.
func (h *History) AtPeak() []Use {
	if h.Peak.uses != nil {
		return h.Peak.uses
	}
	return h.Held(h.Peak.Moment)
}

// Exact says whether the figures have no error.
func (h *History) Exact() bool { return h.errs == nil }

// TimeOf is when a moment was, 0 where that is not known.
func (h *History) TimeOf(at Moment) int64 {
	if len(h.Times) == 0 {
		return 0
	}
	return h.Times[min(max(at, 0), len(h.Times)-1)]
}

// MomentAt is the last moment at or before a time; Beginning: none.
func (h *History) MomentAt(time int64) Moment {
	return sort.Search(len(h.Times), func(i int) bool { return h.Times[i] > time }) - 1
}

// Stretch is a range of moments, both ends in it.
type Stretch struct {
	From Moment `json:"from_event" doc:"The number of its first event."`
	To   Moment `json:"to_event" doc:"The number of its last event."`
}

// Kept is what each group held all through each of some stretches, which are in order and apart. That is what was
// there at the beginning of one and not given back before its end. group numbers the groups of spans from 0; negative
// ones do not count.
func (h *History) Kept(stretches []Stretch, groups int, group func(span int) int) [][]mem.Bytes {
	kept := make([][]mem.Bytes, groups)
	if len(stretches) == 0 {
		return kept
	}
	ends := make([]int, len(stretches))
	for k, s := range stretches {
		ends[k] = s.To
	}
	first := 0 // stretch that begins when a span does, or later
	for i, from := range h.From {
		for first < len(stretches) && stretches[first].From < int(from) {
			first++
		}
		last, _ := slices.BinarySearch(ends, int(h.To[i])) // of which it does not see the end
		if first >= last {
			continue
		}
		g := group(i)
		if g < 0 {
			continue
		}
		if kept[g] == nil {
			kept[g] = make([]mem.Bytes, len(stretches))
		}
		for k := first; k < last; k++ {
			kept[g][k] += h.Bytes[i]
		}
	}
	return kept
}

// Rise is what each stack held at a moment beyond what it held at an earlier one. A stack that holds less is left
// out. The figures of a sample at both moments are of the same blocks where these are alive at both, so the error is
// that of the later one at most.
func Rise(h *History, from, to Moment) []Use {
	before := map[uint32]Use{}
	for _, use := range h.Held(from) {
		before[use.Stack] = use
	}
	var rise []Use
	for _, use := range h.Held(to) {
		was := before[use.Stack]
		if use.Bytes <= was.Bytes {
			continue
		}
		use.Variance *= float64(use.Bytes-was.Bytes) / float64(use.Bytes)
		use.Bytes -= was.Bytes
		use.Blocks -= min(was.Blocks, use.Blocks)
		rise = append(rise, use)
	}
	return rise
}
