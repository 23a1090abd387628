package explore

import (
	"cmp"
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Moment is the device at a point.
type Moment struct {
	Point     int       `json:"point" doc:"The point: so many events were before."`
	Event     *Event    `json:"event,omitempty" doc:"The event just before; absent at point 0."`
	Allocated mem.Bytes `json:"allocated" doc:"Bytes of blocks that are allocated."`
	Reserved  mem.Bytes `json:"reserved" doc:"Bytes of all segments."`
	Requested mem.Bytes `json:"requested" doc:"What the program asked for of these blocks, before rounding, in bytes."`
	Waiting   mem.Bytes `json:"waiting" doc:"Bytes freed by the program that another stream still uses."`
	Blocks    int       `json:"blocks" doc:"How many blocks are allocated."`
	Known     bool      `json:"known" doc:"Whether the file tells of segments; else one stands for all blocks."`

	Segments []MomentSegment `json:"segments" doc:"The segments, by address."`
	Rest     int             `json:"rest" doc:"How many segments are left out for want of room: the smallest."`
}

// MomentSegment is device memory that the allocator holds.
type MomentSegment struct {
	Address    string    `json:"address" doc:"Where it begins, in hexadecimal."`
	Size       mem.Bytes `json:"size" doc:"Its size in bytes."`
	Stream     string    `json:"stream" doc:"The stream that it belongs to."`
	Large      bool      `json:"large,omitempty" doc:"Whether it serves large requests."`
	Expandable bool      `json:"expandable,omitempty" doc:"Whether it is an expandable segment."`
	Used       mem.Bytes `json:"used" doc:"Bytes of it that are not free."`

	// Parts that are not free, by address: its offset, its size, the block's number and what it is by what was asked
	// for, -2 where the filter leaves it out. A part that stands for several neighbours too small to be seen has the
	// number -1 - how many they are, and -1 for what they are.
	Parts [][4]int64 `json:"parts" doc:"Parts that are not free, by address: offset and size in bytes, the block's number, and the number of what was asked for; -2: a filter leaves it out. A part that stands for several neighbours has -1 less their number, then -1."`
}

// segmentTrace is a trace without the events of blocks, so that going back to a moment costs no more than its segments.
type segmentTrace struct {
	trace  mem.Trace
	events []int32 // of the whole trace, by number
}

func (e *Explorer) onlySegments() segmentTrace {
	s := segmentTrace{trace: mem.Trace{Device: e.Trace.Device}}
	t, c := e.Trace, &s.trace
	for i, action := range t.Action {
		if action < mem.ActionSegmentAlloc || action > mem.ActionSegmentUnmap {
			continue
		}
		s.events = append(s.events, int32(i))
		c.Action, c.Address, c.Size = append(c.Action, action), append(c.Address, t.Address[i]), append(c.Size, t.Size[i])
		c.Stream, c.Stack = append(c.Stream, mem.At(t.Stream, i)), append(c.Stack, t.Stack[i])
		if t.Pool != nil {
			c.Pool = append(c.Pool, t.Pool[i])
		}
	}
	return s
}

// segmentsAt are the segments at a point, by address.
func (e *Explorer) segmentsAt(point int) []mem.Segment {
	after, _ := slices.BinarySearch(e.segments.events, int32(point))
	return allocator.SegmentsAfter(e.Snapshot, &e.segments.trace, e.Settings, after-1)
}

const (
	mostParts    = 9000 // of a moment
	mostSegments = 1200
)

// Moment tells what lay where at a point. Pixels is how wide a row of all segments is drawn: parts below one are
// joined. Parts say what their block is by what is asked for, where the filter has it.
func (e *Explorer) Moment(point, pixels int, by By, f Filter) (Moment, error) {
	point = min(max(point, 0), e.Points()-1)
	at := e.levelAt(point)
	m := Moment{Point: point, Allocated: at.allocated, Reserved: at.reserved, Known: e.KnowsSegments(),
		Segments: []MomentSegment{}}
	if point > 0 {
		m.Event = e.eventOf(point - 1)
	}
	var blocks []int32
	e.eachAt(point, func(n int) bool {
		blocks = append(blocks, int32(n))
		m.Requested += e.RequestedOf(int(n))
		if !e.allocated(n, point) {
			m.Waiting += e.Bytes[n]
		}
		return true
	})
	m.Blocks = len(blocks)
	slices.SortStableFunc(blocks, func(p, q int32) int { return cmp.Compare(e.AddressOf(int(p)), e.AddressOf(int(q))) })
	segments := e.segmentsAt(point)
	if !m.Known || len(segments) == 0 {
		segments = e.oneSegment(blocks)
	}
	if len(segments) > mostSegments {
		segments, m.Rest = largest(segments)
	}
	e.naming.Lock()
	defer e.naming.Unlock()
	wants, err := e.wants(f)
	if err != nil {
		return m, err
	}
	e.place(&m, segments, blocks, pixels, func(n int) int64 {
		if wants != nil && !wants(n) {
			return LeftOut
		}
		return e.valueOf(by, n)
	})
	return m, nil
}

// LeftOut is what a block is that a filter does not have.
const LeftOut = -2

// largest keeps the largest segments.
func largest(segments []mem.Segment) (kept []mem.Segment, rest int) {
	kept = slices.Clone(segments)
	slices.SortStableFunc(kept, func(a, b mem.Segment) int { return cmp.Compare(b.Size, a.Size) })
	rest = len(kept) - mostSegments
	kept = kept[:mostSegments]
	slices.SortFunc(kept, func(a, b mem.Segment) int { return cmp.Compare(a.Address, b.Address) })
	return kept, rest
}

// oneSegment stands for the memory of a file that tells of no segments: from the lowest address to the highest.
func (e *Explorer) oneSegment(blocks []int32) []mem.Segment {
	if len(blocks) == 0 {
		return nil
	}
	low, high := e.AddressOf(int(blocks[0])), uint64(0)
	for _, n := range blocks {
		high = max(high, e.AddressOf(int(n))+uint64(e.Bytes[n]))
	}
	return []mem.Segment{{Address: low, Size: mem.Bytes(high - low)}}
}

// place puts blocks into their segments; both are by address. The caller holds the lock.
func (e *Explorer) place(m *Moment, segments []mem.Segment, blocks []int32, pixels int, value func(n int) int64) {
	var whole mem.Bytes
	for i := range segments {
		whole += segments[i].Size
	}
	least := whole / mem.Bytes(max(pixels, 1))
	for len(blocks) > 0 || len(segments) > 0 {
		parts, next := 0, 0
		m.Segments = m.Segments[:0]
		for i := range segments {
			s := e.segment(&segments[i], blocks, &next, least, value)
			parts += len(s.Parts)
			m.Segments = append(m.Segments, s)
		}
		if parts <= mostParts {
			return
		}
		least = max(2*least, 512)
	}
}

func (e *Explorer) segment(g *mem.Segment, blocks []int32, next *int, least mem.Bytes,
	value func(n int) int64) MomentSegment {
	s := MomentSegment{Address: address(g.Address), Size: g.Size, Stream: streamName(g.Stream), Large: g.Large,
		Expandable: g.Expandable, Parts: [][4]int64{}}
	until := g.Address + uint64(g.Size)
	for *next < len(blocks) && e.AddressOf(int(blocks[*next])) < g.Address {
		*next++
	}
	for end := g.Address; *next < len(blocks) && e.AddressOf(int(blocks[*next])) < until; *next++ {
		n := blocks[*next]
		begin, size := e.AddressOf(int(n)), e.Bytes[n]
		if begin < end || begin+uint64(size) > until {
			continue // it contradicts another
		}
		end = begin + uint64(size)
		s.Used += size
		s.add(int64(begin-g.Address), int64(size), int64(n), value(int(n)), least)
	}
	return s
}

// add puts a part behind the others, or into the last one where both are too small to be seen.
func (s *MomentSegment) add(offset, size, n, value int64, least mem.Bytes) {
	if k := len(s.Parts) - 1; k >= 0 && mem.Bytes(size) < least {
		if last := &s.Parts[k]; mem.Bytes(offset+size-last[0]) < least {
			if last[2] >= 0 {
				last[2], last[3] = -2, -1
			}
			last[1], last[2] = offset+size-last[0], last[2]-1
			return
		}
	}
	s.Parts = append(s.Parts, [4]int64{offset, size, n, value})
}
