package allocator

import (
	"slices"

	"hightide/internal/mem"
)

// What Verify needs of the model beyond what a program does: to look without touching, and to do what
// a record shows.

// releasable lists what a full sweep would give back, in its order.
func (n *Native) releasable() []Event {
	return n.releasableOf(n.small, n.releasableOf(n.large, nil))
}

func (n *Native) releasableOf(p *pool, out []Event) []Event {
	for _, list := range p.streams {
		for _, b := range list.blocks() {
			block := &n.blocks[b]
			if !n.segmentOf(b).expandable && n.whole(b) {
				out = append(out, Event{mem.ActionSegmentFree, block.address, block.size, list.stream})
			}
			if begin, size := n.wholePages(b); size > 0 {
				out = append(out, Event{mem.ActionSegmentUnmap, begin, size, list.stream})
			}
		}
	}
	return out
}

// releaseAt gives back what releasable listed.
func (n *Native) releaseAt(e Event) {
	for _, p := range n.pools() {
		for _, list := range p.streams {
			for _, b := range list.blocks() {
				begin, size := n.wholePages(b)
				switch {
				case e.Action == mem.ActionSegmentFree && n.blocks[b].address == e.Address && !n.segmentOf(b).expandable:
					n.releaseBlock(b)
					return
				case e.Action == mem.ActionSegmentUnmap && size > 0 && begin == e.Address:
					if n.unmap(b) && n.whole(b) {
						n.releaseReservation(b)
					}
					return
				}
			}
		}
	}
}

// pools lists all of them.
func (n *Native) pools() []*pool {
	all := []*pool{n.large, n.small}
	for _, p := range n.private {
		all = append(all, p.small, p.large)
	}
	return all
}

// freeAt finds a free block by its address.
func (n *Native) freeAt(list *streamBlocks, address uint64) int32 {
	for at, ok := list.free.first(); ok; at, ok = list.free.next(at) {
		if b := list.free.at(at).block; n.blocks[b].address == address {
			return b
		}
	}
	return 0
}

// ageless says that a block is as old as the trace's beginning or older, so that its age counts for ties and is in no
// file.
func (n *Native) ageless(b int32) bool {
	switch n.rules.Ties {
	case ByBlock:
		return n.blocks[b].made <= n.before
	case BySegment:
		return n.segmentOf(b).age <= n.loaded
	}
	return false
}

// apart says that the ages of two ageless blocks may turn out either way.
func (n *Native) apart(b, c int32) bool {
	return n.rules.Ties == ByBlock || n.blocks[b].segment != n.blocks[c].segment && !n.segmentOf(c).expandable
}

// makeOlder makes the last of some free ageless blocks, which are in their order, the oldest.
func (n *Native) makeOlder(blocks []int32) {
	first, last := blocks[0], blocks[len(blocks)-1]
	if n.rules.Ties == BySegment {
		n.makeSegmentOlder(n.blocks[last].segment, n.blocks[first].segment)
		return
	}
	ages := make([]uint64, len(blocks))
	for i, b := range blocks {
		n.removeFree(b)
		ages[i] = n.blocks[b].made
	}
	for i, b := range blocks {
		n.blocks[b].made = ages[(i+1)%len(ages)]
	}
	n.putBack(blocks)
}

// makeSegmentOlder gives a loaded segment an age just before another's.
func (n *Native) makeSegmentOlder(segment, than int32) {
	age := n.segments[than].age
	before := uint32(0)
	for i := range n.segments {
		if s := &n.segments[i]; s.list != nil && s.age < age && int32(i) != segment {
			before = max(before, s.age)
		}
	}
	if age-before < 2 {
		n.spreadAges()
		n.makeSegmentOlder(segment, than)
		return
	}
	n.reage(segment, before+(age-before)/2)
}

// spreadAges makes room between the ages of loaded segments again.
func (n *Native) spreadAges() {
	var loaded []int32
	for i := range n.segments {
		if s := &n.segments[i]; s.list != nil && s.age <= n.loaded {
			loaded = append(loaded, int32(i))
		}
	}
	slices.SortFunc(loaded, func(a, b int32) int { return int(n.segments[a].age) - int(n.segments[b].age) })
	// Downwards from the top, or two would share an age for a moment.
	step := n.loaded / uint32(len(loaded)+1)
	blocks := make([][]int32, len(loaded))
	for i, s := range loaded {
		blocks[i] = n.takeOut(s)
	}
	for i, s := range loaded {
		n.segments[s].age = uint32(i+1) * step
	}
	for _, list := range blocks {
		n.putBack(list)
	}
}

// reage changes a segment's age, and with it the place of its free blocks.
func (n *Native) reage(segment int32, age uint32) {
	blocks := n.takeOut(segment)
	n.segments[segment].age = age
	n.putBack(blocks)
}

func (n *Native) takeOut(segment int32) []int32 {
	var out []int32
	for _, b := range n.segments[segment].list.blocks() {
		if n.blocks[b].segment == segment {
			out = append(out, b)
		}
	}
	for _, b := range out {
		n.removeFree(b)
	}
	return out
}

func (n *Native) putBack(blocks []int32) {
	for _, b := range blocks {
		n.segmentOf(b).list.free.insert(n.keyOf(b), b)
	}
}
