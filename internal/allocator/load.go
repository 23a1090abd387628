package allocator

import (
	"slices"

	"hightide/internal/mem"
)

// Load takes over the state in which a trace begins and returns the handles of the live blocks, in the
// order of their addresses. The segments' mutual age is not known: it is taken to be that of their
// addresses (see Verify).
func (n *Native) Load(b *Beginning) []Handle {
	var handles []Handle
	reserved := map[int]int32{} // reservation → its segment
	for _, g := range b.Segments {
		p := n.poolOf(g.Pool, g.Large)
		list := p.of(g.Stream)
		var first int32
		if g.Expandable {
			r := b.reservationOf(&g)
			index, known := reserved[r]
			if !known {
				index = n.loadReservation(&b.Reservations[r], list)
				reserved[r] = index
			}
			first = n.occupy(index, g.Address, g.Size)
		} else {
			first = n.newSegment(list, g.Address, g.Size)
			n.age += ageStep - 1
			n.both(p, func(f *Figures) { f.Segment.up(1) })
			if g.Size >= n.maxSplit {
				n.Stats.OversizeSegments.up(1)
			}
		}
		n.total += g.Size
		n.both(p, func(f *Figures) { f.ReservedBytes.up(int64(g.Size)) })
		if p.owner != nil {
			p.owner.held++
		}
		handles = append(handles, n.loadBlocks(first, &g, p)...)
	}
	n.loaded, n.before = n.age, n.made
	return handles
}

// ageStep leaves room between the ages of loaded segments, whose order may turn out otherwise.
const ageStep = 1 << 8

func (n *Native) poolOf(id mem.PoolID, large bool) *pool {
	rounded := mem.Bytes(smallLimit)
	if large {
		rounded++
	}
	if id != (mem.PoolID{}) {
		n.UsePool(id) // nobody said yet that it is not needed
	}
	return n.poolFor(id, rounded)
}

// reservationOf finds where an expandable segment belongs: there is one for each stream and pool.
func (b *Beginning) reservationOf(g *mem.Segment) int {
	return slices.IndexFunc(b.Reservations, func(r Reservation) bool {
		return r.Stream == g.Stream && r.Large == g.Large && r.Pool == g.Pool
	})
}

// loadReservation makes an expandable segment, unmapped as a whole, as large as it would be made today.
func (n *Native) loadReservation(r *Reservation, list *streamBlocks) int32 {
	size := max(r.Size, n.settings.reservation(n.memory, r.Page))
	b := n.newSegment(list, r.Address, size)
	n.age += ageStep - 1
	s := n.segmentOf(b)
	s.expandable, s.page = true, r.Page
	n.insertUnmapped(b)
	return n.blocks[b].segment
}

// occupy maps a range of an expandable segment and returns its block, in no list.
func (n *Native) occupy(index int32, address uint64, size mem.Bytes) int32 {
	list := n.segments[index].list
	at := n.unmappedAt(list, address)
	if at == len(list.unmapped) { // not at the beginning of the last one: segments come by address
		at--
	}
	b := list.unmapped[at]
	n.removeUnmapped(b)
	if before := mem.Bytes(address - n.blocks[b].address); before > 0 {
		rest := n.cut(b, before)
		n.insertUnmapped(b)
		b = rest
	}
	if n.blocks[b].size > size {
		n.insertUnmapped(n.cut(b, size))
	}
	n.blocks[b].state = taken
	return b
}

// loadBlocks divides a block into those of a segment.
func (n *Native) loadBlocks(b int32, g *mem.Segment, p *pool) []Handle {
	var handles []Handle
	for i, want := range g.Blocks {
		next := int32(0)
		if i+1 < len(g.Blocks) {
			next = n.cut(b, want.Size)
		}
		split := n.blocks[b].prev != 0 || n.blocks[b].next != 0
		if want.State == mem.BlockInactive {
			if split && !g.Expandable {
				n.both(p, func(f *Figures) { f.change(1, want.Size) })
			}
			n.insertFree(b)
		} else {
			handles = append(handles, Handle(b))
			n.loadLive(b, &want, p)
		}
		b = next
	}
	return handles
}

func (n *Native) loadLive(b int32, want *mem.Block, p *pool) {
	block := &n.blocks[b]
	block.state, block.requested = allocated, want.Requested
	n.both(p, func(f *Figures) { f.handedOut(want.Size, want.Requested) })
	if want.Size >= n.maxSplit {
		n.Stats.OversizeAllocations.up(1)
	}
	if want.State == mem.BlockPendingFree {
		block.state = waiting
		n.pending = append(n.pending, b)
		n.both(p, func(f *Figures) { f.letGo(want.Size) })
	}
}
