package format

import (
	"fmt"
	"regexp"
	"slices"

	"hightide/internal/mem"
)

// Matching returns a Source with only those blocks of a snapshot that a frame of their stack ("file:function")
// lets through, as explain's filter does. The others' events are left out, and where they lie at the end is
// cached memory. Segments stay, and so do all other events. Blocks from before the trace that are freed in it
// have no stack and are left out. It is an error where the Source is not a snapshot, or nothing in it matches.
func (s Source) Matching(filter *regexp.Regexp) (Source, error) {
	if s.Snapshot == nil {
		return s, fmt.Errorf("%s has no blocks to choose from", s.Kind())
	}
	f := stackFilter{}
	matcher := s.Snapshot.Stacks.Matcher(filter)
	f.matches = func(stack uint32) bool {
		match := matcher(stack)
		f.any = f.any || match
		return match
	}
	kept := *s.Snapshot
	kept.Filter = filter.String()
	kept.Segments, kept.HostSegments = f.segments(kept.Segments), f.segments(kept.HostSegments)
	kept.Traces, kept.HostTraces = f.traces(kept.Traces), f.traces(kept.HostTraces)
	if !f.any {
		return s, fmt.Errorf("no block has a frame that matches %q", filter)
	}
	s.Snapshot = &kept
	return s, nil
}

type stackFilter struct {
	matches func(stack uint32) bool
	any     bool // matched
}

// segments gives the memory of blocks that do not match to the cached block before them, as the allocator would.
func (f *stackFilter) segments(all []mem.Segment) []mem.Segment {
	all = slices.Clone(all)
	for i := range all {
		var blocks []mem.Block
		for _, b := range all[i].Blocks {
			if b.State != mem.BlockInactive && !f.matches(b.Stack) {
				b = mem.Block{Address: b.Address, Size: b.Size, State: mem.BlockInactive}
			}
			if last := len(blocks) - 1; last >= 0 && b.State == mem.BlockInactive && blocks[last].State == mem.BlockInactive &&
				blocks[last].Address+uint64(blocks[last].Size) == b.Address {
				blocks[last].Size += b.Size
				continue
			}
			blocks = append(blocks, b)
		}
		all[i].Blocks = blocks
	}
	return all
}

func (f *stackFilter) traces(all []mem.Trace) []mem.Trace {
	all = slices.Clone(all)
	for i := range all {
		t := &all[i]
		rows := f.events(t)
		t.Action, t.Address, t.Size, t.Stream = pick(t.Action, rows), pick(t.Address, rows), pick(t.Size, rows),
			pick(t.Stream, rows)
		t.Time, t.Stack, t.Pool = pick(t.Time, rows), pick(t.Stack, rows), pick(t.Pool, rows)
		t.Metadata, t.Context, t.Category = pick(t.Metadata, rows), pick(t.Context, rows), pick(t.Category, rows)
		t.Internal, t.Forward = pick(t.Internal, rows), pick(t.Forward, rows)
	}
	return all
}

// events are the numbers of those that stay. What frees a block goes with what allocated it.
func (f *stackFilter) events(t *mem.Trace) []int {
	var rows []int
	alive := map[uint64]bool{}
	for i, action := range t.Action {
		keep := true
		switch action {
		case mem.ActionAlloc:
			keep = f.matches(t.Stack[i])
			alive[t.Address[i]] = keep
		case mem.ActionFreeRequested:
			keep = alive[t.Address[i]]
		case mem.ActionFreeCompleted:
			keep = alive[t.Address[i]]
			delete(alive, t.Address[i])
		}
		if keep {
			rows = append(rows, i)
		}
	}
	return rows
}

// pick gives the rows of a column; one that a trace does not have stays so.
func pick[T any](column []T, rows []int) []T {
	if column == nil {
		return nil
	}
	picked := make([]T, len(rows))
	for i, row := range rows {
		picked[i] = column[row]
	}
	return picked
}

// Only returns a Source with one device of a snapshot: its segments, events and annotations. Pinned memory of the
// host is not device's, and is left out. It is an error where the Source is not a snapshot or has no such device.
func (s Source) Only(device int) (Source, error) {
	if s.Snapshot == nil {
		return s, fmt.Errorf("%s has no devices to choose from", s.Kind())
	}
	if devices := s.Snapshot.AllDevices(); !slices.Contains(devices, device) {
		return s, fmt.Errorf("the snapshot has devices %v, and no device %d", devices, device)
	}
	one := *s.Snapshot
	one.Segments = slices.DeleteFunc(slices.Clone(one.Segments), func(g mem.Segment) bool { return g.Device != device })
	one.Traces = slices.DeleteFunc(slices.Clone(one.Traces), func(t mem.Trace) bool { return t.Device != device })
	one.Annotations = slices.DeleteFunc(slices.Clone(one.Annotations),
		func(a mem.Annotation) bool { return a.Device != device })
	one.Owners = slices.DeleteFunc(slices.Clone(one.Owners), func(o mem.BlockOwner) bool { return o.Device != device })
	one.HostSegments, one.HostTraces = nil, nil
	s.Snapshot = &one
	return s, nil
}
