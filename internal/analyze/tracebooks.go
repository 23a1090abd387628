package analyze

import (
	"math"
	"slices"
	"sort"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// never is the event at which a block that outlives its trace is freed.
const never = math.MaxInt32

// life is a block from its allocation to its reuse. Events are indexes of the trace.
type life struct {
	address   uint64
	size      mem.Bytes // of the block
	requested mem.Bytes
	stack     uint32
	lane      uint32 // index of lanes
	born      int32  // -1: before the trace began
	freed     int32  // by the program
	gone      int32  // may be reused
	owner     uint8  // what the program said it is for: ownerCategories
}

// lane is where a block was asked for. There are few, and millions of lives.
type lane struct {
	stream uint64
	pool   mem.PoolID
}

// levels are what an allocator's statistics would say at one moment.
type levels struct{ allocated, active, reserved, requested mem.Bytes }

// traceBooks is the history of one device, rebuilt from its trace and its final state:
//
//	final segments ──▶ backwards over the events ──▶ initial state ──▶ forwards ──▶ lives, levels
//
// Sizes of blocks are not in a trace. They follow from where free memory lay and from the
// allocator's rule for splitting it; a block that cannot be placed so counts with its rounded size.
type traceBooks struct {
	snapshot *mem.AllocatorSnapshot
	trace    *mem.Trace
	device   int
	lives    []life
	lanes    []lane // distinct

	laneNumbers map[lane]uint32
	lately      uint32 // the lane last asked for
	begin       levels
	peak        levels
	peakAt      int // event after which allocated bytes were highest, first of equals; -1: the beginning
	maximum     levels
	end         levels
	unplaced    int // allocations where no free memory was known
	strange     int // events for blocks or segments that were not there
	curve       []levelPoint

	settings   allocator.Settings
	freeStacks bool      // frees have stacks of their own, which say nothing of who allocated
	releasable mem.Bytes // what empty_cache would give back now
	most       releasePoint

	from, to  int    // events among which the peak is looked for; from -1: the beginning too
	failedAt  int    // the last event that ran out of memory; -1: none
	atFailure pieces // what was cached then

	runs     []phaseRun     // see phaseRuns
	byStack  []uint8        // see stackPhases
	live     mem.AddressMap // address → life, until gone
	nodes    []memoryNode
	spare    int32 // 1 + a node that is nothing any more, first of a list by next
	byStart  mem.AddressMap
	maxSplit mem.Bytes
}

// releasePoint is the event after which empty_cache would have given back most.
type releasePoint struct {
	event int
	bytes mem.Bytes
}

// levelPoint is the highest of a stretch of events.
type levelPoint struct {
	event int
	levels
	releasable mem.Bytes // the most of the stretch
}

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
	curveWidth = 2000
)

// newBooks plays a device's trace. The cost is linear in events and blocks, but for expandable
// segments, whose ranges are kept in order.
func newBooks(s *mem.AllocatorSnapshot, device int) *traceBooks {
	return newBooksOf(s, device, wholeTrace)
}

// newBooksOf likewise, with the peak and the curve of a range of events alone.
func newBooksOf(s *mem.AllocatorSnapshot, device int, r EventRange) *traceBooks {
	b := &traceBooks{from: r.From, to: r.To, snapshot: s, device: device, trace: &mem.Trace{Device: device}, peakAt: -1}
	for i := range s.Traces {
		if s.Traces[i].Device == device {
			b.trace = &s.Traces[i]
		}
	}
	for b.failedAt = b.trace.Len() - 1; b.failedAt >= 0 && b.trace.Action[b.failedAt] != mem.ActionOOM; b.failedAt-- {
	}
	b.maxSplit = settingBytes(s.Settings["max_split_size"])
	b.settings, _ = allocator.SettingsOf(s) // the defaults where the file's own cannot be read
	b.freeStacks = stacksOfFrees(b.trace)
	allocations := 0
	for _, action := range b.trace.Action {
		if action == mem.ActionAlloc {
			allocations++
		}
	}
	b.initial()
	b.lives = append(make([]life, 0, len(b.lives)+allocations), b.lives...) // hundreds of megabytes: neither copied nor cleared
	b.now(&b.begin)
	b.most = releasePoint{-1, b.releasable}
	b.peak, b.maximum = b.begin, b.begin
	b.play()
	b.own()
	return b
}

func settingBytes(text string) mem.Bytes {
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<50 {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return mem.Bytes(n)
}

// now sums what is alive at the beginning.
func (b *traceBooks) now(l *levels) {
	for i := range b.lives {
		if b.lives[i].freed == -1 { // waiting for another stream already
			b.lives[i].freed = -2
		} else {
			l.allocated += b.lives[i].size
		}
		l.active += b.lives[i].size
		l.requested += b.lives[i].requested
	}
	for i := range b.nodes {
		l.reserved += b.nodes[i].size
		b.releasable += b.nodes[i].gives()
	}
}

// play goes through the events forwards.
func (b *traceBooks) play() {
	t, at := b.trace, b.begin
	width := max(1, (t.Len()+curveWidth-1)/curveWidth)
	if b.from < 0 {
		b.curve = append(b.curve, levelPoint{-1, at, b.releasable})
	}
	high := levelPoint{-1, at, 0}
	if b.from >= 0 {
		high.reserved = -1
	}
	for i := range t.Action {
		b.event(i, &at)
		if i == b.failedAt {
			b.atFailure = b.pieces()
		}
		if i > b.to {
			continue
		}
		if i <= b.from || at.allocated > b.peak.allocated {
			b.peak, b.peakAt = at, i
		}
		if i <= b.from {
			b.maximum = at
		}
		if i < b.from {
			continue
		}
		b.maximum = levels{max(b.maximum.allocated, at.allocated), max(b.maximum.active, at.active),
			max(b.maximum.reserved, at.reserved), max(b.maximum.requested, at.requested)}
		if b.releasable > b.most.bytes {
			b.most = releasePoint{i, b.releasable}
		}
		if i%width == 0 || at.reserved > high.reserved || at.reserved == high.reserved && at.allocated > high.allocated {
			high.event, high.levels = i, at
		}
		high.releasable = max(high.releasable, b.releasable)
		if i%width == width-1 || i == min(t.Len()-1, b.to) {
			b.curve = append(b.curve, high)
			high = levelPoint{-1, levels{reserved: -1}, 0}
		}
	}
	b.end = at
}

func (b *traceBooks) event(i int, at *levels) {
	t := b.trace
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		l := life{address: address, size: b.place(address, size), requested: size, stack: t.Stack[i], lane: b.laneAt(i), born: int32(i), freed: never, gone: never}
		if old, ok := b.live.Get(address); ok { // the ring has a hole, or the file is made up
			b.strange++
			b.forget(old, i, at)
		}
		b.live.Set(address, int32(len(b.lives)))
		b.lives = append(b.lives, l)
		at.allocated += l.size
		at.active += l.size
		at.requested += l.requested
	case mem.ActionFreeRequested:
		if n, ok := b.live.Get(address); ok && b.lives[n].freed == never {
			b.lives[n].freed = int32(i)
			at.allocated -= b.lives[n].size
		} else {
			b.strange++
		}
	case mem.ActionFreeCompleted:
		if n, ok := b.live.Get(address); ok {
			b.forget(n, i, at)
			b.release(address)
		} else {
			b.strange++
		}
	case mem.ActionSegmentAlloc:
		n := b.addNode(memoryNode{address: address, size: size, free: true, large: size > 2*mem.MiB, private: b.privateAt(i), prev: -1, next: -1})
		b.releasable += b.nodes[n].gives()
		at.reserved += size
	case mem.ActionSegmentMap:
		b.mapped(address, size, b.privateAt(i))
		at.reserved += size
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		b.unmapped(address, size)
		at.reserved -= size
	}
}

// forget ends a life.
func (b *traceBooks) forget(n int32, i int, at *levels) {
	l := &b.lives[n]
	if l.freed == never { // traces of 2.0 and made-up ones complete without a request
		l.freed = int32(i)
		at.allocated -= l.size
	}
	l.gone = int32(i)
	at.active -= l.size
	at.requested -= l.requested
	b.live.Take(l.address)
}

// place cuts a block out of free memory and returns its size.
func (b *traceBooks) place(address uint64, requested mem.Bytes) mem.Bytes {
	size := b.settings.Round(requested)
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

// laneAt numbers the lane of an event.
func (b *traceBooks) laneAt(i int) uint32 {
	at := lane{stream: b.trace.Stream[i]}
	if b.trace.Pool != nil {
		at.pool = b.trace.Pool[i]
	}
	return b.laneOf(at)
}

func (b *traceBooks) laneOf(at lane) uint32 {
	if n := b.lately; int(n) < len(b.lanes) && b.lanes[n] == at {
		return n
	}
	n, ok := b.laneNumbers[at]
	if !ok {
		if b.laneNumbers == nil {
			b.laneNumbers = map[lane]uint32{}
		}
		n = uint32(len(b.lanes))
		b.lanes = append(b.lanes, at)
		b.laneNumbers[at] = n
	}
	b.lately = n
	return n
}

func (b *traceBooks) privateAt(i int) bool {
	return b.trace.Pool != nil && b.trace.Pool[i] != (mem.PoolID{})
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

// alive calls with each block in use after an event, in the order of their births.
func (b *traceBooks) alive(at int, with func(*life)) {
	b.aliveNumbers(at, func(n int) { with(&b.lives[n]) })
}

// aliveNumbers likewise, with the numbers of their lives.
func (b *traceBooks) aliveNumbers(at int, with func(n int)) {
	for i := range b.lives {
		l := &b.lives[i]
		if int(l.born) > at {
			return
		}
		if int(l.freed) > at && l.freed != -2 {
			with(i)
		}
	}
}

// levelsAt is what the statistics said after an event.
func (b *traceBooks) levelsAt(at int) levels {
	l := levels{reserved: b.begin.reserved}
	for i := range b.lives {
		of := &b.lives[i]
		if int(of.born) > at {
			break
		}
		if int(of.freed) > at && of.freed != -2 {
			l.allocated += of.size
		}
		if int(of.gone) > at {
			l.active += of.size
			l.requested += of.requested
		}
	}
	for i := 0; i <= at && i < b.trace.Len(); i++ {
		switch b.trace.Action[i] {
		case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
			l.reserved += b.trace.Size[i]
		case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
			l.reserved -= b.trace.Size[i]
		}
	}
	return l
}

// time is the wall clock of an event, 0 where it is not known.
func (b *traceBooks) time(event int) int64 {
	if len(b.trace.Time) == 0 {
		return 0
	}
	return b.trace.Time[min(max(event, 0), len(b.trace.Time)-1)]
}

// eventAt is the last event at or before a time of the wall clock; -1: none.
func (b *traceBooks) eventAt(time int64) int {
	return sort.Search(len(b.trace.Time), func(i int) bool { return b.trace.Time[i] > time }) - 1
}
