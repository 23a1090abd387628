package allocator

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
)

// segments are what the allocator held from the device, without blocks, at a moment of a rewind.
type segments struct {
	known  mem.AddressMap // address → plain
	plain  []mem.Segment
	ranges []mem.Segment // expandable: stretches of memory, by address
	poolOf func(event int) mem.PoolID

	// Where expandable memory of a stream was seen.
	lowest, highest map[streamPool]uint64
}

type streamPool struct {
	stream uint64
	large  bool
	pool   mem.PoolID
}

// newSegments is the final state of a trace.
func newSegments(s *mem.AllocatorSnapshot, t *mem.Trace) segments {
	h := segments{poolOf: poolsOf(s, t), lowest: map[streamPool]uint64{}, highest: map[streamPool]uint64{}}
	for _, g := range s.Segments {
		if g.Device != t.Device || s.Bare { // segments of a bare one stand for blocks
			continue
		}
		g.Blocks = nil
		if g.Expandable {
			h.seen(&g)
			h.ranges = append(h.ranges, g)
		} else {
			h.add(g)
		}
	}
	slices.SortStableFunc(h.ranges, byAddress)
	return h
}

func byAddress(a, b mem.Segment) int { return cmp.Compare(a.Address, b.Address) }

func (h *segments) add(g mem.Segment) {
	h.known.Set(g.Address, int32(len(h.plain)))
	h.plain = append(h.plain, g)
}

// remove takes a plain segment away and returns it.
func (h *segments) remove(address uint64) (mem.Segment, bool) {
	n, ok := h.known.Take(address)
	if !ok {
		return mem.Segment{}, false
	}
	g, last := h.plain[n], len(h.plain)-1
	if int(n) < last {
		h.plain[n] = h.plain[last]
		h.known.Set(h.plain[n].Address, n)
	}
	h.plain = h.plain[:last]
	return g, true
}

// seen widens what is known of an expandable segment's addresses.
func (h *segments) seen(g *mem.Segment) {
	k := streamPool{g.Stream, g.Large, g.Pool}
	if low, ok := h.lowest[k]; !ok || g.Address < low {
		h.lowest[k] = g.Address
	}
	h.highest[k] = max(h.highest[k], g.Address+uint64(g.Size))
}

// undoSegments goes back to the state after an event. Most events are of blocks, of which nothing but that is looked
// at.
func (r *rewind) undoSegments(after int) {
	for i := r.t.Len() - 1; i > after; i-- {
		if action := r.t.Action[i]; action >= mem.ActionSegmentAlloc && action <= mem.ActionSegmentUnmap {
			r.undoSegment(i)
		}
	}
}

func (r *rewind) undoSegment(i int) {
	t := r.t
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionSegmentAlloc:
		if g, ok := r.remove(address); !ok || g.Size != size {
			r.contradicts(i, "segment %#x of %d bytes is allocated but never freed, and not in the final state", address,
				int64(size))
		}
	case mem.ActionSegmentFree:
		if _, ok := r.remove(address); ok {
			r.contradicts(i, "segment %#x of %d bytes is freed while a later one lies there", address, int64(size))
		}
		r.add(mem.Segment{Device: t.Device, Address: address, Size: size, Stream: mem.At(t.Stream, i), Large: size > smallSegment,
			Pool: r.poolOf(i), Stack: t.Stack[i]})
	case mem.ActionSegmentMap:
		if !r.cut(address, address+uint64(size)) {
			r.contradicts(i, "memory at %#x of %d bytes is mapped but never unmapped, and not in the final state", address,
				int64(size))
		}
	case mem.ActionSegmentUnmap:
		g := mem.Segment{Device: t.Device, Address: address, Size: size, Stream: mem.At(t.Stream, i), Expandable: true,
			Pool: r.poolOf(i)}
		g.Large = r.large(&g, r.settings)
		r.putRange(g)
	}
}

// cut takes a range out of the expandable memory; false: it did not lie in one stretch.
func (h *segments) cut(from, to uint64) (whole bool) {
	i, _ := slices.BinarySearchFunc(h.ranges, from, func(g mem.Segment,
		at uint64) int {
		return cmp.Compare(g.Address+uint64(g.Size), at+1)
	})
	for i < len(h.ranges) && h.ranges[i].Address < to {
		g := h.ranges[i]
		end := g.Address + uint64(g.Size)
		whole = whole || g.Address <= from && to <= end
		var left []mem.Segment
		for _, part := range [2][2]uint64{{g.Address, min(from, end)}, {max(to, g.Address), end}} {
			if part[0] < part[1] {
				piece := g
				piece.Address, piece.Size = part[0], mem.Bytes(part[1]-part[0])
				left = append(left, piece)
			}
		}
		h.ranges = slices.Replace(h.ranges, i, i+1, left...)
		i += len(left)
	}
	return whole
}

// putRange adds an expandable range, joined with its neighbours of the same stream and pool.
func (h *segments) putRange(g mem.Segment) {
	at, _ := slices.BinarySearchFunc(h.ranges, g, byAddress)
	first, last := at, at
	if at > 0 && joins(&h.ranges[at-1], &g) {
		first--
		o := &h.ranges[first]
		g.Address, g.Size, g.Large = o.Address, o.Size+g.Size, o.Large
	}
	if at < len(h.ranges) && joins(&g, &h.ranges[at]) {
		last++
		g.Size += h.ranges[at].Size
		g.Large = h.ranges[at].Large
	}
	h.seen(&g)
	h.ranges = slices.Replace(h.ranges, first, last, g)
}

// joins says whether a range goes on where another one ends.
func joins(a, b *mem.Segment) bool {
	return a.Address+uint64(a.Size) == b.Address && a.Stream == b.Stream && a.Pool == b.Pool
}

// large guesses which pool an unmapped range belonged to: that of the nearest known one of its stream,
// else by the granularity.
func (h *segments) large(g *mem.Segment, settings *Settings) bool {
	nearest, large := uint64(math.MaxUint64), g.Size%settings.page(false) == 0
	for k, low := range h.lowest {
		if k.stream != g.Stream {
			continue
		}
		distance := low - g.Address
		if low < g.Address {
			distance = g.Address - low
		}
		if distance < nearest || distance == nearest && k.large {
			nearest, large = distance, k.large
		}
	}
	return large
}

// sorted is what is held, by address. Of what lies on one another, which no allocator makes, the first stays whole.
func (r *rewind) sorted() []mem.Segment {
	all := append(slices.Clone(r.plain), r.ranges...)
	slices.SortStableFunc(all, byAddress)
	kept, before := all[:0], uint64(0)
	for _, g := range all {
		end := g.Address + uint64(g.Size)
		if g.Address < before || end <= g.Address {
			r.refuse("segment %#x of %d bytes overlaps the one before it, or is empty", g.Address, int64(g.Size))
			g.Address = max(g.Address, before)
			if end <= g.Address {
				continue
			}
			g.Size = mem.Bytes(end - g.Address)
		}
		before = end
		kept = append(kept, g)
	}
	return kept
}

// reservations are the address space of expandable segments, by address.
func (r *rewind) reservations() []Reservation {
	var all []Reservation
	for k, low := range r.lowest {
		all = append(all, Reservation{low, mem.Bytes(r.highest[k] - low), r.settings.page(!k.large), k.stream, k.large,
			k.pool})
	}
	slices.SortFunc(all, func(x, y Reservation) int { return cmp.Compare(x.Address, y.Address) })
	return all
}
