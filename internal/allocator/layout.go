package allocator

import (
	"slices"

	"hightide/internal/mem"
)

// Layout is the map of a device's memory while a recorded trace is followed: the stretches of each segment that
// are in use, and those that are free. A trace has addresses and not the sizes of blocks. They follow from where free
// memory lay and from the rule for dividing it. Native also chooses the address; a Layout takes it from the record.
type Layout struct {
	Releasable mem.Bytes // what empty_cache would give back now

	settings Settings
	pieces   []piece
	spare    int32          // 1 + a piece that is none any more, first of a list by next
	starts   mem.AddressMap // address → piece
	tails    mem.AddressMap // end → last piece of expandable memory, where more may be mapped
}

// piece is a stretch of a segment, as the allocator's own list of blocks has it.
type piece struct {
	address    uint64
	size       mem.Bytes // 0: none
	prev, next int32     // -1: none
	free       bool
	large      bool
	expandable bool
	private    bool      // of a graph's or user's pool: empty_cache leaves it alone
	phase      mem.Bytes // expandable: where pages begin, modulo their size
}

// NewLayout is the map as a trace begins.
func NewLayout(b *Beginning, settings Settings) *Layout {
	l := &Layout{settings: settings}
	for i := range b.Segments {
		g, last := &b.Segments[i], int32(-1)
		of := piece{large: g.Large, expandable: g.Expandable, private: g.Pool != mem.PoolID{}, next: -1}
		of.phase = l.phase(g.Address, g.Large)
		for _, block := range g.Blocks {
			of.address, of.size, of.free, of.prev = block.Address, block.Size, block.State == mem.BlockInactive, last
			n := l.add(of)
			if last >= 0 {
				l.pieces[last].next = n
			}
			last = n
		}
		if last >= 0 {
			l.tail(last)
		}
	}
	for i := range l.pieces {
		l.Releasable += l.gives(&l.pieces[i])
	}
	return l
}

// Place cuts a block out of the free memory at an address and returns its size. False: nothing is known to be free
// there, and the size is the least that a block for this request has.
func (l *Layout) Place(address uint64, requested mem.Bytes) (size mem.Bytes, ok bool) {
	size = l.settings.Round(requested)
	n, ok := l.starts.Get(address)
	if !ok || !l.pieces[n].free || l.pieces[n].size < size {
		return size, false
	}
	p := &l.pieces[n]
	l.Releasable -= l.gives(p)
	p.free = false
	rest := p.size - size
	if rest <= 0 || !l.settings.splits(size, rest, !p.large || p.expandable) {
		return p.size, true
	}
	p.size = size
	tail := *p
	tail.address, tail.size, tail.free, tail.prev = address+uint64(size), rest, true, n
	l.Releasable += l.gives(&tail)
	m := l.add(tail)
	if next := l.pieces[m].next; next >= 0 {
		l.pieces[next].prev = m
	}
	l.pieces[n].next = m
	l.tail(m)
	return size, true
}

// Release makes a block free memory and joins it with its neighbours.
func (l *Layout) Release(address uint64) {
	n, ok := l.starts.Get(address)
	if !ok || l.pieces[n].free {
		return
	}
	l.pieces[n].free = true
	l.Releasable += l.gives(&l.pieces[n])
	l.joinFree(n)
}

// joinFree joins a free piece with the free ones beside it.
func (l *Layout) joinFree(n int32) {
	l.Releasable -= l.gives(&l.pieces[n])
	if next := l.pieces[n].next; next >= 0 && l.pieces[next].free {
		l.Releasable -= l.gives(&l.pieces[next])
		l.joinParts(n, next)
	}
	if prev := l.pieces[n].prev; prev >= 0 && l.pieces[prev].free {
		l.Releasable -= l.gives(&l.pieces[prev])
		l.joinParts(prev, n)
		n = prev
	}
	l.Releasable += l.gives(&l.pieces[n])
}

func (l *Layout) joinParts(n, next int32) {
	l.pieces[n].size += l.pieces[next].size
	if l.pieces[n].next = l.pieces[next].next; l.pieces[n].next >= 0 {
		l.pieces[l.pieces[n].next].prev = n
	}
	l.drop(next)
	l.tail(n)
}

// Add adds a new segment.
func (l *Layout) Add(address uint64, size mem.Bytes, private bool) {
	n := l.add(piece{address: address, size: size, free: true, large: size > smallSegment, private: private, prev: -1,
		next: -1})
	l.Releasable += l.gives(&l.pieces[n])
}

// Map adds pages to an expandable segment: free memory that joins what lies beside it.
func (l *Layout) Map(address uint64, size mem.Bytes, private bool) {
	large := size%l.settings.page(false) == 0
	n := l.add(piece{address: address, size: size, free: true, large: large, expandable: true, private: private,
		phase: l.phase(address, large), prev: -1, next: -1})
	l.Releasable += l.gives(&l.pieces[n])
	if next, ok := l.starts.Get(address + uint64(size)); ok && l.pieces[next].expandable {
		l.pieces[n].next, l.pieces[next].prev = next, n
	}
	if prev, ok := l.tails.Take(address); ok {
		l.pieces[prev].next, l.pieces[n].prev = n, prev
	}
	l.tail(n)
	l.joinFree(n)
}

// Remove takes free memory away, whole or in part; false: there is none.
func (l *Layout) Remove(address uint64, size mem.Bytes) bool {
	n, ok := l.starts.Get(address)
	if !ok {
		n = l.holding(address)
	}
	end := address + uint64(size)
	if n < 0 || !l.pieces[n].free || l.pieces[n].end() < end {
		return false
	}
	was := l.pieces[n]
	l.Releasable -= l.gives(&was)
	l.drop(n)
	before, after := was, was
	before.size, before.next = mem.Bytes(address-was.address), -1
	after.address, after.size, after.prev = end, mem.Bytes(was.end()-end), -1
	if left := l.rest(before, was.prev); left >= 0 {
		if l.pieces[left].next = -1; was.prev >= 0 && left != was.prev {
			l.pieces[was.prev].next = left
		}
		l.tail(left)
	}
	if right := l.rest(after, was.next); right >= 0 {
		if l.pieces[right].prev = -1; was.next >= 0 && right != was.next {
			l.pieces[was.next].prev = right
		}
		l.tail(right)
	}
	return true
}

// rest adds what is left of a piece, or returns the neighbour where nothing is.
func (l *Layout) rest(p piece, neighbour int32) int32 {
	if p.size <= 0 {
		return neighbour
	}
	l.Releasable += l.gives(&p)
	return l.add(p)
}

// Free sums the free memory: all of it, the largest piece, and how many there are.
func (l *Layout) Free() (bytes, largest mem.Bytes, pieces int) {
	for i := range l.pieces {
		if p := &l.pieces[i]; p.free && p.size > 0 {
			bytes, largest, pieces = bytes+p.size, max(largest, p.size), pieces+1
		}
	}
	return bytes, largest, pieces
}

func (l *Layout) add(p piece) int32 {
	n := l.spare - 1
	if n < 0 {
		n = int32(len(l.pieces))
		l.pieces = append(l.pieces, p)
	} else {
		l.spare = l.pieces[n].next
		l.pieces[n] = p
	}
	l.starts.Set(p.address, n)
	return n
}

// drop makes a piece nothing, to be used again.
func (l *Layout) drop(n int32) {
	p := &l.pieces[n]
	l.starts.Take(p.address)
	if at, ok := l.tails.Get(p.end()); ok && at == n {
		l.tails.Take(p.end())
	}
	*p = piece{next: l.spare, prev: -1}
	l.spare = n + 1
}

// tail notes the last piece of expandable memory.
func (l *Layout) tail(n int32) {
	if p := &l.pieces[n]; p.expandable && p.next < 0 {
		l.tails.Set(p.end(), n)
	}
}

// holding finds the piece around an address; -1: none.
func (l *Layout) holding(address uint64) int32 {
	return int32(slices.IndexFunc(l.pieces, func(p piece) bool {
		return p.size > 0 && p.address <= address &&
			address < p.end()
	}))
}

func (p *piece) end() uint64 { return p.address + uint64(p.size) }

// phase is where the pages of expandable memory begin, modulo their size.
func (l *Layout) phase(address uint64, large bool) mem.Bytes {
	return mem.Bytes(address % uint64(l.settings.page(!large)))
}

// gives is what empty_cache would return of a piece.
func (l *Layout) gives(p *piece) mem.Bytes {
	switch {
	case !p.free || p.private:
		return 0
	case p.expandable:
		return wholePages(p.address, p.size, l.settings.page(!p.large), p.phase)
	case p.prev < 0 && p.next < 0:
		return p.size
	}
	return 0
}

// Releasable is what empty_cache would return of the free memory at an address of a segment, which has other blocks or
// none. That is all of a segment without blocks, and of an expandable one the pages that lie wholly in free memory.
func (s *Settings) Releasable(g *mem.Segment, address uint64, free mem.Bytes, others bool) mem.Bytes {
	switch {
	case g.Pool != (mem.PoolID{}):
		return 0
	case g.Expandable:
		page := s.page(!g.Large)
		return wholePages(address, free, page, mem.Bytes(g.Address%uint64(page)))
	case others:
		return 0
	}
	return free
}

// wholePages is how much of a stretch is in pages that lie in it from end to end.
func wholePages(address uint64, size, page, phase mem.Bytes) mem.Bytes {
	ahead := (page - (mem.Bytes(address)-phase)%page) % page
	return max(0, (size-ahead)/page*page)
}
