package format

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// aboutSnapshot is what a snapshot says of itself.
type aboutSnapshot struct {
	Format      string            `json:"format"`
	Label       mem.Label         `json:"label"`
	Versions    string            `json:"versions,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"`
	Unknown     []string          `json:"unknown,omitempty"`
	Notes       []string          `json:"notes,omitempty"`
	DeviceNames map[int]string    `json:"device_names,omitempty"`
}

// name is what a Source is called in files.
func (s Source) name() string {
	if s.Run != nil {
		return "run"
	}
	return "snapshot"
}

// about is what a Source says of itself.
func (s Source) about() any {
	if s.Run != nil {
		return s.Run.Info
	}
	t := s.Snapshot
	return aboutSnapshot{t.Format, t.Label, t.Versions.String(), t.Settings, t.Unknown, t.Notes, t.DeviceNames}
}

func poolCell(pool mem.PoolID) any {
	if pool == (mem.PoolID{}) {
		return nil
	}
	return fmt.Sprintf("(%d, %d)", pool[0], pool[1])
}

func allocatorEvents(s *mem.AllocatorSnapshot, add func(...any)) {
	where := placesIn(&s.Stacks)
	for t := range s.Traces {
		trace := &s.Traces[t]
		for i, action := range trace.Action {
			var time any
			if trace.Time != nil {
				time = trace.Time[i]
			}
			var address any = int64(trace.Address[i])
			if action == mem.ActionOOM && trace.Address[i] == mem.FreeUnknown {
				address = nil
			}
			place := where.of(trace.Stack[i])
			add(int64(i), int64(trace.Device), time, mem.ActionNames[action], address, int64(trace.Size[i]),
				int64(mem.At(trace.Stream, i)),
				poolCell(mem.At(trace.Pool, i)), positive(trace.Stack[i]), text(s.Text(mem.At(trace.Category, i))),
				text(s.Text(mem.At(trace.Metadata, i))),
				text(s.Text(mem.At(trace.Context, i))), place[0], place[1], place[2])
		}
	}
}

func allocatorBlocks(s *mem.AllocatorSnapshot, add func(...any)) {
	where := placesIn(&s.Stacks)
	for i := range s.Segments {
		for _, b := range s.Segments[i].Blocks {
			var requested any
			if b.State != mem.BlockInactive {
				requested = int64(b.Requested)
			}
			place := where.of(b.Stack)
			add(int64(s.Segments[i].Device), int64(s.Segments[i].Address), int64(b.Address), int64(b.Size), requested,
				torch.StateNames[b.State],
				positive(b.Stack), place[0], place[1], place[2])
		}
	}
}

func allocatorSegments(s *mem.AllocatorSnapshot, add func(...any)) {
	for i := range s.Segments {
		g := &s.Segments[i]
		var used mem.Bytes
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				used += b.Size
			}
		}
		add(int64(g.Device), int64(g.Address), int64(g.Size), int64(used), int64(g.Stream), g.Large, g.Expandable,
			poolCell(g.Pool), positive(g.Stack))
	}
}

func allocatorPeak(s *mem.AllocatorSnapshot, add func(...any)) {
	where := placesIn(&s.Stacks)
	for _, device := range s.AllDevices() {
		d := usage.FromTrace(s, device, usage.Whole)
		event, time := eventCell(int64(d.Peak.Moment)), positive(d.Peak.Time)
		var held []int
		d.Each(d.Peak.Moment, func(span int) { held = append(held, span) })
		slices.SortStableFunc(held, func(a, b int) int { return cmp.Compare(d.AddressOf(a), d.AddressOf(b)) })
		for _, n := range held {
			place := where.of(d.Stack[n])
			add(int64(device), event, time, int64(d.AddressOf(n)), int64(d.Bytes[n]), int64(d.RequestedOf(n)),
				eventCell(int64(d.From[n])),
				positive(d.Stack[n]), place[0], place[1], place[2])
		}
	}
}

// eventCell is the number of an event, absent before the first.
func eventCell(moment int64) any {
	if moment < 0 {
		return nil
	}
	return moment
}

// allocatorStacks lists the stacks that something refers to.
func allocatorStacks(s *mem.AllocatorSnapshot, add func(...any)) {
	used := make([]bool, max(s.Stacks.Len(), 1))
	for i := range s.Traces {
		for _, stack := range s.Traces[i].Stack {
			used[stack] = true
		}
	}
	for i := range s.Segments {
		used[s.Segments[i].Stack] = true
		for _, b := range s.Segments[i].Blocks {
			used[b.Stack] = true
		}
	}
	for stack := 1; stack < len(used); stack++ {
		if !used[stack] {
			continue
		}
		for depth, l := range s.Stacks.Frames(uint32(stack)) {
			add(int64(stack), int64(depth), text(l.File), positive(l.Line), text(l.Function), l.Native)
		}
	}
}
