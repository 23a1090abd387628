package allocator

import (
	"slices"
	"sort"

	"hightide/internal/mem"
)

// Program is what a program asked of the allocator on one device, without what the allocator did of
// its own accord. It can be run under any Policy, many times at once.
type Program struct {
	Device    int
	Beginning *Beginning
	Settings  Settings // it was recorded under
	Ops       []Op
	Blocks    int // IDs are below; those of the Beginning's live blocks come first, by address

	// EmptyCaches counts the program's own calls of empty_cache, Sweeps what was told to be the
	// allocator's own. Guessed of both had no stacks to tell by.
	EmptyCaches, Sweeps, Guessed int
}

// OpKind is what a program does.
type OpKind uint8

// Kinds of Op.
const (
	OpAlloc         OpKind = iota
	OpFailed               // an allocation that ran out of memory in the record; if it can be served, it is freed at once
	OpFree                 // requested and completed
	OpFreeRequested        // other streams still use it
	OpFreeCompleted
	OpEmptyCache
	OpReleasePool // nobody uses a private pool any more: its memory may be given back
	OpEmptyPool   // and was given back at once, with none of another pool: a torch.cuda.MemPool was dropped
)

// Op is one thing that a program did.
type Op struct {
	Kind  OpKind
	ID    int32 // of the block
	Event int32 // of the trace
	Request
}

// Compile makes a Program of a device's trace.
func Compile(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings) (*Program, error) {
	begin, err := Rewind(s, t, settings)
	if err != nil {
		return nil, err
	}
	c := &compiler{p: &Program{Device: t.Device, Beginning: begin, Settings: settings}, t: t, names: map[uint64]int32{},
		pool: poolsOf(s, t), reserved: reservedAt(begin, t)}
	for _, g := range begin.Segments {
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				c.names[b.Address] = c.name()
			}
		}
	}
	for i := 0; i < t.Len(); {
		i += c.event(i)
	}
	return c.p, nil
}

// Through is the program up to a request that failed in the record, and with that request to be served
// like any other.
func (p *Program) Through(event int) *Program {
	part := *p
	end := sort.Search(len(p.Ops), func(i int) bool { return int(p.Ops[i].Event) > event })
	part.Ops = slices.Clone(p.Ops[:end])
	if end > 0 && part.Ops[end-1].Kind == OpFailed {
		part.Ops[end-1].Kind = OpAlloc
	}
	return &part
}

// RoomAt is how much of the device the allocator had or could have taken when a request failed: what it
// held, and what the device said was free. If that was enough, a memory limit was set: then it is the
// most that was held up to there, which the limit cannot be below.
func (p *Program) RoomAt(t *mem.Trace, event int) (room mem.Bytes, limited bool) {
	held := reservedAt(p.Beginning, t)
	return p.roomAt(held[event], slices.Max(held[:event+1]), t, event)
}

// roomAt is that, of what was held at the request and at most up to it.
func (p *Program) roomAt(held, most mem.Bytes, t *mem.Trace, event int) (room mem.Bytes, limited bool) {
	if free := t.Address[event]; free != mem.FreeUnknown && mem.Bytes(free) < p.Settings.SegmentSize(t.Size[event]) {
		return held + mem.Bytes(free), false
	}
	return most, true
}

// Room is what the allocator can have of the device, by all requests that failed. It is the least that one of them
// tells, but no less than was held at some moment. Where it had to give back its cache to go on, that is all that is
// known. 0: it never lacked memory, so the trace does not tell.
func (p *Program) Room(t *mem.Trace) (room mem.Bytes) {
	held, most := reservedAt(p.Beginning, t), mem.Bytes(0)
	for event, action := range t.Action {
		most = max(most, held[event])
		if action != mem.ActionOOM {
			continue
		}
		if at, _ := p.roomAt(held[event], most, t, event); room == 0 || at < room {
			room = at
		}
	}
	if room > 0 || p.Sweeps > 0 {
		room = max(room, slices.Max(held))
	}
	return room
}

type compiler struct {
	p        *Program
	t        *mem.Trace
	names    map[uint64]int32 // of live blocks, by address
	pool     func(event int) mem.PoolID
	reserved []mem.Bytes // before each event; one more for the end
}

func (c *compiler) name() int32 {
	c.p.Blocks++
	return int32(c.p.Blocks - 1)
}

func (c *compiler) op(kind OpKind, event int, id int32) {
	c.p.Ops = append(c.p.Ops, Op{Kind: kind, ID: id, Event: int32(event)})
}

// event takes in an event, or several that belong together, and returns how many.
func (c *compiler) event(i int) int {
	t := c.t
	switch t.Action[i] {
	case mem.ActionAlloc:
		id := c.name()
		c.names[t.Address[i]] = id
		c.alloc(OpAlloc, i, id)
	case mem.ActionOOM:
		c.alloc(OpFailed, i, c.name())
	case mem.ActionFreeRequested:
		id := c.names[t.Address[i]]
		if i+1 < t.Len() && t.Action[i+1] == mem.ActionFreeCompleted && t.Address[i+1] == t.Address[i] {
			c.op(OpFree, i, id)
			delete(c.names, t.Address[i])
			return 2
		}
		c.op(OpFreeRequested, i, id)
	case mem.ActionFreeCompleted:
		c.completed(i)
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		return c.sweep(i)
	}
	return 1
}

// completed: some recorders write the completion alone.
func (c *compiler) completed(i int) {
	id := c.names[c.t.Address[i]]
	delete(c.names, c.t.Address[i])
	for j := len(c.p.Ops) - 1; j >= 0; j-- {
		if op := &c.p.Ops[j]; op.ID == id && op.Kind < OpEmptyCache {
			if op.Kind == OpFreeRequested {
				c.op(OpFreeCompleted, i, id)
				return
			}
			break
		}
	}
	if c.waitsFromBeginning(id) {
		c.op(OpFreeCompleted, i, id)
		return
	}
	c.op(OpFree, i, id)
}

func (c *compiler) waitsFromBeginning(id int32) bool {
	n := int32(0)
	for _, g := range c.p.Beginning.Segments {
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				if n == id {
					return b.State == mem.BlockPendingFree
				}
				n++
			}
		}
	}
	return false
}

func (c *compiler) alloc(kind OpKind, i int, id int32) {
	pool := c.pool(i)
	c.op(kind, i, id)
	// What is asked of a private pool is asked during a capture, where the allocator must not wait.
	c.p.Ops[len(c.p.Ops)-1].Request = Request{Size: c.t.Size[i], Stream: mem.At(c.t.Stream, i), Pool: pool,
		Capturing: pool != (mem.PoolID{})}
}

// sweep looks at a run of segments given back: the program's empty_cache, its dropping a private pool, or the
// allocator making room.
func (c *compiler) sweep(i int) int {
	n := sweepLength(c.t, i)
	private, others := 0, false
	var released mem.PoolID
	for j := i; j < i+n; j++ {
		pool := c.pool(j)
		if pool == (mem.PoolID{}) {
			others = true
		} else if pool != released {
			c.poolOp(OpReleasePool, i, pool)
			released = pool
			private++
		}
	}
	own, sure := c.own(i, i+n)
	if !sure {
		c.p.Guessed++
	}
	switch {
	case own:
		c.p.Sweeps++
	case private == 1 && !others:
		c.poolOp(OpEmptyPool, i, released)
	default:
		c.p.EmptyCaches++
		c.op(OpEmptyCache, i, 0)
	}
	return n
}

func (c *compiler) poolOp(kind OpKind, event int, pool mem.PoolID) {
	c.op(kind, event, 0)
	c.p.Ops[len(c.p.Ops)-1].Pool = pool
}

// sweepLength is how many events from i on give memory back.
func sweepLength(t *mem.Trace, i int) int {
	n := 0
	for i+n < t.Len() && (t.Action[i+n] == mem.ActionSegmentFree || t.Action[i+n] == mem.ActionSegmentUnmap) {
		n++
	}
	return n
}

// own says whether the events [from, next) are the allocator's own doing in the course of the next one.
// It makes room only for a new segment, or before it gives up. The two calls then have one stack.
// Without stacks: only if the new segment would have exceeded all that was ever held.
func (c *compiler) own(from, next int) (own, sure bool) {
	t := c.t
	if next >= t.Len() {
		return false, true
	}
	switch t.Action[next] {
	case mem.ActionSegmentAlloc, mem.ActionSegmentMap, mem.ActionOOM:
	case mem.ActionAlloc: // an expandable segment may serve a retry without growing
		same := t.Stack[from] != 0 && t.Stack[from] == t.Stack[next]
		return same && t.Action[next-1] == mem.ActionSegmentUnmap, true
	default:
		return false, true
	}
	if a, b := t.Stack[from], t.Stack[next]; a != 0 && b != 0 {
		return a == b, true
	}
	if t.Action[next] == mem.ActionOOM {
		return true, true
	}
	most := mem.Bytes(0)
	for _, r := range c.reserved {
		most = max(most, r)
	}
	return c.reserved[from]+t.Size[next] > most, false
}

// reservedAt is what is held before each event.
func reservedAt(b *Beginning, t *mem.Trace) []mem.Bytes {
	out := make([]mem.Bytes, t.Len()+1)
	for _, g := range b.Segments {
		out[0] += g.Size
	}
	for i, action := range t.Action {
		out[i+1] = out[i]
		switch action {
		case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
			out[i+1] += t.Size[i]
		case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
			out[i+1] -= t.Size[i]
		}
	}
	return out
}

// TraceOf finds the trace of a device; nil where it has no events.
func TraceOf(s *mem.AllocatorSnapshot, device int) *mem.Trace {
	for i := range s.Traces {
		if s.Traces[i].Device == device && s.Traces[i].Len() > 0 {
			return &s.Traces[i]
		}
	}
	return nil
}
