package explore

import (
	"slices"
	"sort"

	"hightide/internal/mem"
)

// Cached is what the allocator held over a window, in columns of Step points. Each column tells of the point at which
// most was cached, so its parts add up to what was reserved then.
type Cached struct {
	From  int     `json:"from" doc:"The first point."`
	To    int     `json:"to" doc:"The point after the last."`
	Step  int     `json:"step" doc:"How many points a column stands for."`
	Known bool    `json:"known" doc:"Whether the file tells of segments; else there are no columns."`
	Point []int32 `json:"point" doc:"By column: the point at which most was cached, of which the other columns tell."`

	Active   []mem.Bytes `json:"active" doc:"By column: bytes of blocks that are in use or wait for another stream."`
	Split    []mem.Bytes `json:"split" doc:"By column: bytes cached in segments that are in use elsewhere (inactive split)."`
	Free     []mem.Bytes `json:"free" doc:"By column: bytes of segments with nothing in use."`
	Reserved []mem.Bytes `json:"reserved" doc:"By column: bytes of all segments."`
}

// Cached goes through the events of a window; an empty window is the whole trace.
func (e *Explorer) Cached(from, to, columns int) Cached {
	w := e.within(Window{From: from, To: to})
	step := max(1, (w.To-w.From+max(columns, 1)-1)/max(columns, 1))
	c := Cached{From: w.From, To: w.To, Step: step, Known: e.KnowsSegments(), Point: []int32{}, Active: []mem.Bytes{},
		Split: []mem.Bytes{}, Free: []mem.Bytes{}, Reserved: []mem.Bytes{}}
	if !c.Known {
		return c
	}
	held := e.heldAt(w.From)
	for p := w.From; p < w.To; p++ {
		if p > w.From {
			e.applyEvent(&held, p-1)
		}
		last := len(c.Point) - 1
		if (p-w.From)%step == 0 {
			last++
			c.Point, c.Active, c.Split, c.Free, c.Reserved = append(c.Point, 0), append(c.Active, 0), append(c.Split, 0),
				append(c.Free, 0), append(c.Reserved, 0)
		} else if held.reserved-held.active <= c.Reserved[last]-c.Active[last] {
			continue
		}
		c.Point[last], c.Active[last], c.Split[last], c.Free[last], c.Reserved[last] = int32(p), held.active,
			held.reserved-held.active-held.free, held.free, held.reserved
	}
	return c
}

// heldSegment is a segment with what is in use of it.
type heldSegment struct {
	address uint64
	size    mem.Bytes
	used    mem.Bytes
}

// held are segments by address, and their sums.
type held struct {
	all                    []heldSegment
	reserved, active, free mem.Bytes
}

// heldAt are the segments at a point.
func (e *Explorer) heldAt(point int) held {
	var h held
	for _, g := range e.segmentsAt(point) {
		h.add(g.Address, g.Size, g.Expandable)
	}
	e.eachAt(point, func(n int) bool {
		h.use(e.AddressOf(n), e.Bytes[n])
		return true
	})
	return h
}

// applyEvent applies an event.
func (e *Explorer) applyEvent(h *held, event int) {
	t := e.Trace
	switch t.Action[event] {
	case mem.ActionSegmentAlloc:
		h.add(t.Address[event], t.Size[event], false)
	case mem.ActionSegmentMap:
		h.add(t.Address[event], t.Size[event], true)
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		h.remove(t.Address[event], t.Size[event], func(from, to uint64) (used mem.Bytes) {
			e.eachAt(event+1, func(n int) bool {
				if a := e.AddressOf(n); a >= from && a < to {
					used += e.Bytes[n]
				}
				return true
			})
			return used
		})
	}
	if n := e.spanOf[event]; n != noBlock {
		if int(e.From[n]) == event {
			h.use(e.AddressOf(int(n)), e.Bytes[n])
		}
		if int(e.Block.Gone[n]) == event {
			h.use(e.AddressOf(int(n)), -e.Bytes[n])
		}
	}
	for _, n := range e.ends[event] {
		if int(e.Block.Gone[n]) == event {
			h.use(e.AddressOf(int(n)), -e.Bytes[n])
		}
	}
}

// after is the place of the first segment that begins above an address.
func (h *held) after(address uint64) int {
	return sort.Search(len(h.all), func(i int) bool { return h.all[i].address > address })
}

// add puts a segment in; what is mapped behind or before expandable memory is part of that.
func (h *held) add(address uint64, size mem.Bytes, mapped bool) {
	i := h.after(address)
	h.reserved += size
	if mapped && i > 0 && h.all[i-1].address+uint64(h.all[i-1].size) == address {
		h.change(i-1, size, 0)
		if i < len(h.all) && h.all[i].address == address+uint64(size) {
			next := h.all[i]
			h.change(i, -next.size, -next.used)
			h.all = slices.Delete(h.all, i, i+1)
			h.change(i-1, next.size, next.used)
		}
		return
	}
	if mapped && i < len(h.all) && h.all[i].address == address+uint64(size) {
		h.all[i].address = address
		h.change(i, size, 0)
		return
	}
	h.all = slices.Insert(h.all, i, heldSegment{address: address})
	h.change(i, size, 0)
}

// remove takes memory away: a segment, or a part of one. Where that leaves two, usedIn says what is in use between
// two addresses.
func (h *held) remove(address uint64, size mem.Bytes, usedIn func(from, to uint64) mem.Bytes) {
	i := h.after(address) - 1
	if i < 0 {
		return
	}
	g := h.all[i]
	end := g.address + uint64(g.size)
	if address >= end {
		return // it contradicts the state
	}
	gone := min(uint64(size), end-address)
	h.reserved -= mem.Bytes(gone)
	rest := mem.Bytes(end - address - gone)
	switch {
	case address == g.address:
		h.all[i].address += gone
		h.change(i, -mem.Bytes(gone), 0)
	case rest == 0:
		h.change(i, -mem.Bytes(gone), 0)
	default:
		used := usedIn(address+gone, end)
		h.change(i, -mem.Bytes(gone)-rest, -used)
		h.all = slices.Insert(h.all, i+1, heldSegment{address: address + gone})
		h.change(i+1, rest, used)
	}
	if h.all[i].size == 0 {
		h.all = slices.Delete(h.all, i, i+1)
	}
}

// use changes what is in use at an address.
func (h *held) use(address uint64, size mem.Bytes) {
	h.active += size
	if i := h.after(address) - 1; i >= 0 && address < h.all[i].address+uint64(h.all[i].size) {
		h.change(i, 0, size)
	}
}

// change makes a segment larger, and more of it used, and keeps the sum of those that are free.
func (h *held) change(i int, size, used mem.Bytes) {
	g := &h.all[i]
	if g.used == 0 {
		h.free -= g.size
	}
	g.size += size
	g.used += used
	if g.used == 0 {
		h.free += g.size
	}
}
