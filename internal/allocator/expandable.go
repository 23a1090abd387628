package allocator

import (
	"slices"
	"sort"

	"hightide/internal/mem"
)

// allocExpandable finds or makes a stretch of free and unmapped blocks that can hold a request, and
// maps memory until its front does. Of a failed attempt the pages mapped so far stay, as a free block.
func (n *Native) allocExpandable(a *ask) int32 {
	b := n.findExpandable(a)
	if b == 0 {
		b = n.reserve(a)
	}
	if b == 0 {
		return 0
	}
	if n.blocks[b].state == unmapped && !n.mapBlock(b, min(n.blocks[b].size, a.rounded)) {
		return 0
	}
	for n.blocks[b].size < a.rounded {
		next := n.blocks[b].next
		if !n.mapBlock(next, min(a.rounded-n.blocks[b].size, n.blocks[next].size)) {
			return 0
		}
		b = next
	}
	n.removeFree(b)
	n.blocks[b].state = taken
	return b
}

// findExpandable is the lowest free or unmapped block of the stream from which enough address space
// follows.
func (n *Native) findExpandable(a *ask) int32 {
	for _, b := range a.list.unmapped {
		if prev := n.blocks[b].prev; prev != 0 && n.blocks[prev].state == free {
			b = prev
		}
		var room mem.Bytes
		for c := b; c != 0 && room < a.rounded && (n.blocks[c].state == free || n.blocks[c].state == unmapped); c = n.blocks[c].next {
			room += n.blocks[c].size
		}
		if room >= a.rounded {
			return b
		}
	}
	return 0
}

// reserve takes new address space, all of it unmapped.
func (n *Native) reserve(a *ask) int32 {
	page := n.settings.page(a.pool.small)
	size := n.settings.reservation(n.memory, page)
	if size < a.rounded {
		return 0
	}
	b := n.newSegment(a.list, n.driver.Reserve(size), size)
	n.segmentOf(b).expandable, n.segmentOf(b).page = true, page
	n.insertUnmapped(b)
	return b
}

// mapBlock puts memory behind the first bytes of an unmapped block, in whole pages, and joins it with
// free neighbours.
func (n *Native) mapBlock(b int32, size mem.Bytes) bool {
	block := n.blocks[b]
	list := n.segmentOf(b).list
	page := n.segmentOf(b).page
	size = roundUp(size, page)
	if !n.driver.Map(size) {
		return false
	}
	n.removeUnmapped(b)
	if size < block.size {
		n.insertUnmapped(n.cut(b, size))
	}
	n.joinNeighbour(b, n.blocks[b].prev, free)
	n.joinNeighbour(b, n.blocks[b].next, free)
	n.insertFree(b)
	n.total += size
	n.both(list.pool, func(f *Figures) { f.ReservedBytes.up(int64(size)) })
	n.Stats.DeviceAllocs++
	n.event(mem.ActionSegmentMap, block.address, size, list.stream)
	return true
}

// cut divides a block that is in no list and returns the part after the first bytes, in no list.
func (n *Native) cut(b int32, size mem.Bytes) int32 {
	whole := n.blocks[b]
	rest := n.newBlock(block{address: whole.address + uint64(size), size: whole.size - size, prev: b, next: whole.next,
		segment: whole.segment})
	front := &n.blocks[b]
	if front.next != 0 {
		n.blocks[front.next].prev = rest
	}
	front.size, front.next = size, rest
	return rest
}

// wholePages is the range of the pages that lie wholly inside a free block of an expandable segment.
func (n *Native) wholePages(b int32) (begin uint64, size mem.Bytes) {
	s, block := n.segmentOf(b), &n.blocks[b]
	if !s.expandable {
		return 0, 0
	}
	page := uint64(s.page)
	begin = s.base + (block.address-s.base+page-1)/page*page
	end := s.base + (block.address+uint64(block.size)-s.base)/page*page
	if end <= begin {
		return begin, 0
	}
	return begin, mem.Bytes(end - begin)
}

// unmap takes the memory of a free block's whole pages; what is left at its ends stays free. False:
// there is no such page.
func (n *Native) unmap(b int32) bool {
	list := n.segmentOf(b).list
	begin, size := n.wholePages(b)
	if size == 0 {
		return false
	}
	n.driver.Free(size)
	n.removeFree(b)
	if before := mem.Bytes(begin - n.blocks[b].address); before > 0 {
		n.keepBefore(b, before)
	}
	if after := n.blocks[b].size - size; after > 0 {
		n.insertFree(n.cut(b, size))
	}
	n.blocks[b].state = unmapped
	n.joinNeighbour(b, n.blocks[b].prev, unmapped)
	n.joinNeighbour(b, n.blocks[b].next, unmapped)
	n.insertUnmapped(b)
	n.total -= size
	n.both(list.pool, func(f *Figures) { f.ReservedBytes.down(int64(size)) })
	if list.pool.owner != nil {
		list.pool.owner.held--
	}
	n.Stats.DeviceFrees++
	n.event(mem.ActionSegmentUnmap, begin, size, list.stream)
	return true
}

// keepBefore makes the first bytes of a block a free block of their own.
func (n *Native) keepBefore(b int32, size mem.Bytes) {
	was := n.blocks[b]
	front := n.newBlock(block{address: was.address, size: size, prev: was.prev, next: b, segment: was.segment})
	whole := &n.blocks[b]
	n.blocks[whole.prev].next = front // there is one: segments begin with a page
	whole.prev = front
	whole.address += uint64(size)
	whole.size -= size
	n.insertFree(front)
}

// releaseReservation gives back address space that is unmapped as a whole.
func (n *Native) releaseReservation(b int32) {
	n.removeUnmapped(b)
	n.dropSegment(n.blocks[b].segment)
	n.dropBlock(b)
}

// unmappedAt is where an address lies or belongs among the unmapped blocks of a stream.
func (n *Native) unmappedAt(list *streamBlocks, address uint64) int {
	return sort.Search(len(list.unmapped), func(i int) bool { return n.blocks[list.unmapped[i]].address >= address })
}

func (n *Native) insertUnmapped(b int32) {
	list := n.segmentOf(b).list
	list.unmapped = slices.Insert(list.unmapped, n.unmappedAt(list, n.blocks[b].address), b)
	n.blocks[b].state = unmapped
}

func (n *Native) removeUnmapped(b int32) {
	list := n.segmentOf(b).list
	at := n.unmappedAt(list, n.blocks[b].address)
	list.unmapped = slices.Delete(list.unmapped, at, at+1)
}
