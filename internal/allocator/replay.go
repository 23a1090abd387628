package allocator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Replay is a recorded trace, ready to be run again: what was held when it began, then what the
// program asked. It belongs to one device.
type Replay struct {
	trace *mem.Trace
	begin []mem.Segment // by address, without gaps

	emptied map[int]bool // events with which the program's own empty_cache begins; found by Verify
}

// ErrNoTrace says that there is nothing to run again.
var ErrNoTrace = errors.New("it holds no history of allocations")

// NewReplay rebuilds how a device's trace began by undoing it from the recorded end.
//
// Errors name what cannot be run again: no history, expandable segments (their state before the trace
// is not rebuilt), events that fit no allocation.
func NewReplay(s *mem.AllocatorSnapshot, device int) (*Replay, error) {
	i := slices.IndexFunc(s.Traces, func(t mem.Trace) bool { return t.Device == device })
	if i < 0 || s.Traces[i].Len() == 0 {
		return nil, fmt.Errorf("device %d: %w", device, ErrNoTrace)
	}
	r := &Replay{trace: &s.Traces[i]}
	u := undo{segments: map[uint64]mem.Segment{}, blocks: map[uint64]mem.Block{}, exact: map[uint64]bool{}}
	for _, segment := range s.Segments {
		if segment.Device != device {
			continue
		}
		if segment.Expandable {
			return nil, errors.New("it was recorded with expandable segments, whose beginning is not rebuilt")
		}
		u.segments[segment.Address] = segment
		for _, b := range segment.Blocks {
			if b.State != mem.BlockInactive {
				u.blocks[b.Address], u.exact[b.Address] = b, true
			}
		}
	}
	for i := r.trace.Len() - 1; i >= 0; i-- {
		if err := u.event(r.trace, i); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	var err error
	r.begin, err = u.layout()
	return r, err
}

// undo is the state in front of an event, going backwards.
type undo struct {
	segments map[uint64]mem.Segment
	blocks   map[uint64]mem.Block
	exact    map[uint64]bool // the block's size is recorded, not worked out
}

func (u *undo) event(t *mem.Trace, i int) error {
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		if _, ok := u.blocks[address]; !ok {
			return fmt.Errorf("an allocation at %#x that is neither freed nor there at the end", address)
		}
		delete(u.blocks, address)
		delete(u.exact, address)
	case mem.ActionFreeCompleted:
		if _, ok := u.blocks[address]; ok {
			return fmt.Errorf("a free of %#x, which is in use after it", address)
		}
		u.blocks[address] = mem.Block{Address: address, Requested: size, State: mem.BlockPendingFree}
	case mem.ActionFreeRequested:
		b, ok := u.blocks[address]
		if !ok {
			return fmt.Errorf("a free of %#x that was never completed", address)
		}
		b.State = mem.BlockAllocated
		u.blocks[address] = b
	case mem.ActionSegmentAlloc:
		delete(u.segments, address)
	case mem.ActionSegmentFree:
		u.segments[address] = mem.Segment{Address: address, Size: size, Stream: t.Stream[i], Large: size > smallSegment, Pool: poolAt(t, i)}
	case mem.ActionSegmentMap, mem.ActionSegmentUnmap:
		return errors.New("expandable segments, whose beginning is not rebuilt")
	}
	return nil
}

func poolAt(t *mem.Trace, i int) mem.PoolID {
	if len(t.Pool) == 0 {
		return mem.PoolID{}
	}
	return t.Pool[i]
}

// layout puts the blocks into their segments. Of a block whose size is not recorded it is the rounded
// request and, in a large segment, a rest too small to be split off.
func (u *undo) layout() ([]mem.Segment, error) {
	var out []mem.Segment
	for _, s := range u.segments {
		s.Blocks = nil
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b mem.Segment) int { return cmp.Compare(a.Address, b.Address) })
	var blocks []mem.Block
	for _, b := range u.blocks {
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b mem.Block) int { return cmp.Compare(a.Address, b.Address) })
	settings := Settings{}
	for i := range out {
		s := &out[i]
		at, end := s.Address, s.Address+uint64(s.Size)
		for len(blocks) > 0 && blocks[0].Address < end {
			b := blocks[0]
			blocks = blocks[1:]
			if b.Address < at {
				return nil, fmt.Errorf("the block at %#x lies in another one, or in no segment", b.Address)
			}
			if b.Address > at {
				s.Blocks = append(s.Blocks, mem.Block{Address: at, Size: mem.Bytes(b.Address - at)})
			}
			until := end
			if len(blocks) > 0 && blocks[0].Address < end {
				until = blocks[0].Address
			}
			room := mem.Bytes(until - b.Address)
			if !u.exact[b.Address] {
				b.Size = settings.Round(b.Requested)
				if rest := room - b.Size; s.Large && rest > 0 && rest <= smallLimit {
					b.Size = room
				}
			}
			if b.Size > room {
				return nil, fmt.Errorf("the block at %#x reaches into the next one", b.Address)
			}
			s.Blocks = append(s.Blocks, b)
			at = b.Address + uint64(b.Size)
		}
		if at < end {
			s.Blocks = append(s.Blocks, mem.Block{Address: at, Size: mem.Bytes(end - at)})
		}
	}
	if len(blocks) > 0 {
		return nil, fmt.Errorf("the block at %#x lies in no segment", blocks[0].Address)
	}
	return out, nil
}

// Restore puts segments with their blocks into an allocator that holds nothing yet, and returns the
// handles of the blocks in use by address.
func (n *Native) Restore(segments []mem.Segment) map[uint64]Handle {
	handles := map[uint64]Handle{}
	for _, s := range segments {
		p := n.poolFor(s.Pool, 2*smallLimit)
		if !s.Large {
			p = n.poolFor(s.Pool, minBlock)
		}
		rest := n.newSegment(p.of(s.Stream), s.Address, s.Size)
		n.total += s.Size
		n.both(p, func(f *Figures) {
			f.Segment.up(1)
			f.ReservedBytes.up(int64(s.Size))
		})
		for i, b := range s.Blocks {
			current := rest
			if i+1 < len(s.Blocks) {
				rest = n.splitAfter(current, b.Size)
				n.removeFree(rest)
			}
			block := &n.blocks[current]
			if b.State == mem.BlockInactive {
				n.insertFree(current)
				if len(s.Blocks) > 1 {
					n.both(p, func(f *Figures) { f.change(1, b.Size) })
				}
				continue
			}
			block.state, block.requested = allocated, b.Requested
			n.both(p, func(f *Figures) { f.handedOut(b.Size, b.Requested) })
			if b.State == mem.BlockPendingFree {
				n.both(p, func(f *Figures) { f.letGo(b.Size) })
				block.state = waiting
				n.pending = append(n.pending, current)
			}
			handles[b.Address] = Handle(current)
		}
	}
	return handles
}

// Outcome is what came of running a trace again.
type Outcome struct {
	Usage
	Addresses, AddressesExact int // allocations, and those that landed where the record has them
	Segments, SegmentsExact   int // segment_alloc and segment_free, and those that are as recorded
	OOM                       int // index of the allocation's event that found no memory; -1: none
	OOMSize                   mem.Bytes
}

// Verify runs the trace under the settings it was recorded with and holds every address and segment
// against the record. New segments get the recorded addresses: a driver's cannot be foretold.
func (r *Replay) Verify(settings Settings, rules Rules) Outcome {
	r.emptied = map[int]bool{}
	p := &playback{Replay: r, verify: true, taken: map[int]bool{}, out: Outcome{OOM: -1}}
	return p.run(settings, rules, 0, p)
}

// Run is the trace under other settings, or on a device of that capacity for the allocator (0: no
// end). Addresses of new segments are made up, ascending or descending: ties between free blocks of
// one size go by address, so the difference between the two is what cannot be known.
func (r *Replay) Run(settings Settings, rules Rules, capacity mem.Bytes, down bool) Outcome {
	if r.emptied == nil {
		r.Verify(Settings{}, rules)
	}
	p := &playback{Replay: r, out: Outcome{OOM: -1}}
	return p.run(settings, rules, capacity, &Device{Capacity: capacity, Down: down})
}

// playback is a replay under way. As a Driver it answers from the record.
type playback struct {
	*Replay
	n       *Native
	handles map[uint64]Handle
	verify  bool
	at      int          // the next event
	taken   map[int]bool // of a verification: segment events that the model produced as well
	out     Outcome
}

func (p *playback) run(settings Settings, rules Rules, capacity mem.Bytes, driver Driver) Outcome {
	p.n = NewNative(settings, rules, capacity, driver)
	held := mem.Bytes(0)
	for _, s := range p.begin {
		held += roundUp(s.Size, driverPage)
	}
	if p.verify || settings == (Settings{}) && (capacity == 0 || held <= capacity) {
		p.handles = p.n.Restore(p.begin)
		if d, ok := driver.(*Device); ok {
			d.Held = held
		}
	} else {
		p.begins()
	}
	if p.verify {
		p.n.Observe = p.compare
	}
	for p.at < p.trace.Len() && p.out.OOM < 0 {
		p.step()
	}
	p.out.Usage = p.n.Usage()
	return p.out
}

// begins asks anew for what was in use when the trace began: other settings, or a smaller device, would
// have laid it out in another way.
func (p *playback) begins() {
	p.handles = map[uint64]Handle{}
	for _, s := range p.begin {
		for _, b := range s.Blocks {
			if b.State == mem.BlockInactive {
				continue
			}
			h := p.n.Malloc(Request{Size: max(b.Requested, 1), Stream: s.Stream, Pool: s.Pool})
			if h == 0 {
				p.out.OOM, p.out.OOMSize = 0, b.Requested
				return
			}
			p.handles[b.Address] = h
		}
	}
}

// step plays the event at p.at. In a verification the segments' events are the model's own to produce.
func (p *playback) step() {
	i := p.at
	t := p.trace
	address := t.Address[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		p.malloc(i)
	case mem.ActionFreeRequested:
		p.at++
		if h := p.handles[address]; h != 0 {
			p.n.FreeRequested(h)
		}
	case mem.ActionFreeCompleted:
		p.at++
		if h := p.handles[address]; h != 0 {
			p.n.FreeCompleted(h)
			delete(p.handles, address)
		}
	case mem.ActionSegmentFree, mem.ActionSegmentAlloc:
		p.segments()
	case mem.ActionOOM:
		p.refused(i)
	default:
		p.at++
	}
}

// segments plays the segment events ahead. Frees are the program's own empty_cache where they lead to
// no new segment and no out-of-memory, or where the cache still had a block for the request that
// follows: the allocator retries only without one. Either way the whole cache goes back; only the
// program's calls are its own under other settings too.
func (p *playback) segments() {
	end := p.at
	for end < p.trace.Len() && p.trace.Action[end] == mem.ActionSegmentFree {
		end++
	}
	if end == p.at { // a new segment: part of the allocation that follows
		next := end
		for next < p.trace.Len() && isSegment(p.trace.Action[next]) {
			next++
		}
		if next < p.trace.Len() && p.trace.Action[next] == mem.ActionAlloc {
			p.malloc(next)
		} else {
			p.at = next
		}
		return
	}
	if p.verify {
		p.out.Segments += end - p.at
		if p.program(end) {
			p.emptied[p.at] = true
		}
		p.n.EmptyCache()
	} else if p.emptied[p.at] {
		p.n.EmptyCache()
	}
	p.at = end
}

// program says whether the frees in front of event i are the program's own.
func (p *playback) program(i int) bool {
	for i < p.trace.Len() && p.trace.Action[i] == mem.ActionSegmentAlloc {
		i++
	}
	if i >= p.trace.Len() || p.trace.Action[i-1] == mem.ActionSegmentFree && p.trace.Action[i] != mem.ActionOOM {
		return true
	}
	rounded := p.n.settings.Round(p.trace.Size[i])
	a := ask{Request: Request{Size: p.trace.Size[i], Stream: p.trace.Stream[i]}, rounded: rounded, pool: p.n.poolFor(poolAt(p.trace, i), rounded)}
	a.list = a.pool.of(a.Stream)
	b := p.n.takeFree(&a)
	if b == 0 {
		return false
	}
	p.n.insertFree(b)
	return true
}

// refused plays a request that the record refuses. Under other settings it may succeed; as the record
// does not say for how long, it is given back at once.
func (p *playback) refused(i int) {
	h := p.n.Malloc(Request{Size: p.trace.Size[i], Stream: p.trace.Stream[i], Pool: poolAt(p.trace, i)})
	p.at = i + 1
	if h != 0 {
		p.n.Free(h)
		return
	}
	if !p.verify {
		p.out.OOM, p.out.OOMSize = i, p.trace.Size[i]
	}
}

func isSegment(a mem.Action) bool { return a == mem.ActionSegmentAlloc || a == mem.ActionSegmentFree }

// malloc plays the allocation at event i, with the segment events between p.at and i.
func (p *playback) malloc(i int) {
	t := p.trace
	if p.verify {
		p.out.Segments += i - p.at
	}
	p.out.Addresses++
	h := p.n.Malloc(Request{Size: t.Size[i], Stream: t.Stream[i], Pool: poolAt(t, i)})
	p.at = i + 1
	if h == 0 {
		p.out.OOM, p.out.OOMSize = i, t.Size[i]
		return
	}
	if p.n.blocks[h].address == t.Address[i] {
		p.out.AddressesExact++
	}
	p.handles[t.Address[i]] = h
}

// compare holds a segment event of the model against those of the record ahead, each of which matches
// once; the frees of one empty_cache may come in any order. What the record lacks counts as inexact.
func (p *playback) compare(e Event) {
	if !isSegment(e.Action) {
		return
	}
	for i := p.at; i < p.trace.Len() && isSegment(p.trace.Action[i]); i++ {
		if p.trace.Action[i] == e.Action && p.trace.Address[i] == e.Address && p.trace.Size[i] == e.Size && !p.taken[i] {
			p.taken[i] = true
			p.out.SegmentsExact++
			return
		}
	}
	p.out.Segments++
}

// Malloc answers with the recorded address; where the record has an out-of-memory, the device was full.
func (p *playback) Malloc(size mem.Bytes) (uint64, bool) {
	if i := p.at; i < p.trace.Len() {
		switch {
		case p.trace.Action[i] == mem.ActionSegmentAlloc && p.trace.Size[i] == size:
			return p.trace.Address[i], true
		case p.trace.Action[i] == mem.ActionOOM:
			return 0, false
		}
	}
	return highestAddress + uint64(p.n.total), true // the record has none: a mismatch, which is counted
}

// Free, Reserve, Release, Map and Unmap: the record says all there is to know.
func (p *playback) Free(uint64, mem.Bytes)                {}
func (p *playback) Reserve(mem.Bytes) (uint64, bool)      { return 0, false }
func (p *playback) Release(uint64, mem.Bytes)             {}
func (p *playback) Map(uint64, mem.Bytes, mem.Bytes) bool { return false }
func (p *playback) Unmap(uint64, mem.Bytes)               {}
