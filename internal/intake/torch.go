package intake

import (
	"fmt"
	"io"
	"sort"

	"hightide/internal/mem"
	"hightide/internal/pickle"
)

// Torch reads a CUDA memory snapshot as torch.cuda.memory._dump_snapshot writes it, of PyTorch 2.0
// and later. Errors are of package pickle, or say which part of the snapshot is not as it must be.
func Torch(r io.Reader) (*mem.AllocatorSnapshot, error) {
	b := &torchBuilder{out: &mem.AllocatorSnapshot{Format: "torch-pickle", Label: mem.Measured}}
	root, d, err := pickle.Decode(r, b, pickle.Limits{})
	if err != nil {
		return nil, err
	}
	if err := b.finish(d, root); err != nil {
		return nil, err
	}
	return b.out, nil
}

// What a Made value stands for; its number is in the bits above.
type kind uint8

const (
	isOther   kind = iota // nothing a snapshot needs
	isFrame               // number of a location
	isStack               // number of a stack
	isEvent               // row in rows
	isBlock               // index in blocks
	isSegment             // index in segments
	isNote                // index in notes
	isList                // index in lists: a list of anything but frames
	isPair                // two integers, index in pairs
	isDict                // index in dicts: settings and the outermost dictionary
	isHistory             // index in histories (2.0)
	isEmpty               // an empty list or dictionary
)

func made(k kind, n int) pickle.Value { return pickle.MakeValue(uint64(n)<<4 | uint64(k)) }

func unmade(v pickle.Value) (kind, int) {
	if v.Tag() != pickle.Made {
		return isOther, 0
	}
	return kind(v.Payload() & 15), int(v.Payload() >> 4)
}

// torchBuilder recognises the parts of a snapshot by their keys as they come, innermost first.
type torchBuilder struct {
	out       *mem.AllocatorSnapshot
	rows      mem.Trace // events in the order of the file, cut into devices at the end
	blocks    []mem.Block
	segments  []mem.Segment
	notes     []mem.Annotation
	lists     [][]pickle.Value
	pairs     []mem.PoolID
	dicts     [][]pickle.Value
	histories []history
	locations []uint32          // scratch
	stacks    map[uint64]uint32 // hash of a frame list → stack
	actions   map[pickle.Value]mem.Action
}

type history struct {
	size  mem.Bytes
	stack uint32
}

// field looks a key up in a dictionary of few keys.
func field(d *pickle.Decoder, pairs []pickle.Value, key string) (pickle.Value, bool) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if d.String(pairs[i]) == key {
			return pairs[i+1], true
		}
	}
	return 0, false
}

func integer(d *pickle.Decoder, pairs []pickle.Value, key string) int64 {
	v, _ := field(d, pairs, key)
	i, _ := d.Int(v)
	return i
}

func has(d *pickle.Decoder, pairs []pickle.Value, key string) bool {
	_, ok := field(d, pairs, key)
	return ok
}

func (b *torchBuilder) Dict(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	switch {
	case len(pairs) == 0:
		return made(isEmpty, 0), nil
	case has(d, pairs, "action"):
		return b.event(d, pairs)
	case has(d, pairs, "filename"):
		return b.frame(d, pairs)
	case has(d, pairs, "total_size"):
		return b.segment(d, pairs)
	case has(d, pairs, "state"):
		return b.block(d, pairs)
	case has(d, pairs, "real_size"):
		stack, _ := field(d, pairs, "frames")
		b.histories = append(b.histories, history{mem.Bytes(integer(d, pairs, "real_size")), b.stackOf(stack)})
		return made(isHistory, len(b.histories)-1), nil
	case has(d, pairs, "stage"):
		name, _ := field(d, pairs, "name")
		stage, _ := field(d, pairs, "stage")
		b.notes = append(b.notes, mem.Annotation{Name: d.String(name), Device: int(integer(d, pairs, "device")),
			Time: integer(d, pairs, "time_us") * 1000, End: d.String(stage) == "END"})
		return made(isNote, len(b.notes)-1), nil
	}
	b.dicts = append(b.dicts, append([]pickle.Value(nil), pairs...))
	return made(isDict, len(b.dicts)-1), nil
}

func (b *torchBuilder) List(d *pickle.Decoder, items []pickle.Value) (pickle.Value, error) {
	if len(items) == 0 {
		return made(isEmpty, 0), nil
	}
	if k, _ := unmade(items[0]); k == isFrame {
		return b.stack(items)
	}
	b.lists = append(b.lists, append([]pickle.Value(nil), items...))
	return made(isList, len(b.lists)-1), nil
}

func (b *torchBuilder) Tuple(d *pickle.Decoder, items []pickle.Value) (pickle.Value, error) {
	if len(items) != 2 {
		return b.List(d, items)
	}
	first, ok1 := d.Int(items[0])
	second, ok2 := d.Int(items[1])
	if !ok1 || !ok2 {
		return b.List(d, items)
	}
	pool := mem.PoolID{uint64(first), uint64(second)}
	if n := len(b.pairs); n == 0 || b.pairs[n-1] != pool {
		b.pairs = append(b.pairs, pool)
	}
	return made(isPair, len(b.pairs)-1), nil
}

func (b *torchBuilder) frame(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	file, _ := field(d, pairs, "filename")
	name, _ := field(d, pairs, "name")
	location := mem.Location{File: d.String(file), Line: int(integer(d, pairs, "line")), Function: d.String(name)}
	location.Native = location.Line == 0 || location.File == "??"
	return made(isFrame, int(b.out.Stacks.Location(location))), nil
}

// stack interns a list of frames. Files repeat few distinct lists very often, so the whole list is
// looked up by its hash first and compared, and only a new one walks the tree.
func (b *torchBuilder) stack(items []pickle.Value) (pickle.Value, error) {
	b.locations = b.locations[:0]
	hash := uint64(14695981039346656037)
	for _, v := range items {
		k, n := unmade(v)
		if k != isFrame {
			return 0, fmt.Errorf("a stack holds something that is no frame")
		}
		b.locations = append(b.locations, uint32(n))
		hash = (hash ^ uint64(n)) * 1099511628211
	}
	if id, ok := b.stacks[hash]; ok && b.out.Stacks.Is(id, b.locations) {
		return made(isStack, int(id)), nil
	}
	id := b.out.Stacks.Add(b.locations)
	if b.stacks == nil {
		b.stacks = map[uint64]uint32{}
	}
	b.stacks[hash] = id
	return made(isStack, int(id)), nil
}

func (b *torchBuilder) stackOf(v pickle.Value) uint32 {
	if k, n := unmade(v); k == isStack {
		return uint32(n)
	}
	return 0
}

// pool reads (a, b), a tuple in pickles and a list where JSON was in between.
func (b *torchBuilder) pool(d *pickle.Decoder, v pickle.Value) mem.PoolID {
	switch k, n := unmade(v); k {
	case isPair:
		return b.pairs[n]
	case isList:
		if len(b.lists[n]) == 2 {
			first, _ := d.Int(b.lists[n][0])
			second, _ := d.Int(b.lists[n][1])
			return mem.PoolID{uint64(first), uint64(second)}
		}
	}
	return mem.PoolID{}
}

func (b *torchBuilder) event(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	var action mem.Action
	var address, size, stream, time int64
	var stack uint32
	var pool mem.PoolID
	timed := false
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		switch d.String(pairs[i]) {
		case "action":
			action = b.action(d, v)
		case "addr", "device_free":
			address, _ = d.Int(v)
		case "size":
			size, _ = d.Int(v)
		case "stream":
			stream, _ = d.Int(v)
		case "time_us":
			time, timed = d.Int(v)
		case "frames":
			stack = b.stackOf(v)
		case "pool_id":
			pool = b.pool(d, v)
		}
	}
	if size < 0 {
		return 0, fmt.Errorf("an event of %d bytes", size)
	}
	r := &b.rows
	r.Action = append(r.Action, action)
	r.Address = append(r.Address, uint64(address))
	r.Size = append(r.Size, mem.Bytes(size))
	r.Stream = append(r.Stream, uint64(stream))
	r.Stack = append(r.Stack, stack)
	if timed {
		r.Time = append(r.Time, time*1000)
	}
	if pool != (mem.PoolID{}) || len(r.Pool) > 0 {
		for len(r.Pool) < len(r.Action)-1 {
			r.Pool = append(r.Pool, mem.PoolID{})
		}
		r.Pool = append(r.Pool, pool)
	}
	return made(isEvent, len(r.Action)-1), nil
}

func (b *torchBuilder) action(d *pickle.Decoder, v pickle.Value) mem.Action {
	if a, ok := b.actions[v]; ok {
		return a
	}
	a := mem.ActionUnknown
	for i, name := range mem.ActionNames {
		if name == d.String(v) {
			a = mem.Action(i)
		}
	}
	if b.actions == nil {
		b.actions = map[pickle.Value]mem.Action{}
	}
	b.actions[v] = a
	return a
}

func (b *torchBuilder) block(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	state, _ := field(d, pairs, "state")
	block := mem.Block{Address: uint64(integer(d, pairs, "address")), Size: mem.Bytes(integer(d, pairs, "size"))}
	if block.Size < 0 {
		return 0, fmt.Errorf("a block of %d bytes", block.Size)
	}
	switch d.String(state) {
	case "active_allocated":
		block.State = mem.BlockAllocated
	case "active_pending_free", "active_awaiting_free":
		block.State = mem.BlockPendingFree
	}
	frames, _ := field(d, pairs, "frames")
	block.Stack = b.stackOf(frames)
	block.Requested = block.Size
	if has(d, pairs, "requested_size") {
		block.Requested = mem.Bytes(integer(d, pairs, "requested_size"))
	} else if v, ok := field(d, pairs, "history"); ok { // 2.0
		if k, n := unmade(v); k == isList && len(b.lists[n]) > 0 {
			if k, h := unmade(b.lists[n][0]); k == isHistory {
				block.Requested, block.Stack = b.histories[h].size, b.histories[h].stack
			}
		}
	}
	if block.State == mem.BlockInactive { // what files say of these is stale
		block.Requested, block.Stack = 0, 0
	}
	b.blocks = append(b.blocks, block)
	return made(isBlock, len(b.blocks)-1), nil
}

func (b *torchBuilder) segment(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	kindOf, _ := field(d, pairs, "segment_type")
	frames, _ := field(d, pairs, "frames")
	pool, _ := field(d, pairs, "segment_pool_id")
	s := mem.Segment{
		Device: int(integer(d, pairs, "device")), Address: uint64(integer(d, pairs, "address")),
		Size: mem.Bytes(integer(d, pairs, "total_size")), Stream: uint64(integer(d, pairs, "stream")),
		Large: d.String(kindOf) == "large", Expandable: integer(d, pairs, "is_expandable") != 0,
		Pool: b.pool(d, pool), Stack: b.stackOf(frames),
	}
	if s.Size < 0 {
		return 0, fmt.Errorf("a segment of %d bytes", s.Size)
	}
	if v, ok := field(d, pairs, "blocks"); ok {
		if k, n := unmade(v); k == isList {
			s.Blocks = make([]mem.Block, 0, len(b.lists[n]))
			at := s.Address
			for _, item := range b.lists[n] {
				k, i := unmade(item)
				if k != isBlock {
					return 0, fmt.Errorf("a segment's blocks hold something that is no block")
				}
				block := b.blocks[i]
				if block.Address == 0 { // older files leave it to the reader
					block.Address = at
				}
				at = block.Address + uint64(block.Size)
				s.Blocks = append(s.Blocks, block)
			}
			b.lists[n] = nil
		}
	}
	b.segments = append(b.segments, s)
	return made(isSegment, len(b.segments)-1), nil
}

// finish puts the parts together from the outermost value: the dictionary that _snapshot returns,
// or the bare list of segments of memory_snapshot.
func (b *torchBuilder) finish(d *pickle.Decoder, root pickle.Value) error {
	k, n := unmade(root)
	if k == isList {
		return b.takeSegments(root)
	}
	if k != isDict {
		return fmt.Errorf("this pickle is no memory snapshot: it has neither segments nor device_traces")
	}
	pairs := b.dicts[n]
	if !has(d, pairs, "segments") && !has(d, pairs, "device_traces") {
		return fmt.Errorf("this pickle is no memory snapshot: it has neither segments nor device_traces")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		var err error
		switch key := d.String(pairs[i]); key {
		case "segments":
			err = b.takeSegments(pairs[i+1])
		case "device_traces":
			err = b.takeTraces(pairs[i+1])
		case "allocator_settings":
			b.takeSettings(d, pairs[i+1])
		case "external_annotations":
			b.out.Annotations = b.notes
		default:
			b.out.Unknown = append(b.out.Unknown, key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.String(pairs[i]), err)
		}
	}
	return nil
}

func (b *torchBuilder) takeSegments(v pickle.Value) error {
	k, n := unmade(v)
	if k == isEmpty {
		return nil
	}
	if k != isList {
		return fmt.Errorf("is no list of segments")
	}
	for _, item := range b.lists[n] {
		k, i := unmade(item)
		if k != isSegment {
			return fmt.Errorf("holds something that is no segment")
		}
		b.out.Segments = append(b.out.Segments, b.segments[i])
	}
	sort.SliceStable(b.out.Segments, func(i, j int) bool {
		p, q := &b.out.Segments[i], &b.out.Segments[j]
		return p.Device < q.Device || p.Device == q.Device && p.Address < q.Address
	})
	return nil
}

func (b *torchBuilder) takeTraces(v pickle.Value) error {
	k, n := unmade(v)
	if k == isEmpty {
		return nil
	}
	if k != isList {
		return fmt.Errorf("is no list of traces")
	}
	for device, item := range b.lists[n] {
		k, i := unmade(item)
		if k == isEmpty {
			continue
		}
		if k != isList {
			return fmt.Errorf("device %d has no list of events", device)
		}
		trace, err := b.trace(device, b.lists[i])
		if err != nil {
			return fmt.Errorf("device %d: %w", device, err)
		}
		b.out.Traces = append(b.out.Traces, trace)
	}
	return nil
}

// trace takes the rows of one device. They lie together, in the order the file has them.
func (b *torchBuilder) trace(device int, items []pickle.Value) (mem.Trace, error) {
	_, first := unmade(items[0])
	for i, v := range items {
		if k, row := unmade(v); k != isEvent || row != first+i {
			return mem.Trace{}, fmt.Errorf("entry %d is no event, or one that occurs twice", i)
		}
	}
	end := first + len(items)
	r := &b.rows
	t := mem.Trace{Device: device, Action: r.Action[first:end:end], Address: r.Address[first:end:end],
		Size: r.Size[first:end:end], Stream: r.Stream[first:end:end], Stack: r.Stack[first:end:end]}
	if len(r.Time) == len(r.Action) {
		t.Time = r.Time[first:end:end]
	}
	if len(r.Pool) == len(r.Action) {
		t.Pool = r.Pool[first:end:end]
	}
	return t, nil
}

func (b *torchBuilder) takeSettings(d *pickle.Decoder, v pickle.Value) {
	k, n := unmade(v)
	if k != isDict {
		return
	}
	b.out.Settings = map[string]string{}
	for i := 0; i+1 < len(b.dicts[n]); i += 2 {
		key, value := d.String(b.dicts[n][i]), b.dicts[n][i+1]
		switch value.Tag() {
		case pickle.Str:
			b.out.Settings[key] = d.String(value)
		case pickle.Float:
			f, _ := d.Float(value)
			b.out.Settings[key] = fmt.Sprint(f)
		case pickle.Bool:
			b.out.Settings[key] = fmt.Sprint(value.Payload() == 1)
		case pickle.Int, pickle.Wide:
			i, _ := d.Int(value)
			b.out.Settings[key] = fmt.Sprint(i)
		}
	}
}
