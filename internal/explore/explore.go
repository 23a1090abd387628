// Package explore answers what a viewer of one device's trace asks. It tells which blocks to draw of a window, what
// lay where at an event, what one block is, which blocks match a pattern.
//
//	usage.Device ──▶ New ──▶ Explorer ──▶ Tile     blocks stacked over time, as many as can be seen
//	(blocks, events)                  ├─▶ Moment   segments and the blocks in them, after an event
//	                                  ├─▶ Block    facts of one block
//	                                  ├─▶ Search   blocks whose frames, category or module match
//	                                  └─▶ FlameAt  what lived at a moment, or was allocated in a range, by stack
//
// A block lies on all blocks that were allocated before it and are still allocated, so its offset falls whenever one
// of these is freed. Offsets are exact at every level of detail: blocks too small to be seen count with those that
// can be, and are drawn as what is left between them. So nothing moves when a reader zooms in, and the outline is
// what the allocator had allocated.
//
// A point of the trace is its number of events so far: point 0 is before the first, point p is just after event p-1.
// A window is divided into columns of 2^k points, aligned, so that a picture does not shimmer while it is moved.
//
// An Explorer is built once, in time linear in events, and may be asked by several goroutines. Beside the trace it
// holds four bytes for each event and some for each block. Start reading at tile.go.
package explore

import (
	"sort"
	"sync"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Explorer is a device's trace, ready to be asked.
type Explorer struct {
	*usage.Device
	spanOf   []int32         // by event: the block that it allocates or frees; noBlock: none
	ends     map[int][]int32 // by event: blocks that it ends beside that, as it contradicts them
	last     []int32         // by group of blocks: the latest event at which one of them goes
	heights  heights
	segments segmentTrace

	naming     sync.Mutex // of what follows, which remember what they were asked
	Names      *usage.Names
	categories *usage.Categories
	labels     labels
	sites      map[uint32]uint32 // by stack
	modules    map[uint32]uint32
}

const (
	noBlock = -1
	group   = 256 // blocks
)

// New prepares a device's trace.
func New(d *usage.Device) *Explorer {
	e := &Explorer{Device: d, Names: usage.NewNames(d.Stacks), categories: usage.NewCategories(d, nil),
		sites: map[uint32]uint32{}, modules: map[uint32]uint32{}}
	e.spanOf = make([]int32, d.Moments)
	for i := range e.spanOf {
		e.spanOf[i] = noBlock
	}
	e.last = make([]int32, (d.Len()+group-1)/group)
	for n, from := range d.From {
		gone := max(d.To[n], d.Block.Gone[n])
		e.last[n/group] = max(e.last[n/group], gone)
		for _, event := range [3]int32{gone, d.To[n], from} {
			if event >= 0 && int(event) < len(e.spanOf) {
				e.spanOf[event] = int32(n)
			}
		}
	}
	e.contradicted()
	e.heights = e.measure()
	e.segments = e.onlySegments()
	return e
}

// contradicted finds blocks that end with an event of another block: where the trace has a hole, one is allocated on
// another.
func (e *Explorer) contradicted() {
	e.ends = map[int][]int32{}
	for n, to := range e.To {
		if to >= 0 && int(to) < len(e.spanOf) && e.spanOf[to] != int32(n) {
			e.ends[int(to)] = append(e.ends[int(to)], int32(n))
		}
	}
}

// Points is the number of points of the trace: one more than it has events.
func (e *Explorer) Points() int { return e.Moments + 1 }

// Size is about what the explorer holds in memory, with its trace.
func (e *Explorer) Size() mem.Bytes {
	events := 50 * len(e.spanOf)
	return mem.Bytes(events + 52*e.Len() + 40*e.Stacks.Len())
}

// eachAt calls with every block that was not gone at a point, in the order of their allocation, until it returns false.
func (e *Explorer) eachAt(point int, with func(n int) bool) {
	event := int32(point - 1)
	end := sort.Search(e.Len(), func(n int) bool { return e.From[n] > event })
	for first := 0; first < end; first += group {
		if e.last[first/group] <= event {
			continue
		}
		for n := first; n < min(first+group, end); n++ {
			if max(e.To[n], e.Block.Gone[n]) > event && !with(n) {
				return
			}
		}
	}
}

// allocated says whether the program held a block at a point.
func (e *Explorer) allocated(n, point int) bool { return e.HeldAt(n, point-1) }
