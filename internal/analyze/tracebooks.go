package analyze

import (
	"math"
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

	settings allocator.Settings
	layout   *allocator.Layout
	most     releasePoint

	from, to  int    // events among which the peak is looked for; from -1: the beginning too
	failedAt  int    // the last event that ran out of memory; -1: none
	atFailure pieces // what was cached then

	runs    []phaseRun     // see phaseRuns
	byStack []uint8        // see stackPhases
	live    mem.AddressMap // address → life, until gone; of pairs once the trace is played
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

const curveWidth = 2000

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
	b.settings, _ = allocator.SettingsOf(s) // the defaults where the file's own cannot be read
	allocations := 0
	for _, action := range b.trace.Action {
		if action == mem.ActionAlloc {
			allocations++
		}
	}
	room := roomFor(allocations)
	b.initial()
	b.lives = append(room(), b.lives...)
	b.now(&b.begin)
	b.most = releasePoint{-1, b.layout.Releasable}
	b.peak, b.maximum = b.begin, b.begin
	b.play()
	b.own()
	return b
}

// initial takes over the state before the first event.
func (b *traceBooks) initial() {
	begin := allocator.RewindAnyway(b.snapshot, b.trace, b.settings)
	for i := range begin.Segments {
		g := &begin.Segments[i]
		b.begin.reserved += g.Size
		of := b.laneOf(lane{g.Stream, g.Pool})
		for _, block := range g.Blocks {
			if block.State != mem.BlockInactive {
				b.before(block, of)
			}
		}
	}
	for _, block := range begin.Loose {
		b.before(block.Block, b.laneOf(lane{block.Stream, block.Pool}))
	}
	b.strange += begin.Overlaps
	b.layout = allocator.NewLayout(begin, b.settings)
}

// before adds a block that was in use when the trace began.
func (b *traceBooks) before(block mem.Block, of uint32) {
	l := life{address: block.Address, size: block.Size, requested: block.Requested, stack: block.Stack, lane: of, born: -1, freed: never, gone: never}
	if block.State == mem.BlockPendingFree { // waiting for another stream already
		l.freed = -2
	}
	b.live.Set(l.address, int32(len(b.lives)))
	b.lives = append(b.lives, l)
}

// now sums what is alive at the beginning.
func (b *traceBooks) now(l *levels) {
	for i := range b.lives {
		if b.lives[i].freed != -2 {
			l.allocated += b.lives[i].size
		}
		l.active += b.lives[i].size
		l.requested += b.lives[i].requested
	}
}

// play goes through the events forwards.
func (b *traceBooks) play() {
	t, at := b.trace, b.begin
	width := max(1, (t.Len()+curveWidth-1)/curveWidth)
	if b.from < 0 {
		b.curve = append(b.curve, levelPoint{-1, at, b.layout.Releasable})
	}
	high := levelPoint{-1, at, 0}
	if b.from >= 0 {
		high.reserved = -1
	}
	pairs := b.pair()
	for i := range t.Action {
		b.event(i, pairs.of(i), &at)
		if b.trace.Reserved != nil {
			at.reserved = b.trace.Reserved[i]
		}
		if i == b.failedAt {
			b.atFailure.bytes, b.atFailure.largest, b.atFailure.count = b.layout.Free()
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
		if b.layout.Releasable > b.most.bytes {
			b.most = releasePoint{i, b.layout.Releasable}
		}
		if i%width == 0 || at.reserved > high.reserved || at.reserved == high.reserved && at.allocated > high.allocated {
			high.event, high.levels = i, at
		}
		high.releasable = max(high.releasable, b.layout.Releasable)
		if i%width == width-1 || i == min(t.Len()-1, b.to) {
			b.curve = append(b.curve, high)
			high = levelPoint{-1, levels{reserved: -1}, 0}
		}
	}
	b.end = at
}

// event plays one; n is the life at its address, noLife if there is none.
func (b *traceBooks) event(i int, n int32, at *levels) {
	t := b.trace
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		l := life{address: address, size: b.sizeOf(address, size), requested: size, stack: t.Stack[i], lane: b.laneAt(i), born: int32(i), freed: never, gone: never}
		if n != noLife { // the ring has a hole, or the file is made up
			b.strange++
			b.forget(n, i, at)
		}
		b.lives = append(b.lives, l)
		at.allocated += l.size
		at.active += l.size
		at.requested += l.requested
	case mem.ActionFreeRequested:
		if n != noLife && b.lives[n].freed == never {
			b.lives[n].freed = int32(i)
			at.allocated -= b.lives[n].size
		} else {
			b.strange++
		}
	case mem.ActionFreeCompleted:
		if n != noLife {
			b.forget(n, i, at)
			b.layout.Release(address)
		} else {
			b.strange++
		}
	case mem.ActionSegmentAlloc:
		b.layout.Add(address, size, b.privateAt(i))
		at.reserved += size
	case mem.ActionSegmentMap:
		b.layout.Map(address, size, b.privateAt(i))
		at.reserved += size
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		if !b.layout.Remove(address, size) {
			b.strange++
		}
		at.reserved -= size
	}
}

// sizeOf is the size of the block that serves a request.
func (b *traceBooks) sizeOf(address uint64, requested mem.Bytes) mem.Bytes {
	if b.snapshot.Bare {
		return requested
	}
	size, placed := b.layout.Place(address, requested)
	if !placed {
		b.unplaced++
	}
	return size
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
	if b.trace.Reserved != nil && at >= 0 {
		l.reserved = b.trace.Reserved[at]
		return l
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
