package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// stretch is a range of device memory at the beginning of a trace.
type stretch struct {
	start, end uint64
	large      bool
	expandable bool
	stream     uint64
	pool       mem.PoolID
}

func (s stretch) empty() bool { return s.start == s.end }

// initial rebuilds the state before the first event: segments by undoing the events from the last to
// the first, blocks as those that were freed and never allocated, or are there at the end and were
// never allocated.
func (b *traceBooks) initial() {
	held := make(chan []stretch, 1)
	go func() { held <- b.segmentsAfter(-1) }()
	b.initialBlocks()
	blocks := make([]int32, len(b.lives))
	for i := range blocks {
		blocks[i] = int32(i)
	}
	slices.SortStableFunc(blocks, func(p, q int32) int { return cmp.Compare(b.lives[p].address, b.lives[q].address) })
	for i := range b.lives {
		b.live.Set(b.lives[i].address, int32(i))
	}
	next := 0
	for _, s := range <-held {
		for next < len(blocks) && b.lives[blocks[next]].address < s.start {
			next++
		}
		first := next
		for next < len(blocks) && b.lives[blocks[next]].address < s.end {
			next++
		}
		b.fill(s, blocks[first:next])
	}
}

// fill divides a segment into its blocks and the free memory between them.
func (b *traceBooks) fill(s stretch, blocks []int32) {
	at, last := s.start, int32(-1)
	add := func(size mem.Bytes, free bool) {
		n := b.addNode(memoryNode{address: at, size: size, free: free, large: s.large, expandable: s.expandable,
			private: s.pool != mem.PoolID{}, pages: int64(s.start) % pageSize(s.large), prev: last, next: -1})
		if last >= 0 {
			b.nodes[last].next = n
		}
		last = n
		at += uint64(size)
	}
	for i, number := range blocks {
		l := &b.lives[number]
		if l.address < at || l.address+uint64(l.size) > s.end {
			b.strange++
			continue
		}
		if gap := mem.Bytes(l.address - at); gap > 0 {
			add(gap, true)
		}
		until := s.end
		if i+1 < len(blocks) {
			until = b.lives[blocks[i+1]].address
		}
		// Free memory of a large segment is never that small: it is the unsplit rest of the block.
		if rest := mem.Bytes(until - l.address - uint64(l.size)); l.gone != never && s.large && !s.expandable && rest > 0 && rest <= splitLarge {
			l.size += rest
		}
		add(l.size, false)
	}
	if at < s.end {
		add(mem.Bytes(s.end-at), true)
	}
}

// segmentsAfter is the device memory that the allocator held after an event, by address: the final
// segments with the later events undone.
func (b *traceBooks) segmentsAfter(at int) []stretch {
	var all []stretch
	if b.snapshot.Bare {
		return nil
	}
	for _, s := range b.snapshot.Segments {
		if s.Device == b.device {
			all = append(all, stretch{s.Address, s.Address + uint64(s.Size), s.Large, s.Expandable, s.Stream, s.Pool})
		}
	}
	known := map[uint64]int{}
	for i, s := range all {
		known[s.start] = i
	}
	t, gone := b.trace, 0
	for i := t.Len() - 1; i > at; i-- {
		if action := t.Action[i]; action < mem.ActionSegmentAlloc || action > mem.ActionSegmentUnmap {
			continue // of most events nothing else is looked at
		}
		address, size := t.Address[i], t.Size[i]
		was := stretch{start: address, end: address + uint64(size), large: size > 2*mem.MiB, stream: t.Stream[i]}
		if t.Pool != nil {
			was.pool = t.Pool[i]
		}
		switch t.Action[i] {
		case mem.ActionSegmentAlloc:
			if n, ok := known[address]; ok {
				all[n].end = all[n].start
				delete(known, address)
				if gone++; gone > 1000 && gone > len(all)/2 { // or they would be millions
					all, gone = closeUp(known, all), 0
				}
			}
		case mem.ActionSegmentFree:
			known[address] = len(all)
			all = append(all, was)
		case mem.ActionSegmentMap:
			all = cutStretch(all, was.start, was.end)
			reindex(known, all)
		case mem.ActionSegmentUnmap:
			was.large, was.expandable = int64(size)%pageSize(true) == 0, true
			known[address] = len(all)
			all = append(all, was)
		}
	}
	all = slices.DeleteFunc(all, stretch.empty)
	return joinStretches(all)
}

func reindex(known map[uint64]int, all []stretch) {
	clear(known)
	for i, s := range all {
		if s.end > s.start {
			known[s.start] = i
		}
	}
}

// closeUp drops what is empty.
func closeUp(known map[uint64]int, all []stretch) []stretch {
	kept := 0
	for i, s := range all {
		if s.empty() {
			continue
		}
		if n, ok := known[s.start]; ok && n == i {
			known[s.start] = kept
		}
		all[kept] = s
		kept++
	}
	return all[:kept]
}

// cutStretch removes a range from what lies there.
func cutStretch(all []stretch, start, end uint64) []stretch {
	for i := range all {
		s := all[i]
		if s.start == s.end || s.start >= end || s.end <= start {
			continue
		}
		all[i].end = max(s.start, min(s.end, start))
		if s.end > end {
			s.start = end
			all = append(all, s)
		}
	}
	return all
}

// joinStretches joins expandable ranges that touch.
func joinStretches(all []stretch) []stretch {
	slices.SortFunc(all, func(p, q stretch) int { return cmp.Compare(p.start, q.start) })
	var joined []stretch
	for _, s := range all {
		if n := len(joined); n > 0 && s.expandable && joined[n-1].expandable && joined[n-1].end == s.start {
			joined[n-1].end = s.end
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// initialBlocks finds the blocks that were in use when the trace began.
func (b *traceBooks) initialBlocks() {
	t := b.trace
	var begun mem.AddressMap // allocated in the trace, not gone since
	var early mem.AddressMap // freed but not gone, from before
	for i, action := range t.Action {
		address := t.Address[i]
		switch action {
		case mem.ActionAlloc:
			begun.Set(address, 0)
			early.Take(address)
		case mem.ActionFreeRequested:
			if _, ours := begun.Get(address); ours {
				continue
			}
			if _, twice := early.Get(address); !twice {
				early.Set(address, 0)
				b.early(i, never)
			}
		case mem.ActionFreeCompleted:
			_, ours := begun.Take(address)
			if _, requested := early.Take(address); !ours && !requested {
				b.early(i, -1) // its request was before the trace
			}
		}
	}
	requests := slices.Contains(t.Action, mem.ActionFreeRequested)
	if !requests { // then completing is all there is of freeing
		for i := range b.lives {
			b.lives[i].freed = never
		}
	}
	for _, s := range b.snapshot.Segments {
		if s.Device != b.device {
			continue
		}
		for _, block := range s.Blocks {
			_, ours := begun.Get(block.Address)
			if _, freeing := early.Get(block.Address); block.State == mem.BlockInactive || ours || freeing {
				continue
			}
			l := life{address: block.Address, size: block.Size, requested: block.Requested, stack: block.Stack,
				lane: b.laneOf(lane{s.Stream, s.Pool}), born: -1, freed: never, gone: never}
			if block.State == mem.BlockPendingFree {
				l.freed = -1
			}
			b.lives = append(b.lives, l)
		}
	}
}

// early notes a block of before the trace by the event that frees it. It is gone by some event, for
// which the size of its block is open.
func (b *traceBooks) early(i int, freed int32) {
	t := b.trace
	l := life{address: t.Address[i], size: b.rounded(t.Size[i]), requested: t.Size[i], stack: t.Stack[i], lane: b.laneAt(i),
		born: -1, freed: freed, gone: never - 1}
	if b.freeStacks {
		l.stack = 0
	}
	b.lives = append(b.lives, l)
}

// stacksOfFrees says whether frees have stacks of their own, of who freed, and not those of who allocated.
func stacksOfFrees(t *mem.Trace) bool {
	allocated, other, seen := map[uint64]uint32{}, 0, 0
	for i := 0; i < t.Len() && seen < 200; i++ {
		switch t.Action[i] {
		case mem.ActionAlloc:
			allocated[t.Address[i]] = t.Stack[i]
		case mem.ActionFreeRequested, mem.ActionFreeCompleted:
			if stack, ok := allocated[t.Address[i]]; ok {
				seen++
				if stack != t.Stack[i] {
					other++
				}
				delete(allocated, t.Address[i])
			}
		}
	}
	return other > 0
}
