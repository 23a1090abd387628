package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// History is what one device's allocator did, rebuilt from its trace, for exporters: the same peak, blocks and
// flame graphs that a report of it has.
type History struct {
	Peak report.TracePeak
	b    *traceBooks
}

// NewHistory plays the trace of a device.
func NewHistory(s *mem.AllocatorSnapshot, device int) *History {
	b := newBooks(s, device)
	return &History{b.tracePeak(b.peakAt, b.peak), b}
}

// HeldBlock is a block in use at the peak.
type HeldBlock struct {
	Address         uint64
	Size, Requested mem.Bytes // with and without what rounding adds
	Stack           uint32
	Since           int // event of its allocation; -1: before the trace
}

// Held lists the blocks in use at the peak, by address.
func (h *History) Held() []HeldBlock {
	var held []HeldBlock
	h.b.alive(h.b.peakAt, func(l *life) {
		held = append(held, HeldBlock{l.address, l.size, l.requested, l.stack, int(l.born)})
	})
	slices.SortFunc(held, func(a, b HeldBlock) int { return cmp.Compare(a.Address, b.Address) })
	return held
}

// Levels are the bytes allocated and reserved at the beginning, and after each event.
func (h *History) Levels() (allocated, reserved []mem.Bytes) {
	t := h.b.trace
	allocated, reserved = make([]mem.Bytes, t.Len()+1), make([]mem.Bytes, t.Len()+1)
	for i := range h.b.lives {
		l := &h.b.lives[i]
		if l.freed == -2 { // waited for another stream from the beginning on
			continue
		}
		allocated[l.born+1] += l.size
		if int(l.freed) < t.Len() {
			allocated[l.freed+1] -= l.size
		}
	}
	reserved[0] = h.b.begin.reserved
	for i, action := range t.Action {
		switch action {
		case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
			reserved[i+1] = t.Size[i]
		case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
			reserved[i+1] = -t.Size[i]
		}
	}
	for i := range t.Len() {
		allocated[i+1] += allocated[i]
		reserved[i+1] += reserved[i]
	}
	return allocated, reserved
}

// StackKinds are the measures of a history by stack: those of Flames, of which pprof calls the first two otherwise.
var StackKinds = []mem.ProfileKind{{Name: "objects", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes},
	{Name: "bytes-time", Unit: mem.UnitBytes}, {Name: "count", Unit: mem.UnitCount}, {Name: "churn", Unit: mem.UnitBytes}}

// ByStack calls yield for each stack that held or allocated something, with its frames, innermost first and
// without those that every stack has, and its values by StackKinds: blocks and bytes at the peak, bytes × time as the
// average held, allocations, bytes freed again.
func (h *History) ByStack(yield func(frames []mem.Location, values []int64)) {
	g := newGrouper(h.b, h.b.peakAt, "site", &ExplainOptions{})
	for _, use := range g.uses(h.b.peakAt).all {
		values := []int64{int64(use.blocks)}
		for m := range report.Flames {
			values = append(values, use.measure(m))
		}
		yield(g.pictured(&use), values)
	}
}

// pictured is a stack as a flame graph draws it: never without a frame.
func (g *grouper) pictured(use *stackUse) []mem.Location {
	frames := g.names.pictured(use.stack)
	if len(frames) > 0 {
		return frames
	}
	name := report.NoFrames
	if use.before {
		name = beforeTrace
	}
	return []mem.Location{{Function: name, Native: true}}
}
