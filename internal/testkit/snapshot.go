package testkit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// snapshotText is an allocator snapshot in the making. Each allocation has a segment of its own that begins where it
// does and stays, unless in= names an earlier one whose segment it shares, or release lets it go. One whose name was
// freed gets its place again; one whose name is in use is another block. "repeat 12" does what follows it, up to the
// line "again", so many times.
type snapshotText struct {
	s      *mem.AllocatorSnapshot
	body   [][]string // of repeat; nil: none is open
	times  int64
	set    map[string]string
	trace  *mem.Trace
	blocks map[string]*madeBlock
	order  []string // of segments, by the block that made them
	time   int64
}

type madeBlock struct {
	mem.Block
	segment *mem.Segment // nil: it shares one
}

// newSnapshotText begins one: "snapshot exit.pickle process=1 device=0 label=measured total=24GiB". With history=no,
// it has no trace. Its events are a millisecond apart from begin=1h on, counted from the year 2001.
func newSnapshotText(words []string) *snapshotText {
	set := settings(words[2:])
	device := int(number(set["device"]))
	version, _ := mem.ParseVersion(set["version"])
	t := &snapshotText{set: set, blocks: map[string]*madeBlock{}, time: 1e18 + number(set["begin"]),
		s: &mem.AllocatorSnapshot{Format: "torch-pickle", Label: mem.Label(cmp.Or(set["label"], "measured")),
			Versions: mem.Versions{First: version, Last: version}}}
	t.s.Stacks.Add(nil)
	t.s.Traces = []mem.Trace{{Device: device}}
	if set["history"] == "no" {
		t.s.Traces = nil
	} else {
		t.trace = &t.s.Traces[0]
	}
	if total := set["total"]; total != "" {
		t.s.DeviceMemory = map[int]mem.Bytes{device: mem.Bytes(number(total))}
	}
	return t
}

// add reads a line: "alloc NAME SIZE PLACE…", "free NAME", "release NAME", "oom SIZE PLACE… free=SIZE".
func (t *snapshotText) add(words []string) error {
	switch {
	case words[0] == "repeat":
		t.times, t.body = number(words[1]), [][]string{}
		return nil
	case words[0] == "again":
		body := t.body
		t.body = nil
		for range t.times {
			for _, one := range body {
				if err := t.add(one); err != nil {
					return err
				}
			}
		}
		return nil
	case t.body != nil:
		t.body = append(t.body, words)
		return nil
	}
	set := settings(words)
	words = slices.Clone(words)
	words = slices.DeleteFunc(words, func(word string) bool { return strings.Contains(word, "=") })
	switch words[0] {
	case "alloc":
		t.alloc(words[1], mem.Bytes(number(words[2])), t.stack(words[3:]), set)
	case "free":
		b := t.blocks[words[1]]
		if b == nil {
			return fmt.Errorf("nothing is called %q", words[1])
		}
		t.event(mem.ActionFreeRequested, b.Address, b.Requested, b.Stack)
		t.event(mem.ActionFreeCompleted, b.Address, b.Requested, b.Stack)
		b.State = mem.BlockInactive
	case "release":
		b := t.blocks[words[1]]
		t.event(mem.ActionSegmentFree, b.segment.Address, b.segment.Size, b.Stack)
		b.segment = nil
	case "oom":
		free := uint64(mem.FreeUnknown)
		if text, ok := set["free"]; ok {
			free = uint64(number(text))
		}
		t.event(mem.ActionOOM, free, mem.Bytes(number(words[1])), t.stack(words[2:]))
	default:
		return fmt.Errorf("no event is called %q", words[0])
	}
	t.state()
	return nil
}

func (t *snapshotText) stack(frames []string) uint32 {
	var numbers []uint32
	for _, l := range stack(frames) {
		numbers = append(numbers, t.s.Stacks.Location(l))
	}
	return t.s.Stacks.Add(numbers)
}

func (t *snapshotText) alloc(name string, size mem.Bytes, stack uint32, set map[string]string) {
	b := &madeBlock{Block: mem.Block{Size: (size + 511) / 512 * 512, Requested: size, State: mem.BlockAllocated,
		Stack: stack}}
	old := t.blocks[name]
	if in := t.blocks[set["in"]]; in != nil {
		b.Address = in.Address + uint64(number(set["at"]))
	} else if old != nil && old.State != mem.BlockAllocated {
		b.Address, b.segment = old.Address, old.segment
	} else {
		if old != nil { // it goes on under a name that nothing else has
			kept := fmt.Sprintf("%s, block %d", name, len(t.order))
			t.blocks[kept] = old
			t.order[slices.Index(t.order, name)] = kept
		}
		b.Address = uint64(len(t.order)+1) << 36
		b.segment = &mem.Segment{Device: int(number(t.set["device"])), Address: b.Address, Stack: stack,
			Size: (b.Size + 2*mem.MiB - 1) / (2 * mem.MiB) * (2 * mem.MiB), Large: size > mem.MiB}
		t.event(mem.ActionSegmentAlloc, b.Address, b.segment.Size, stack)
		t.order = append(t.order, name)
	}
	t.blocks[name] = b
	t.event(mem.ActionAlloc, b.Address, size, stack)
}

// event adds to the trace, a millisecond after the one before.
func (t *snapshotText) event(action mem.Action, address uint64, size mem.Bytes, stack uint32) {
	if t.trace == nil {
		return
	}
	t.time += 1e6
	t.trace.Action = append(t.trace.Action, action)
	t.trace.Address = append(t.trace.Address, address)
	t.trace.Size = append(t.trace.Size, size)
	t.trace.Stream = append(t.trace.Stream, 0)
	t.trace.Time = append(t.trace.Time, t.time)
	t.trace.Stack = append(t.trace.Stack, stack)
}

// state is what the events lead to: the segments that are left, with their blocks and what is free between these.
func (t *snapshotText) state() {
	t.s.Segments = nil
	for _, name := range t.order {
		segment := t.blocks[name].segment
		if segment == nil {
			continue
		}
		end, whole := segment.Address, segment.Address+uint64(segment.Size)
		segment.Blocks = nil
		free := func(until uint64) {
			if until > end {
				segment.Blocks = append(segment.Blocks, mem.Block{Address: end, Size: mem.Bytes(until - end)})
			}
		}
		for _, b := range t.within(end, whole) {
			free(b.Address)
			segment.Blocks = append(segment.Blocks, b)
			end = b.Address + uint64(b.Size)
		}
		free(whole)
		t.s.Segments = append(t.s.Segments, *segment)
	}
}

// within are the blocks in use between two addresses.
func (t *snapshotText) within(from, to uint64) (all []mem.Block) {
	for _, b := range t.blocks {
		if b.Address >= from && b.Address < to && b.State == mem.BlockAllocated {
			all = append(all, b.Block)
		}
	}
	slices.SortFunc(all, func(a, b mem.Block) int { return cmp.Compare(a.Address, b.Address) })
	return all
}
