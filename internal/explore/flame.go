package explore

import (
	"slices"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// usesAt is what lived at a point by stack, of blocks that are wanted (nil: of all).
func (e *Explorer) usesAt(point int, wants func(n int) bool) []report.StackUse {
	var uses mem.Tally[uint32, report.StackUse]
	e.eachAt(point, func(n int) bool {
		if e.allocated(n, point) && (wants == nil || wants(n)) {
			e.use(&uses, n)
		}
		return true
	})
	return uses.All
}

// usesIn is what was allocated between two points, the second not among them, by stack.
func (e *Explorer) usesIn(from, to int, wants func(n int) bool) []report.StackUse {
	var uses mem.Tally[uint32, report.StackUse]
	first, _ := slices.BinarySearch(e.From, int32(max(from, 1)-1))
	for n := first; n < e.Len() && int(e.From[n])+1 < to; n++ {
		if wants == nil || wants(n) {
			e.use(&uses, n)
		}
	}
	return uses.All
}

// FlameAt is what lived at a point by call stack, of blocks that are wanted; nil: of all.
func (e *Explorer) FlameAt(point int, wants func(n int) bool) report.StackSet {
	point = min(max(point, 0), e.Points()-1)
	set := e.flame("allocated at the moment", e.usesAt(point, wants))
	set.Event = mem.Some(int64(point - 1))
	return set
}

// FlameIn is what was allocated in a range of points by call stack, likewise.
func (e *Explorer) FlameIn(from, to int, wants func(n int) bool) report.StackSet {
	return e.flame("allocated in the range, freed since or not", e.usesIn(from, to, wants))
}

func (e *Explorer) flame(title string, uses []report.StackUse) report.StackSet {
	e.naming.Lock()
	defer e.naming.Unlock()
	return analyze.StackSetOf(e.Names, report.StackSet{Name: "device", Title: title, Label: e.Label}, uses)
}

// use counts a block; Node is its stack until a tree has a place for it.
func (e *Explorer) use(uses *mem.Tally[uint32, report.StackUse], n int) {
	u := uses.At(e.Stack[n])
	u.Node = int(e.Stack[n])
	u.Bytes += e.Bytes[n]
	u.Count++
}
