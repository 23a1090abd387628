package analyze

import (
	"slices"

	"hightide/internal/mem"
)

// The map of memory that a traceBooks keeps while it plays: segments as lists of stretches, in use and free.

// memoryNode is a stretch of a segment, as the allocator's own list of blocks has it.
type memoryNode struct {
	address    uint64
	size       mem.Bytes
	prev, next int32
	free       bool
	large      bool
	expandable bool
	private    bool  // of a graph's or user's pool: empty_cache leaves it alone
	pages      int64 // expandable: where pages begin, modulo their size; large says which size
}

const (
	splitSmall = mem.Bytes(512)
	splitLarge = mem.MiB
)

// place cuts a block out of free memory and returns its size.
func (b *traceBooks) place(address uint64, requested mem.Bytes) mem.Bytes {
	size := b.rounded(requested)
	if b.snapshot.Bare {
		return size
	}
	n, ok := b.byStart.Get(address)
	if !ok || !b.nodes[n].free || b.nodes[n].size < size {
		b.unplaced++
		return size
	}
	node := &b.nodes[n]
	b.releasable -= node.gives()
	rest, least := node.size-size, splitSmall
	split := rest >= least
	if node.large && !node.expandable {
		split = rest > splitLarge && (b.maxSplit == 0 || size < b.maxSplit)
	}
	node.free = false
	if !split || rest <= 0 {
		return node.size
	}
	node.size = size
	tail := *node
	tail.address, tail.size, tail.free, tail.prev = address+uint64(size), rest, true, n
	b.releasable += tail.gives()
	m := b.addNode(tail)
	if next := b.nodes[m].next; next >= 0 {
		b.nodes[next].prev = m
	}
	b.nodes[n].next = m
	return size
}

// rounded is the least size of a block for a request.
func (b *traceBooks) rounded(requested mem.Bytes) mem.Bytes {
	if b.snapshot.Bare {
		return requested
	}
	return b.settings.Round(requested)
}

// gives is what empty_cache would return of a stretch: all of a free segment, of an expandable one the
// pages that lie wholly in free memory.
func (n *memoryNode) gives() mem.Bytes {
	switch {
	case !n.free || n.private:
		return 0
	case !n.expandable && n.prev < 0 && n.next < 0:
		return n.size
	case !n.expandable:
		return 0
	}
	page := pageSize(n.large)
	ahead := (page - (int64(n.address)-n.pages)%page) % page
	return max(0, (n.size-mem.Bytes(ahead))/mem.Bytes(page)*mem.Bytes(page))
}

// pageSize is the granularity in which expandable segments grow.
func pageSize(large bool) int64 {
	if large {
		return int64(20 * mem.MiB)
	}
	return int64(2 * mem.MiB)
}

func (b *traceBooks) addNode(n memoryNode) int32 {
	at := b.spare - 1
	if at < 0 {
		at = int32(len(b.nodes))
		b.nodes = append(b.nodes, n)
	} else {
		b.spare = b.nodes[at].next
		b.nodes[at] = n
	}
	b.byStart.Set(n.address, at)
	return at
}

// drop makes a node nothing, to be used again.
func (b *traceBooks) drop(n int32) {
	b.byStart.Take(b.nodes[n].address)
	b.nodes[n] = memoryNode{next: b.spare, prev: -1}
	b.spare = n + 1
}

// release makes a block free memory and joins it with its neighbours.
func (b *traceBooks) release(address uint64) {
	n, ok := b.byStart.Get(address)
	if !ok || b.nodes[n].free {
		return
	}
	b.nodes[n].free = true
	if next := b.nodes[n].next; next >= 0 && b.nodes[next].free {
		b.releasable -= b.nodes[next].gives()
		b.join(n, next)
	}
	if prev := b.nodes[n].prev; prev >= 0 && b.nodes[prev].free {
		b.releasable -= b.nodes[prev].gives()
		b.join(prev, n)
		n = prev
	}
	b.releasable += b.nodes[n].gives()
}

func (b *traceBooks) join(n, next int32) {
	b.nodes[n].size += b.nodes[next].size
	if b.nodes[n].next = b.nodes[next].next; b.nodes[n].next >= 0 {
		b.nodes[b.nodes[n].next].prev = n
	}
	b.drop(next)
}

// mapped adds pages to an expandable segment: free memory that joins what lies beside it.
func (b *traceBooks) mapped(address uint64, size mem.Bytes, private bool) {
	large := int64(size)%pageSize(true) == 0
	n := b.addNode(memoryNode{address: address, size: size, free: true, large: large, expandable: true, private: private,
		pages: int64(address) % pageSize(large), prev: -1, next: -1})
	if next, ok := b.byStart.Get(address + uint64(size)); ok && b.nodes[next].expandable {
		b.nodes[n].next, b.nodes[next].prev = next, n
		if b.nodes[next].free {
			b.releasable -= b.nodes[next].gives()
			b.join(n, next)
		}
	}
	for i := range b.nodes {
		left := &b.nodes[i]
		if left.size > 0 && left.expandable && left.address+uint64(left.size) == address {
			left.next, b.nodes[n].prev = n, int32(i)
			if left.free {
				b.releasable -= left.gives()
				b.join(int32(i), n)
				n = int32(i)
			}
			break
		}
	}
	b.releasable += b.nodes[n].gives()
}

// unmapped takes free memory away, whole or in part.
func (b *traceBooks) unmapped(address uint64, size mem.Bytes) {
	n, ok := b.byStart.Get(address)
	if !ok {
		n = b.holding(address)
	}
	if n < 0 || !b.nodes[n].free || b.nodes[n].address+uint64(b.nodes[n].size) < address+uint64(size) {
		b.strange++
		return
	}
	node := b.nodes[n]
	b.releasable -= node.gives()
	b.drop(n)
	left, right := node.prev, node.next
	if before := mem.Bytes(address - node.address); before > 0 {
		rest := node
		rest.size, rest.next = before, -1
		left = b.addNode(rest)
		b.releasable += rest.gives()
		if node.prev >= 0 {
			b.nodes[node.prev].next = left
		}
	} else if left >= 0 {
		b.nodes[left].next = -1
	}
	end := address + uint64(size)
	if after := mem.Bytes(node.address + uint64(node.size) - end); after > 0 {
		rest := node
		rest.address, rest.size, rest.prev = end, after, -1
		m := b.addNode(rest)
		b.releasable += rest.gives()
		if right >= 0 {
			b.nodes[right].prev = m
		}
	} else if right >= 0 {
		b.nodes[right].prev = -1
	}
}

// holding finds the stretch around an address; -1: none.
func (b *traceBooks) holding(address uint64) int32 {
	return int32(slices.IndexFunc(b.nodes, func(n memoryNode) bool {
		return n.size > 0 && n.address <= address && address < n.address+uint64(n.size)
	}))
}
