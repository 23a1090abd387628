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
	return aboutSnapshot{t.Format, t.Label, t.Versions, t.Settings, t.Unknown, t.Notes, t.DeviceNames}
}

// places remembers the site of each stack: tables ask for few of them very often.
type places struct {
	stacks *mem.StackTable
	known  map[uint32][3]any
}

// of is the innermost line of Python of a stack, as three cells.
func (p *places) of(stack uint32) [3]any {
	cells, ok := p.known[stack]
	if !ok {
		where := site(p.stacks.Frames(stack))
		cells = [3]any{text(where.File), nil, text(where.Function)}
		if where.Line > 0 {
			cells[1] = int64(where.Line)
		}
		p.known[stack] = cells
	}
	return cells
}

func placesOf(s *mem.AllocatorSnapshot) *places { return &places{&s.Stacks, map[uint32][3]any{}} }

// stackCell is absent where no stack was recorded.
func stackCell(stack uint32) any {
	if stack == 0 {
		return nil
	}
	return int64(stack)
}

func poolCell(pool mem.PoolID) any {
	if pool == (mem.PoolID{}) {
		return nil
	}
	return fmt.Sprintf("(%d, %d)", pool[0], pool[1])
}

// at is a column's value, or zero where the trace has no such column.
func at[T any](column []T, i int) (v T) {
	if i < len(column) {
		v = column[i]
	}
	return v
}

func allocatorEvents(s *mem.AllocatorSnapshot, yield func(...any) error) error {
	where := placesOf(s)
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
			err := yield(int64(i), int64(trace.Device), time, mem.ActionNames[action], address, int64(trace.Size[i]), int64(trace.Stream[i]),
				poolCell(at(trace.Pool, i)), stackCell(trace.Stack[i]), text(s.Text(at(trace.Category, i))), text(s.Text(at(trace.Metadata, i))),
				text(s.Text(at(trace.Context, i))), place[0], place[1], place[2])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func allocatorBlocks(s *mem.AllocatorSnapshot, yield func(...any) error) error {
	where := placesOf(s)
	for i := range s.Segments {
		for _, b := range s.Segments[i].Blocks {
			var requested any
			if b.State != mem.BlockInactive {
				requested = int64(b.Requested)
			}
			place := where.of(b.Stack)
			err := yield(int64(s.Segments[i].Device), int64(s.Segments[i].Address), int64(b.Address), int64(b.Size), requested, torch.StateNames[b.State],
				stackCell(b.Stack), place[0], place[1], place[2])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func allocatorSegments(s *mem.AllocatorSnapshot, yield func(...any) error) error {
	for i := range s.Segments {
		g := &s.Segments[i]
		var used mem.Bytes
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				used += b.Size
			}
		}
		if err := yield(int64(g.Device), int64(g.Address), int64(g.Size), int64(used), int64(g.Stream), g.Large, g.Expandable, poolCell(g.Pool), stackCell(g.Stack)); err != nil {
			return err
		}
	}
	return nil
}

func allocatorPeak(s *mem.AllocatorSnapshot, yield func(...any) error) error {
	where := placesOf(s)
	for _, device := range s.AllDevices() {
		d := usage.FromTrace(s, device, usage.Whole)
		var event, time any
		if d.Peak.Moment >= 0 {
			event = int64(d.Peak.Moment)
		}
		if d.Peak.Time > 0 {
			time = d.Peak.Time
		}
		var held []int
		d.Each(d.Peak.Moment, func(span int) { held = append(held, span) })
		slices.SortStableFunc(held, func(a, b int) int { return cmp.Compare(d.Block.Address[a], d.Block.Address[b]) })
		for _, n := range held {
			var since any
			if from := d.From[n]; from >= 0 {
				since = int64(from)
			}
			place := where.of(d.Stack[n])
			if err := yield(int64(device), event, time, int64(d.Block.Address[n]), int64(d.Bytes[n]), int64(d.Block.Requested[n]), since, stackCell(d.Stack[n]), place[0], place[1], place[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

// allocatorStacks lists the stacks that something refers to.
func allocatorStacks(s *mem.AllocatorSnapshot, yield func(...any) error) error {
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
			var line any
			if l.Line > 0 {
				line = int64(l.Line)
			}
			if err := yield(int64(stack), int64(depth), text(l.File), line, text(l.Function), l.Native); err != nil {
				return err
			}
		}
	}
	return nil
}
