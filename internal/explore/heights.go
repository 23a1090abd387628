package explore

import "hightide/internal/mem"

// heights are the highest levels of stretches of points, so that a column of any width knows its own.
type heights struct {
	begin               []level // of each stretch of base points, at its first point
	allocated, reserved [][]mem.Bytes
}

// level is what was allocated and reserved at a point.
type level struct{ allocated, reserved mem.Bytes }

const (
	baseBits = 6
	base     = 1 << baseBits // points of the smallest stretch
)

// measure goes through the trace once.
func (e *Explorer) measure() heights {
	var h heights
	at := level{e.Begin.Allocated, e.Begin.Reserved}
	var most level
	var allocated, reserved []mem.Bytes
	for p := range e.Points() {
		if p > 0 {
			e.step(p-1, &at)
		}
		if p%base == 0 {
			h.begin = append(h.begin, at)
			allocated, reserved = append(allocated, at.allocated), append(reserved, at.reserved)
			most = at
			continue
		}
		most = level{max(most.allocated, at.allocated), max(most.reserved, at.reserved)}
		allocated[len(allocated)-1], reserved[len(reserved)-1] = most.allocated, most.reserved
	}
	h.allocated, h.reserved = pyramid(allocated), pyramid(reserved)
	return h
}

// step applies an event to a level.
func (e *Explorer) step(event int, at *level) {
	n := e.spanOf[event]
	switch e.Trace.Action[event] {
	case mem.ActionAlloc:
		if n != noBlock && int(e.From[n]) == event {
			at.allocated += e.Bytes[n]
		}
	case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
		at.reserved += e.Trace.Size[event]
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		at.reserved -= e.Trace.Size[event]
	}
	if n != noBlock && int(e.To[n]) == event && int(e.From[n]) < event {
		at.allocated -= e.Bytes[n]
	}
	if len(e.ends) > 0 {
		for _, n := range e.ends[event] {
			at.allocated -= e.Bytes[n]
		}
	}
	if e.Trace.Reserved != nil {
		at.reserved = e.Trace.Reserved[event]
	}
}

// pyramid halves a column again and again, each value the higher of two.
func pyramid(lowest []mem.Bytes) [][]mem.Bytes {
	all := [][]mem.Bytes{lowest}
	for below := lowest; len(below) > 1; below = all[len(all)-1] {
		next := make([]mem.Bytes, (len(below)+1)/2)
		for i, v := range below {
			next[i/2] = max(next[i/2], v)
		}
		all = append(all, next)
	}
	return all
}

// levels are the highest levels of columns of 2^bits points from a point on, which is a multiple of that.
func (e *Explorer) levels(from, columns int, bits uint) (allocated, reserved []mem.Bytes) {
	allocated, reserved = make([]mem.Bytes, columns), make([]mem.Bytes, columns)
	if bits >= baseBits {
		row := min(int(bits-baseBits), len(e.heights.allocated)-1)
		first := from >> bits
		copy(allocated, e.heights.allocated[row][first:])
		copy(reserved, e.heights.reserved[row][first:])
		return allocated, reserved
	}
	at := e.levelAt(from)
	for p := from; p < min(from+columns<<bits, e.Points()); p++ {
		if p > from {
			e.step(p-1, &at)
		}
		c := (p - from) >> bits
		allocated[c], reserved[c] = max(allocated[c], at.allocated), max(reserved[c], at.reserved)
	}
	return allocated, reserved
}

// levelAt is the level at a point.
func (e *Explorer) levelAt(point int) level {
	at := e.heights.begin[point/base]
	for p := point&^(base-1) + 1; p <= point; p++ {
		e.step(p-1, &at)
	}
	return at
}
