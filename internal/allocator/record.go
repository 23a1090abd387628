package allocator

import (
	"maps"
	"strconv"

	"hightide/internal/mem"
)

// Record runs a Program like Run, and returns besides what the allocator would have recorded of it. That is a
// snapshot of that device like any other, with the stacks, times and texts of the trace that the
// Program was made of. Its addresses are made up where new segments are.
func Record(p *Program, setup Setup, of *mem.AllocatorSnapshot, t *mem.Trace) (*Outcome, *mem.AllocatorSnapshot) {
	r := newRunner(p, newPolicy("native", setup), setup)
	rec := &recorder{from: t, out: mem.Trace{Device: t.Device}, blocks: map[uint64]origin{}, segments: map[uint64]uint32{}}
	if !r.takeOverBeginning() {
		return r.finish(), snapshotLike(of, setup.Settings)
	}
	rec.beginning(r)
	r.native.Observe = func(e Event) { rec.observe(r.native, e) }
	r.each = func(op *Op) { rec.event = int(op.Event) }
	r.loop()
	s := snapshotLike(of, setup.Settings)
	s.Traces = []mem.Trace{rec.out}
	s.Segments = rec.state(r.native)
	return r.finish(), s
}

// origin is where a block was asked for.
type origin struct{ stack, forward uint32 }

type recorder struct {
	from     *mem.Trace
	out      mem.Trace
	event    int // of the original trace, that is being run
	blocks   map[uint64]origin
	segments map[uint64]uint32 // stacks by address
}

// beginning takes over where the blocks that were live before the trace came from.
func (c *recorder) beginning(r *runner) {
	id := 0
	for _, g := range r.p.Beginning.Segments {
		c.segments[g.Address] = g.Stack
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				c.blocks[r.native.blocks[r.handles[id]].address] = origin{b.Stack, b.Forward}
				id++
			}
		}
	}
}

func (c *recorder) observe(n *Native, e Event) {
	t, i := &c.out, c.event
	if e.Action == mem.ActionOOM {
		if d := n.driver.(*Device); d.Capacity > 0 {
			e.Address = uint64(d.Capacity - d.Held)
		}
	}
	switch e.Action {
	case mem.ActionAlloc:
		c.blocks[e.Address] = origin{c.from.Stack[i], column(c.from.Forward, i)}
	case mem.ActionFreeCompleted:
		delete(c.blocks, e.Address)
	case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
		c.segments[e.Address] = c.from.Stack[i]
	}
	t.Action, t.Address, t.Size = append(t.Action, e.Action), append(t.Address, e.Address), append(t.Size, e.Size)
	t.Stream, t.Stack = append(t.Stream, e.Stream), append(t.Stack, c.from.Stack[i])
	t.Time = follow(t.Time, c.from.Time, i)
	t.Metadata, t.Context = follow(t.Metadata, c.from.Metadata, i), follow(t.Context, c.from.Context, i)
	t.Category, t.Internal = follow(t.Category, c.from.Category, i), follow(t.Internal, c.from.Internal, i)
	t.Forward = follow(t.Forward, c.from.Forward, i)
	if len(c.from.Pool) > 0 {
		t.Pool = append(t.Pool, n.poolAt(e.Address, c.from.Pool[i]))
	}
}

// column is a value of a column that may be empty.
func column[T any](values []T, i int) (none T) {
	if len(values) == 0 {
		return none
	}
	return values[i]
}

// follow adds to a column what the original one has there, if there is one.
func follow[T any](to, from []T, i int) []T {
	if len(from) == 0 {
		return to
	}
	return append(to, from[i])
}

// poolAt is the pool that an address belongs to.
func (n *Native) poolAt(address uint64, otherwise mem.PoolID) mem.PoolID {
	for i := range n.segments {
		if s := &n.segments[i]; s.list != nil && s.base <= address && address < s.base+uint64(s.size) {
			if s.list.pool.owner == nil {
				return mem.PoolID{}
			}
			return s.list.pool.owner.id
		}
	}
	return otherwise
}

// state is the final one, with the stacks of what is live.
func (c *recorder) state(n *Native) []mem.Segment {
	segments := n.State()
	for i := range segments {
		g := &segments[i]
		g.Device, g.Stack = c.out.Device, c.segments[g.Address]
		for j := range g.Blocks {
			b := &g.Blocks[j]
			if b.State != mem.BlockInactive {
				from := c.blocks[b.Address]
				b.Stack, b.Forward = from.stack, from.forward
			}
		}
	}
	return segments
}

// snapshotLike is a snapshot with the tables and facts of another one and no events, under these settings.
func snapshotLike(of *mem.AllocatorSnapshot, settings Settings) *mem.AllocatorSnapshot {
	s := *of
	s.Label = mem.Replayed
	s.Segments, s.Traces, s.HostSegments, s.HostTraces, s.Owners = nil, nil, nil, nil, nil
	s.Settings = maps.Clone(of.Settings)
	if s.Settings == nil {
		s.Settings = map[string]string{}
	}
	set := func(key, value string) {
		if _, ok := s.Settings[key]; ok {
			s.Settings[key] = value
		}
	}
	s.Settings["PYTORCH_CUDA_ALLOC_CONF"] = settings.String()
	split := int64(-1)
	if settings.MaxSplit > 0 {
		split = int64(settings.MaxSplit)
	}
	set("max_split_size", strconv.FormatInt(split, 10))
	set("garbage_collection_threshold", strconv.FormatFloat(settings.GCThreshold, 'g', -1, 64))
	set("expandable_segments", strconv.FormatBool(settings.Expandable))
	divisions := ""
	for i, d := range settings.Divisions {
		if i > 0 {
			divisions += ","
		}
		divisions += strconv.Itoa(1<<i) + ":" + strconv.Itoa(d)
	}
	set("roundup_power2_divisions", divisions)
	return &s
}
