package usage

import (
	"cmp"
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Device is the history of one device's caching allocator, exact, with what only an allocator knows. It is rebuilt
// from the trace and the final state:
//
//	final segments ──▶ allocator.RewindAnyway ──▶ initial state ──▶ forwards along an allocator.Layout ──▶ spans, levels
//
// A span is a block, from the event that allocated it to the one by which the program freed it. Sizes of blocks are not
// in a trace. They follow from where free memory lay and from the allocator's rule for splitting it; a block that
// cannot be placed so counts with its rounded size.
type Device struct {
	*History
	Snapshot *mem.AllocatorSnapshot
	Trace    *mem.Trace // without events where the device has none
	Number   int

	Block      Blocks
	Lanes      []Lane // distinct
	Among      Stretch
	Begin      Levels
	PeakLevels Levels // just after Peak.Moment, the first at which most was allocated of those in Among
	Most       Levels // each at its own moment, likewise
	End        Levels
	Curve      []LevelPoint // the highest of each of up to 2,000 stretches

	Unplaced       int // allocations where no free memory was known
	Contradictions int // events for blocks or segments that were not there

	Settings   allocator.Settings
	Releasable ReleasePoint // when empty_cache would have given back most
	AtEnd      mem.Bytes    // what it would have given back then
	FailedAt   Moment       // the last event that ran out of memory; Beginning: none
	FreeAtThat Pieces       // what was cached then

	layout      *allocator.Layout
	live        mem.AddressMap // address → span, until its block may be reused
	laneNumbers map[Lane]uint32
	lately      uint32 // the lane last asked for
	runs        []phaseRun
	byStack     []uint8 // see stackPhases
	passes      []int32 // the events at which backward passes begin; see savedFor
}

// Blocks are what else is known of spans that are blocks, in columns.
type Blocks struct {
	Gone  []int32  // the event from which on it may be reused: other streams may use it for longer than the program
	Lane  []uint32 // index of Device.Lanes
	owner []uint8  // what the program said it is for: ownerCategories

	// Of the blocks that were there before the trace, which come first. The event that allocated it tells of any other.
	before []blockBefore
}

type blockBefore struct {
	address   uint64
	requested mem.Bytes
}

// AddressOf is where the block of a span lies.
func (d *Device) AddressOf(span int) uint64 {
	if span < len(d.Block.before) {
		return d.Block.before[span].address
	}
	return d.Trace.Address[d.From[span]]
}

// RequestedOf is what was asked for, before rounding.
func (d *Device) RequestedOf(span int) mem.Bytes {
	if span < len(d.Block.before) {
		return d.Block.before[span].requested
	}
	return d.Trace.Size[d.From[span]]
}

// Lane is where a block was asked for. There are few, and millions of blocks.
type Lane struct {
	Stream uint64
	Pool   mem.PoolID
}

// Levels are what an allocator's statistics would say at one moment.
type Levels struct{ Allocated, Active, Reserved, Requested mem.Bytes }

// ReleasePoint is an event, and what empty_cache would have given back after it.
type ReleasePoint struct {
	Moment Moment
	Bytes  mem.Bytes
}

// LevelPoint is the highest of a stretch of events.
type LevelPoint struct {
	Moment Moment
	Levels
	Releasable mem.Bytes // the most of the stretch
}

// Pieces is the free memory that an allocator held.
type Pieces struct {
	Bytes, Largest mem.Bytes
	Count          int
}

// Whole is all of a history.
var Whole = Stretch{Beginning, Never}

const curveWidth = 2000

// FromTrace plays a device's trace, and looks for the peak and the curve among some of its events. The cost is linear
// in events and blocks.
func FromTrace(s *mem.AllocatorSnapshot, device int, among Stretch) *Device {
	d := &Device{Among: among, Snapshot: s, Number: device, Trace: &mem.Trace{Device: device}}
	for i := range s.Traces {
		if s.Traces[i].Device == device {
			d.Trace = &s.Traces[i]
		}
	}
	d.History = &History{Stacks: &s.Stacks, Label: s.Label, Moments: d.Trace.Len(), Times: d.Trace.Time}
	for d.FailedAt = d.Trace.Len() - 1; d.FailedAt >= 0 && d.Trace.Action[d.FailedAt] != mem.ActionOOM; d.FailedAt-- {
	}
	d.Settings, _ = allocator.SettingsOf(s) // the defaults where the file's own cannot be read
	d.Settings.Host = device == mem.HostDevice
	d.takeOverBeginning()
	d.Releasable = ReleasePoint{Beginning, d.layout.Releasable}
	d.PeakLevels, d.Most = d.Begin, d.Begin
	d.Peak.Moment = Beginning
	d.play()
	d.Peak.Bytes, d.Peak.Time = d.PeakLevels.Allocated, d.TimeOf(d.Peak.Moment)
	d.own()
	return d
}

// takeOverBeginning takes over the state before the first event. Room for the blocks to come, which is hundreds of megabytes, is
// got on another core meanwhile.
func (d *Device) takeOverBeginning() {
	allocations := 0
	for _, action := range d.Trace.Action {
		if action == mem.ActionAlloc {
			allocations++
		}
	}
	room := roomFor(allocations)
	begin := allocator.RewindAnyway(d.Snapshot, d.Trace, d.Settings)
	d.Contradictions += begin.Overlaps
	d.layout = allocator.NewLayout(begin, d.Settings)
	d.Spans, d.Block = room()
	for i := range begin.Segments {
		g := &begin.Segments[i]
		d.Begin.Reserved += g.Size
		for _, block := range g.Blocks {
			if block.State != mem.BlockInactive {
				d.before(block, Lane{g.Stream, g.Pool})
			}
		}
	}
	for _, block := range begin.Loose {
		d.before(block.Block, Lane{block.Stream, block.Pool})
	}
}

// before adds a block that was in use when the trace began.
func (d *Device) before(block mem.Block, of Lane) {
	d.Begin.Active += block.Size
	d.Begin.Requested += block.Requested
	freed := int32(Never)
	if block.State == mem.BlockPendingFree { // the program freed it already: it holds nothing, but is not gone
		freed = int32(Beginning)
	} else {
		d.Begin.Allocated += block.Size
	}
	d.live.Set(block.Address, int32(d.Len()))
	d.Block.before = append(d.Block.before, blockBefore{block.Address, block.Requested})
	d.add(block.Size, block.Stack, d.laneOf(of), Beginning, freed)
}

func (d *Device) add(size mem.Bytes, stack, lane uint32, from Moment, to int32) {
	s, b := &d.Spans, &d.Block
	s.Stack, s.Bytes = append(s.Stack, stack), append(s.Bytes, size)
	s.From, s.To = append(s.From, int32(from)), append(s.To, to)
	b.Gone, b.Lane = append(b.Gone, int32(Never)), append(b.Lane, lane)
}

// play goes through the events forwards.
func (d *Device) play() {
	t, at := d.Trace, d.Begin
	width := max(1, (t.Len()+curveWidth-1)/curveWidth)
	high := LevelPoint{Beginning, at, 0}
	if d.Among.From < 0 {
		d.Curve = append(d.Curve, LevelPoint{Beginning, at, d.layout.Releasable})
	} else {
		high.Reserved = -1
	}
	pairs := d.pair()
	for i := range t.Action {
		d.event(i, pairs.of(i), &at)
		if t.Reserved != nil {
			at.Reserved = t.Reserved[i]
		}
		if i == d.FailedAt {
			d.FreeAtThat.Bytes, d.FreeAtThat.Largest, d.FreeAtThat.Count = d.layout.Free()
		}
		if i > d.Among.To {
			continue
		}
		d.highest(i, &at)
		if i < d.Among.From {
			continue
		}
		if i%width == 0 || at.Reserved > high.Reserved || at.Reserved == high.Reserved && at.Allocated > high.Allocated {
			high.Moment, high.Levels = i, at
		}
		high.Releasable = max(high.Releasable, d.layout.Releasable)
		if i%width == width-1 || i == min(t.Len()-1, d.Among.To) {
			d.Curve = append(d.Curve, high)
			high = LevelPoint{Beginning, Levels{Reserved: -1}, 0}
		}
	}
	d.End, d.AtEnd = at, d.layout.Releasable
}

// highest keeps the highest levels among the events that count.
func (d *Device) highest(i Moment, at *Levels) {
	if i <= d.Among.From || at.Allocated > d.PeakLevels.Allocated {
		d.PeakLevels, d.Peak.Moment = *at, i
	}
	if i <= d.Among.From {
		d.Most = *at
	}
	if i < d.Among.From {
		return
	}
	d.Most = Levels{max(d.Most.Allocated, at.Allocated), max(d.Most.Active, at.Active),
		max(d.Most.Reserved, at.Reserved), max(d.Most.Requested, at.Requested)}
	if d.layout.Releasable > d.Releasable.Bytes {
		d.Releasable = ReleasePoint{i, d.layout.Releasable}
	}
}

// event plays one; n is the span at its address, noSpan if there is none.
func (d *Device) event(i Moment, n int32, at *Levels) {
	t := d.Trace
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		if n != noSpan { // the ring has a hole, or the file is made up
			d.Contradictions++
			d.gone(n, i, at)
		}
		block := d.sizeOf(address, size)
		d.add(block, t.Stack[i], d.laneAt(i), i, int32(Never))
		at.Allocated += block
		at.Active += block
		at.Requested += size
	case mem.ActionFreeRequested:
		if n != noSpan && d.To[n] == int32(Never) {
			d.To[n] = int32(i)
			at.Allocated -= d.Bytes[n]
		} else {
			d.Contradictions++
		}
	case mem.ActionFreeCompleted:
		if n != noSpan {
			d.gone(n, i, at)
			d.layout.Release(address)
		} else {
			d.Contradictions++
		}
	case mem.ActionSegmentAlloc:
		d.layout.Add(address, size, d.privateAt(i))
		at.Reserved += size
	case mem.ActionSegmentMap:
		d.layout.Map(address, size, d.privateAt(i))
		at.Reserved += size
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		if !d.layout.Remove(address, size) {
			d.Contradictions++
		}
		at.Reserved -= size
	}
}

// sizeOf is the size of the block that serves a request.
func (d *Device) sizeOf(address uint64, requested mem.Bytes) mem.Bytes {
	if d.Snapshot.Bare {
		return requested
	}
	size, placed := d.layout.Place(address, requested)
	if !placed {
		d.Unplaced++
	}
	return size
}

// gone ends the block of a span.
func (d *Device) gone(n int32, i Moment, at *Levels) {
	if d.To[n] == int32(Never) { // traces of 2.0 and made-up ones complete without a request
		d.To[n] = int32(i)
		at.Allocated -= d.Bytes[n]
	}
	d.Block.Gone[n] = int32(i)
	at.Active -= d.Bytes[n]
	at.Requested -= d.RequestedOf(int(n))
}

// laneAt numbers the lane of an event.
func (d *Device) laneAt(i Moment) uint32 {
	at := Lane{Stream: mem.At(d.Trace.Stream, i)}
	if d.Trace.Pool != nil {
		at.Pool = d.Trace.Pool[i]
	}
	return d.laneOf(at)
}

func (d *Device) laneOf(at Lane) uint32 {
	if n := d.lately; int(n) < len(d.Lanes) && d.Lanes[n] == at {
		return n
	}
	n, ok := d.laneNumbers[at]
	if !ok {
		if d.laneNumbers == nil {
			d.laneNumbers = map[Lane]uint32{}
		}
		n = uint32(len(d.Lanes))
		d.Lanes = append(d.Lanes, at)
		d.laneNumbers[at] = n
	}
	d.lately = n
	return n
}

func (d *Device) privateAt(i Moment) bool {
	return d.Trace.Pool != nil && d.Trace.Pool[i] != (mem.PoolID{})
}

// LevelsAt is what the statistics said after an event.
func (d *Device) LevelsAt(at Moment) Levels {
	l := Levels{Reserved: d.Begin.Reserved, Allocated: d.Total(at)}
	for i, from := range d.From {
		if int(from) > at {
			break
		}
		if int(d.Block.Gone[i]) > at {
			l.Active += d.Bytes[i]
			l.Requested += d.RequestedOf(i)
		}
	}
	if d.Trace.Reserved != nil && at >= 0 {
		l.Reserved = d.Trace.Reserved[at]
		return l
	}
	for i := 0; i <= at && i < d.Trace.Len(); i++ {
		l.Reserved += d.taken(i)
	}
	return l
}

// taken is what an event took from the device, or gave back.
func (d *Device) taken(i Moment) mem.Bytes {
	switch d.Trace.Action[i] {
	case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
		return d.Trace.Size[i]
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		return -d.Trace.Size[i]
	}
	return 0
}

// KnowsSegments says whether the file tells of segments: a profiler's trace does not, nor one that was cut down to
// its events.
func (d *Device) KnowsSegments() bool {
	return !d.Snapshot.Bare && (d.Most.Reserved > 0 || d.PeakLevels.Allocated == 0)
}

// ReservedAt is what was reserved after an event, absent where the file does not tell.
func (d *Device) ReservedAt(event Moment, l Levels) mem.Optional {
	if d.KnowsSegments() || d.Trace.Reserved != nil && event >= 0 {
		return mem.Some(int64(l.Reserved))
	}
	return mem.Optional{}
}

// Course is what was allocated and reserved at the beginning, and after each event.
func (d *Device) Course() (allocated, reserved []mem.Bytes) {
	t := d.Trace
	allocated, reserved = make([]mem.Bytes, t.Len()+1), make([]mem.Bytes, t.Len()+1)
	for i, from := range d.From {
		allocated[from+1] += d.Bytes[i]
		if to := int(d.To[i]); to < t.Len() {
			allocated[to+1] -= d.Bytes[i]
		}
	}
	reserved[0] = d.Begin.Reserved
	for i := range t.Len() {
		allocated[i+1] += allocated[i]
		reserved[i+1] = reserved[i] + d.taken(i)
	}
	return allocated, reserved
}

// HeldSegment is a segment with the spans whose blocks lie in it, by address.
type HeldSegment struct {
	mem.Segment // without its blocks
	Spans       []int
}

// SegmentsAfter is the memory after an event, with what has not gone yet: it may be in use, or wait for another stream.
func (d *Device) SegmentsAfter(at Moment) []HeldSegment {
	var blocks []int
	for i, from := range d.From {
		if int(from) > at {
			break
		}
		if int(d.Block.Gone[i]) > at {
			blocks = append(blocks, i)
		}
	}
	slices.SortStableFunc(blocks, func(p, q int) int { return cmp.Compare(d.AddressOf(p), d.AddressOf(q)) })
	var all []HeldSegment
	next := 0
	for _, s := range allocator.SegmentsAfter(d.Snapshot, d.Trace, d.Settings, at) {
		for next < len(blocks) && d.AddressOf(blocks[next]) < s.Address {
			next++
		}
		p, end, until := HeldSegment{Segment: s}, s.Address, s.Address+uint64(s.Size)
		for ; next < len(blocks) && d.AddressOf(blocks[next]) < until; next++ {
			n := blocks[next]
			if begin := d.AddressOf(n); begin >= end && begin+uint64(d.Bytes[n]) <= until { // else it contradicts another
				p.Spans, end = append(p.Spans, n), begin+uint64(d.Bytes[n])
			}
		}
		all = append(all, p)
	}
	return all
}
