package torch

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/pickle"
)

func (b *torchBuilder) block(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	b.unknownKeys(d, "block", pairs, "address", "size", "requested_size", "state", "frames", "forward_frames", "history",
		"cpp_frames", "addr")
	state, _ := field(d, pairs, "state")
	block := mem.Block{Address: uint64(b.integer(d, pairs, "address")), Size: b.sizeField(d, pairs, "size")}
	switch name := d.String(state); name {
	case "active_allocated":
		block.State = mem.BlockAllocated
	case "active_pending_free", "active_awaiting_free":
		block.State = mem.BlockPendingFree
	case "inactive":
	default:
		b.checkKey("block.state", name, nil)
	}
	if block.State != mem.BlockInactive { // what files say of the others is stale
		b.blockUse(d, pairs, &block)
	}
	b.blocks = append(b.blocks, block)
	return made(isBlock, len(b.blocks)-1), b.faulty("a block")
}

// blockUse reads who asked for a block and for how much.
func (b *torchBuilder) blockUse(d *pickle.Decoder, pairs []pickle.Value, block *mem.Block) {
	frames, _ := field(d, pairs, "frames")
	forward, _ := field(d, pairs, "forward_frames")
	block.Stack, block.Forward = b.stackOf(frames), b.forward(d, forward)
	block.Requested = block.Size
	last, recorded := b.lastUse(d, pairs)
	if recorded && block.Stack == 0 {
		block.Stack = last.stack
	}
	if has(d, pairs, "requested_size") {
		block.Requested = b.sizeField(d, pairs, "requested_size")
	} else if recorded {
		block.Requested = last.size
	} else {
		b.saw.noRequests = true
	}
}

// lastUse is the newest entry of the history that blocks have in 1.13, and in 2.0 beside requested_size.
func (b *torchBuilder) lastUse(d *pickle.Decoder, pairs []pickle.Value) (history, bool) {
	v, _ := field(d, pairs, "history")
	if k, n := unmade(v); k == isList && len(b.lists[n]) > 0 {
		if k, h := unmade(b.lists[n][0]); k == isHistory {
			return b.histories[h], true
		}
	}
	return history{}, false
}

func (b *torchBuilder) segment(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	b.unknownKeys(d, "segment", pairs, "device", "address", "total_size", "allocated_size", "active_size",
		"requested_size",
		"stream", "segment_type", "segment_pool_id", "is_expandable", "frames", "forward_frames", "blocks", "cpp_frames")
	kindOf, _ := field(d, pairs, "segment_type")
	frames, _ := field(d, pairs, "frames")
	pool, _ := field(d, pairs, "segment_pool_id")
	s := mem.Segment{
		Device: int(b.integer(d, pairs, "device")), Address: uint64(b.integer(d, pairs, "address")),
		Size: b.sizeField(d, pairs, "total_size"), Stream: uint64(b.integer(d, pairs, "stream")),
		Large: d.String(kindOf) == "large", Expandable: b.integer(d, pairs, "is_expandable") != 0,
		Pool: b.pool(d, pool), Stack: b.stackOf(frames),
	}
	if err := b.faulty("a segment"); err != nil {
		return 0, err
	}
	if v, ok := field(d, pairs, "blocks"); ok {
		if err := b.segmentBlocks(&s, v); err != nil {
			return 0, err
		}
	}
	b.segments = append(b.segments, s)
	return made(isSegment, len(b.segments)-1), nil
}

// segmentBlocks takes the blocks of a segment: in the order of their addresses, apart, inside it.
func (b *torchBuilder) segmentBlocks(s *mem.Segment, v pickle.Value) error {
	k, n := unmade(v)
	if k != isList {
		return nil
	}
	s.Blocks = make([]mem.Block, 0, len(b.lists[n]))
	at, end := s.Address, s.Address+uint64(s.Size)
	for _, item := range b.lists[n] {
		k, i := unmade(item)
		if k != isBlock {
			return fmt.Errorf("a segment's blocks hold something that is not a block")
		}
		block := b.blocks[i]
		if block.Address == 0 { // older files leave it to the reader
			block.Address = at
		}
		if block.Address < at {
			return fmt.Errorf("block %#x of %d bytes overlaps the one before it", block.Address, int64(block.Size))
		}
		at = block.Address + uint64(block.Size)
		if at > end {
			return fmt.Errorf("block %#x of %d bytes lies beyond its segment %#x of %d bytes",
				block.Address, int64(block.Size), s.Address, int64(s.Size))
		}
		s.Blocks = append(s.Blocks, block)
	}
	return nil
}

const noSnapshot = "this holds no memory snapshot: it has neither segments nor device_traces"

// finish puts the parts together from the outermost value: the dictionary that _snapshot returns,
// or the bare list of segments of memory_snapshot.
func (b *torchBuilder) finish(d *pickle.Decoder, root pickle.Value) error {
	switch k, n := unmade(root); {
	case k == isEmpty && n != emptyDict:
		return nil // a bare list of no segments
	case k == isList:
		b.out.NoRequests = b.saw.noRequests
		return b.takeSegments(&b.out.Segments, root)
	case k != isDict || !has(d, b.dicts[n], "segments") && !has(d, b.dicts[n], "device_traces"):
		return errors.New(noSnapshot)
	default:
		return b.takeParts(d, b.dicts[n])
	}
}

func (b *torchBuilder) takeParts(d *pickle.Decoder, pairs []pickle.Value) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		var err error
		v := pairs[i+1]
		switch key := d.String(pairs[i]); key {
		case "segments":
			err = b.takeSegments(&b.out.Segments, v)
		case "device_traces":
			err = b.takeTraces(&b.out.Traces, v, 0)
		case "host_segments":
			b.saw.host = true
			err = b.takeSegments(&b.out.HostSegments, v)
		case "host_traces":
			b.saw.host = true
			err = b.takeTraces(&b.out.HostTraces, v, -1)
		case "allocator_settings":
			b.takeSettings(d, v)
		case "external_annotations":
			b.saw.annotations = true
			b.out.Annotations = b.notes
		case "hightide_label":
			if l := mem.Label(d.String(v)); l == mem.Imagined || l == mem.Replayed {
				b.out.Label = l
			}
		case "hightide_filter":
			b.out.Filter = d.String(v)
		default:
			b.checkKey("", key, nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.String(pairs[i]), err)
		}
	}
	b.out.Versions = b.saw.versions(b)
	b.out.NoRequests = b.saw.noRequests
	return nil
}

func (b *torchBuilder) takeSegments(to *[]mem.Segment, v pickle.Value) error {
	k, n := unmade(v)
	if k == isEmpty {
		return nil
	}
	if k != isList {
		return fmt.Errorf("is not a list of segments")
	}
	list := make([]mem.Segment, 0, len(b.lists[n]))
	for _, item := range b.lists[n] {
		k, i := unmade(item)
		if k != isSegment {
			return fmt.Errorf("holds something that is not a segment")
		}
		list = append(list, b.segments[i])
	}
	sort.SliceStable(list, func(i, j int) bool {
		p, q := &list[i], &list[j]
		return p.Device < q.Device || p.Device == q.Device && p.Address < q.Address
	})
	for i := 1; i < len(list); i++ {
		p, q := &list[i-1], &list[i]
		if p.Device == q.Device && q.Address < p.Address+uint64(p.Size) {
			return fmt.Errorf("on device %d, segment %#x of %d bytes overlaps segment %#x", p.Device, p.Address, int64(p.Size),
				q.Address)
		}
	}
	*to = list
	return nil
}

// takeTraces takes a list of traces, one a device from the first on, or one trace alone.
func (b *torchBuilder) takeTraces(to *[]mem.Trace, v pickle.Value, device int) error {
	k, n := unmade(v)
	if k == isEmpty {
		return nil
	}
	if k != isList {
		return fmt.Errorf("is not a list of traces")
	}
	if _, count := rowsOf(b.lists[n][0]); count > 0 && device < 0 {
		trace, err := b.trace(device, b.lists[n])
		*to = []mem.Trace{trace}
		return err
	}
	for i, item := range b.lists[n] {
		k, inner := unmade(item)
		if k == isEmpty {
			continue
		}
		if k != isList {
			return fmt.Errorf("device %d has no list of events", i)
		}
		if device >= 0 {
			device = i
		}
		trace, err := b.trace(device, b.lists[inner])
		if err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		*to = append(*to, trace)
	}
	return nil
}

func (b *torchBuilder) takeSettings(d *pickle.Decoder, v pickle.Value) {
	k, n := unmade(v)
	if k != isDict {
		return
	}
	b.out.Settings = map[string]string{}
	for i := 0; i+1 < len(b.dicts[n]); i += 2 {
		key, value := d.String(b.dicts[n][i]), b.dicts[n][i+1]
		b.saw.maxRound = b.saw.maxRound || key == "max_round_threshold"
		if text, ok := b.scalar(d, value); ok {
			b.out.Settings[key] = text
		} else if k, inner := unmade(value); k == isDict {
			b.out.Settings[key] = b.plain(d, b.dicts[inner])
		} else if k != isEmpty {
			b.checkKey("allocator_settings", key, nil)
		}
	}
}

func (b *torchBuilder) scalar(d *pickle.Decoder, value pickle.Value) (string, bool) {
	switch value.Tag() {
	case pickle.Str:
		return d.String(value), true
	case pickle.Float:
		f, _ := d.Float(value)
		if text := fmt.Sprint(f); strings.ContainsAny(text, ".eNI") {
			return text, true
		}
		return fmt.Sprintf("%.1f", f), true // or it would come back as an integer
	case pickle.Bool:
		return fmt.Sprint(value.Payload() == 1), true
	case pickle.Int, pickle.Wide:
		i, _ := d.Int(value)
		return fmt.Sprint(i), true
	}
	return "", false
}

// plain writes a dictionary of scalars as allocator settings are written: "256:1,512:2".
func (b *torchBuilder) plain(d *pickle.Decoder, pairs []pickle.Value) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := b.scalar(d, pairs[i])
		value, _ := b.scalar(d, pairs[i+1])
		parts = append(parts, key+":"+value)
	}
	return strings.Join(parts, ",")
}
