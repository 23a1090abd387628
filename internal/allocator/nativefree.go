package allocator

import (
	"slices"

	"hightide/internal/mem"
)

// FreeRequested is the program letting go of a block. The block stays active until FreeCompleted.
func (n *Native) FreeRequested(h Handle) {
	b := &n.blocks[h]
	n.letGo(int32(h))
	b.state = waiting
	n.pending = append(n.pending, int32(h))
}

// Free lets go of a block that no other stream uses: FreeRequested and FreeCompleted at once.
func (n *Native) Free(h Handle) {
	n.letGo(int32(h))
	n.complete(int32(h))
}

// letGo counts the program's free.
func (n *Native) letGo(b int32) {
	block := &n.blocks[b]
	p := n.segments[block.segment].list.pool
	n.Stats.By[AllPools].letGo(block.size)
	n.Stats.By[p.kind()].letGo(block.size)
	n.event(mem.ActionFreeRequested, block.address, block.requested, n.segments[block.segment].list.stream)
	if block.size >= n.maxSplit {
		n.Stats.OversizeAllocations.down(1)
	}
}

// FreeCompleted is the moment from which a freed block can be used again.
func (n *Native) FreeCompleted(h Handle) {
	if n.blocks[h].state == returned { // an out-of-memory retry waited for it already
		n.dropBlock(int32(h))
		return
	}
	if last := len(n.pending) - 1; n.pending[last] == int32(h) { // mostly
		n.pending = n.pending[:last]
	} else {
		at := slices.Index(n.pending, int32(h))
		n.pending = slices.Delete(n.pending, at, at+1)
	}
	n.complete(int32(h))
}

// complete returns a block to its pool, joined with free neighbours.
func (n *Native) complete(b int32) {
	block := &n.blocks[b]
	s := &n.segments[block.segment]
	p := s.list.pool
	size, requested := block.size, block.requested
	n.event(mem.ActionFreeCompleted, block.address, requested, s.list.stream)
	var parts int64
	var cached mem.Bytes
	for _, neighbour := range [2]int32{block.prev, block.next} {
		if joined := n.joinNeighbour(b, neighbour, free); joined > 0 {
			parts--
			cached -= joined
		}
	}
	n.insertFree(b)
	if block.prev != 0 || block.next != 0 {
		parts++
		cached += block.size
	}
	for _, f := range [2]*Figures{&n.Stats.By[AllPools], &n.Stats.By[p.kind()]} {
		if !s.expandable {
			f.change(parts, cached)
		}
		f.reusable(size, requested)
	}
}

// joinNeighbour swallows a neighbour that is in the same condition, and returns its size.
func (n *Native) joinNeighbour(b, neighbour int32, condition state) mem.Bytes {
	if neighbour == 0 || n.blocks[neighbour].state != condition {
		return 0
	}
	block, other := &n.blocks[b], &n.blocks[neighbour]
	if condition == unmapped {
		n.removeUnmapped(neighbour)
	} else {
		n.removeFree(neighbour)
	}
	if block.prev == neighbour {
		block.address, block.prev = other.address, other.prev
		if block.prev != 0 {
			n.blocks[block.prev].next = b
		}
	} else {
		block.next = other.next
		if block.next != 0 {
			n.blocks[block.next].prev = b
		}
	}
	block.size += other.size
	n.dropBlock(neighbour)
	return other.size
}

// EmptyCache is torch.cuda.empty_cache.
func (n *Native) EmptyCache() { n.releaseCached() }

// releaseCached waits for pending frees and gives all cached memory back that can be given back.
func (n *Native) releaseCached() {
	n.completeAll(nil)
	n.releaseBlocks(n.large)
	n.releaseBlocks(n.small)
	n.private = slices.DeleteFunc(n.private, n.releasePrivate)
}

// EmptyPool gives back what one private pool without users caches, after waiting for its pending frees.
func (n *Native) EmptyPool(id mem.PoolID) {
	n.private = slices.DeleteFunc(n.private, func(p *privatePool) bool {
		if p.id != id || p.used {
			return false
		}
		n.completeAll(p)
		return n.releasePrivate(p)
	})
}

// releasePrivate gives back what a pool without users caches, and says whether nothing is left of it.
func (n *Native) releasePrivate(p *privatePool) bool {
	if p.used {
		return false
	}
	n.unordered = true
	n.releaseBlocks(p.small)
	n.releaseBlocks(p.large)
	n.unordered = false
	return p.held == 0
}

// completeAll waits for the device, for what a pool's blocks are used for or, without one, for all.
// Handles of what completes here stay valid until the caller says FreeCompleted.
func (n *Native) completeAll(owner *privatePool) {
	n.Stats.SyncAllStreams++
	pending := n.pending
	n.pending = nil
	for _, b := range pending {
		if owner != nil && n.segmentOf(b).list.pool.owner != owner {
			n.pending = append(n.pending, b)
			continue
		}
		moved := n.place(n.blocks[b])
		if prev := n.blocks[b].prev; prev != 0 {
			n.blocks[prev].next = moved
		}
		if next := n.blocks[b].next; next != 0 {
			n.blocks[next].prev = moved
		}
		n.blocks[b] = block{state: returned}
		n.complete(moved)
	}
}

// releaseBlocks gives back the whole segments among a pool's free blocks, then the whole pages.
func (n *Native) releaseBlocks(p *pool) {
	var expandable []int32
	for _, list := range p.streams {
		for _, b := range list.blocks() {
			switch {
			case n.segmentOf(b).expandable:
				expandable = append(expandable, b)
			case n.whole(b):
				n.releaseBlock(b)
			}
		}
	}
	for _, b := range expandable {
		if n.unmap(b) && n.whole(b) {
			n.releaseReservation(b)
		}
	}
}

// blocks lists the free ones in their order.
func (l *streamBlocks) blocks() []int32 {
	list := make([]int32, 0, l.free.count)
	for at, ok := l.free.first(); ok; at, ok = l.free.next(at) {
		list = append(list, l.free.at(at).block)
	}
	return list
}

func (n *Native) whole(b int32) bool { return n.blocks[b].prev == 0 && n.blocks[b].next == 0 }

// releaseBlock gives a segment back to the device.
func (n *Native) releaseBlock(b int32) {
	block := &n.blocks[b]
	p := n.segmentOf(b).list.pool
	n.event(mem.ActionSegmentFree, block.address, block.size, n.segmentOf(b).list.stream)
	n.driver.Free(block.size)
	n.total -= block.size
	if p.owner != nil {
		p.owner.held--
	}
	n.both(p, func(f *Figures) {
		f.Segment.down(1)
		f.ReservedBytes.down(int64(block.size))
	})
	n.Stats.DeviceFrees++
	if block.size >= n.maxSplit {
		n.Stats.OversizeSegments.down(1)
	}
	n.removeFree(b)
	n.dropSegment(block.segment)
	n.dropBlock(b)
}

// releaseOversize gives back cached blocks of at least max_split_size that make room for a request;
// false where they are too few, though then some may be gone.
func (n *Native) releaseOversize(a *ask) bool {
	if n.settings.MaxSplit == 0 {
		return false
	}
	wanted := max(a.rounded, n.maxSplit)
	list := &a.list.free
	at, ok := list.lowerBound(key{size: uint64(wanted)})
	if ok && !n.segmentOf(list.at(at).block).expandable {
		n.releaseBlock(list.at(at).block)
		return true
	}
	if ok {
		at, ok = list.previous(at)
	} else {
		at, ok = list.last()
	}
	var victims []int32
	var released mem.Bytes
	for ; ok && released < wanted; at, ok = list.previous(at) {
		b := list.at(at).block
		if n.blocks[b].size < n.maxSplit {
			break
		}
		if !n.segmentOf(b).expandable {
			victims = append(victims, b)
			released += n.blocks[b].size
		}
	}
	for _, b := range victims {
		n.releaseBlock(b)
	}
	return released >= wanted
}

// collects says whether garbage collection is on: it needs a memory limit.
func (n *Native) collects() bool { return n.limited && n.settings.GCThreshold > 0 }

// collectGarbage gives back the large segments that were unused longest, those of above average age
// first, until what is held falls below the threshold.
func (n *Native) collectGarbage() {
	threshold := mem.Bytes(n.settings.GCThreshold * float64(n.limit))
	if n.total <= threshold {
		return
	}
	target := n.total - threshold
	var ages, count uint64
	n.eachWhole(func(b int32) {
		ages += n.idle(b)
		count++
	})
	for freed := true; freed && target > 0 && count > 0; {
		average := float64(ages) / float64(count)
		freed = false
		n.eachWhole(func(b int32) {
			if n.segmentOf(b).expandable || float64(n.idle(b)) < average {
				return
			}
			freed = true
			target -= n.blocks[b].size
			ages -= n.idle(b)
			count--
			n.releaseBlock(b)
		})
	}
}

// idle is how many requests a free block has waited through.
func (n *Native) idle(b int32) uint64 {
	return n.segmentOf(b).list.pool.calls - n.blocks[b].calls
}

// eachWhole visits the unsplit free blocks of the default large pool.
func (n *Native) eachWhole(do func(b int32)) {
	for _, list := range n.large.streams {
		for _, b := range list.blocks() {
			if n.whole(b) {
				do(b)
			}
		}
	}
}

// privatePool is memory apart: of a captured graph, or of a torch.cuda.MemPool. The options of a MemPool (no_split,
// use_on_oom) are in no file, so pools have none here.
type privatePool struct {
	id           mem.PoolID
	used         bool // its memory is kept
	held         int  // segments, and pages mapped
	small, large *pool
}

// UsePool keeps a private pool's memory from being given back until ReleasePool.
func (n *Native) UsePool(id mem.PoolID) { n.privatePool(id).used = true }

// ReleasePool says that nobody uses a pool any more: EmptyCache and retries may give its memory back.
func (n *Native) ReleasePool(id mem.PoolID) { n.privatePool(id).used = false }

// privatePool finds a pool, or makes one that nobody uses.
func (n *Native) privatePool(id mem.PoolID) *privatePool {
	for _, p := range n.private {
		if p.id == id {
			return p
		}
	}
	p := &privatePool{id: id}
	p.small, p.large = &pool{small: true, owner: p}, &pool{owner: p}
	n.private = append(n.private, p)
	return p
}
