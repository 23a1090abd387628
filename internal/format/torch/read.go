// Package torch reads and writes what PyTorch leaves of its allocators: snapshots as pickles or JSON, traces of its
// profiler, and what our agent writes beside a snapshot.
//
//	pickle ──▶ read.go ──▶ events.go, fields.go, state.go ──▶ rows.go ──▶ mem.AllocatorSnapshot ──▶ write.go ──▶ pickle
//	JSON ──▶ json.go (as a pickle) ──┘      profiler.go ──┘     owners.go: whose tensors lay where
//
// Nothing a file contains is executed. Read Read, then events.go.
package torch

import (
	"fmt"
	"io"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/pickle"
	"hightide/internal/pytorch"
	"hightide/internal/words"
)

// Read reads a CUDA memory snapshot as torch.cuda.memory._dump_snapshot writes it, of PyTorch 2.0
// and later. Errors are of package pickle, or say which part of the snapshot is not as it must be.
func Read(r io.Reader) (*mem.AllocatorSnapshot, error) { return ReadSized(r, pickle.SizeOf(r)) }

// ReadSized is Read of a file whose size in bytes is known; 0: it is not.
func ReadSized(r io.Reader, size int64) (*mem.AllocatorSnapshot, error) {
	return readSnapshot(r, size, "torch-pickle")
}

func readSnapshot(r io.Reader, size int64, format string) (*mem.AllocatorSnapshot, error) {
	b := &torchBuilder{out: &mem.AllocatorSnapshot{Format: format, Label: mem.Measured}, size: size}
	root, d, err := pickle.Decode(r, b, pickle.Limits{})
	b.rows.provider.end()
	if err != nil {
		return nil, err
	}
	if err := b.finish(d, root); err != nil {
		return nil, err
	}
	if d.Trailing {
		what := ""
		if d.Another {
			what = ", where another pickle begins"
		}
		b.out.Notes = append(b.out.Notes,
			fmt.Sprintf("The file goes on after the snapshot's end at byte %d%s: that was not read.", d.Offset(), what))
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
	isEvents              // rows that follow each other: first, count
	isBlock               // index in blocks
	isSegment             // index in segments
	isNote                // index in notes
	isList                // index in lists: a list of anything but frames
	isPair                // two integers, index in pairs
	isDict                // index in dicts: settings and the outermost dictionary
	isHistory             // index in histories (2.0)
	isEmpty               // an empty list, or with emptyDict a dictionary
)

const (
	maxEvents = 1 << 27
	maxKept   = 1 << 22 // values in lists and dictionaries that are waiting to be understood
	rowBits   = 28
	emptyDict = 1
)

func made(k kind, n int) pickle.Value { return pickle.MakeValue(uint64(n)<<4 | uint64(k)) }

func madeEvent(row int) pickle.Value { return made(isEvent, row) }

func madeEvents(first, count int) pickle.Value {
	return pickle.MakeValue(uint64(first)<<(4+rowBits) | uint64(count)<<4 | uint64(isEvents))
}

func unmade(v pickle.Value) (kind, int) {
	if v.Tag() != pickle.Made {
		return isOther, 0
	}
	return kind(v.Payload() & 15), int(v.Payload() >> 4)
}

// rowsOf gives the rows that a Value of events stands for; count is 0 for any other.
func rowsOf(v pickle.Value) (first, count int) {
	switch k, n := unmade(v); k {
	case isEvent:
		return n, 1
	case isEvents:
		return n >> rowBits, n & (1<<rowBits - 1)
	}
	return 0, 0
}

// torchBuilder recognises the parts of a snapshot by their keys as they come, innermost first. It
// is a pickle.Records for events and frames, of which there are many.
type torchBuilder struct {
	out       *mem.AllocatorSnapshot
	size      int64 // of the file; 0: unknown
	rows      rows
	blocks    []mem.Block
	segments  []mem.Segment
	notes     []mem.Annotation
	lists     [][]pickle.Value
	pairs     []mem.PoolID
	dicts     [][]pickle.Value
	histories []history
	kept      int

	shapes    []layout // by the numbers of Record
	last      layout   // of the event or frame that came the long way
	locations []uint32 // scratch
	texts     map[pickle.Value]uint32
	unknown   map[string]bool
	saw       versionSigns
	fault     error // a field that is not of its type
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

func has(d *pickle.Decoder, pairs []pickle.Value, key string) bool {
	_, ok := field(d, pairs, key)
	return ok
}

// number takes an integer out of a field; None is 0, anything else is a fault.
func (b *torchBuilder) number(d *pickle.Decoder, v pickle.Value, key string) int64 {
	i, ok := d.Int(v)
	if !ok && v.Tag() != pickle.None && b.fault == nil {
		what := "no integer"
		if f, isFloat := d.Float(v); isFloat {
			what = fmt.Sprintf("%v, which is not an integer", f)
		}
		b.fault = fmt.Errorf("%s is %s", key, what)
	}
	return i
}

func (b *torchBuilder) integer(d *pickle.Decoder, pairs []pickle.Value, key string) int64 {
	v, ok := field(d, pairs, key)
	if !ok {
		return 0
	}
	return b.number(d, v, key)
}

// bytes takes a size out of a field.
func (b *torchBuilder) bytes(d *pickle.Decoder, v pickle.Value, key string) mem.Bytes {
	size := mem.Bytes(b.number(d, v, key))
	if (size < 0 || size > mem.MaxSize) && b.fault == nil {
		b.fault = fmt.Errorf("%s is %d bytes", key, int64(size))
	}
	return size
}

func (b *torchBuilder) sizeField(d *pickle.Decoder, pairs []pickle.Value, key string) mem.Bytes {
	v, ok := field(d, pairs, key)
	if !ok {
		return 0
	}
	return b.bytes(d, v, key)
}

// faulty returns and forgets the fault of the part that is being read.
func (b *torchBuilder) faulty(part string) error {
	if b.fault == nil {
		return nil
	}
	err := fmt.Errorf("%s whose %w", part, b.fault)
	b.fault = nil
	return err
}

// boundPending bounds what waits to be understood: genuine snapshots have little of it.
func (b *torchBuilder) boundPending(d *pickle.Decoder, values []pickle.Value) ([]pickle.Value, error) {
	if b.kept += len(values) + 3; b.kept > maxKept {
		return nil, fmt.Errorf("more than %d values that belong to no part of a snapshot", maxKept)
	}
	return append([]pickle.Value(nil), values...), d.Spend(8*len(values) + 48)
}

func (b *torchBuilder) Dict(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	switch {
	case len(pairs) == 0:
		return made(isEmpty, emptyDict), nil
	case has(d, pairs, "action"), has(d, pairs, "filename"):
		return b.slowRecord(d, pairs)
	case has(d, pairs, "total_size"):
		return b.segment(d, pairs)
	case has(d, pairs, "state"):
		return b.block(d, pairs)
	case has(d, pairs, "real_size"):
		return b.history(d, pairs)
	case has(d, pairs, "stage"):
		return b.annotation(d, pairs)
	}
	kept, err := b.boundPending(d, pairs)
	b.dicts = append(b.dicts, kept)
	return made(isDict, len(b.dicts)-1), err
}

func (b *torchBuilder) List(d *pickle.Decoder, items []pickle.Value) (pickle.Value, error) {
	if len(items) == 0 {
		return made(isEmpty, 0), nil
	}
	if k, _ := unmade(items[0]); k == isFrame {
		return b.stack(items)
	}
	kept, err := b.boundPending(d, items)
	b.lists = append(b.lists, kept)
	return made(isList, len(b.lists)-1), err
}

// Pure: equal lists of frames are one stack.
func (b *torchBuilder) Pure(v pickle.Value) bool {
	k, _ := unmade(v)
	return k == isStack || k == isEmpty
}

// Merge joins events that follow each other.
func (b *torchBuilder) Merge(last, next pickle.Value) (pickle.Value, bool) {
	first, count := rowsOf(last)
	row, one := rowsOf(next)
	if count == 0 || one == 0 || first+count != row {
		return 0, false
	}
	return madeEvents(first, count+one), true
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

// pool reads (a, b), a tuple in pickles and a list where JSON was in between.
func (b *torchBuilder) pool(d *pickle.Decoder, v pickle.Value) mem.PoolID {
	switch k, n := unmade(v); k {
	case isPair:
		return b.pairs[n]
	case isList:
		if len(b.lists[n]) == 2 {
			first := b.number(d, b.lists[n][0], "pool")
			second := b.number(d, b.lists[n][1], "pool")
			return mem.PoolID{uint64(first), uint64(second)}
		}
	}
	return mem.PoolID{}
}

func (b *torchBuilder) history(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	stack, _ := field(d, pairs, "frames")
	b.unknownKeys(d, "history", pairs, "addr", "real_size", "frames", "cpp_frames")
	b.histories = append(b.histories, history{b.sizeField(d, pairs, "real_size"), b.stackOf(stack)})
	b.saw.history = true
	return made(isHistory, len(b.histories)-1), b.faulty("a block's history")
}

func (b *torchBuilder) annotation(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	name, _ := field(d, pairs, "name")
	stage, _ := field(d, pairs, "stage")
	b.unknownKeys(d, "annotation", pairs, "name", "stage", "device", "time_us")
	b.notes = append(b.notes, mem.Annotation{Name: d.String(name), Device: int(b.integer(d, pairs, "device")),
		Time: b.integer(d, pairs, "time_us") * 1000, End: d.String(stage) == "END"})
	return made(isNote, len(b.notes)-1), b.faulty("an annotation")
}

// unknownKeys lists keys that no version known here writes.
func (b *torchBuilder) unknownKeys(d *pickle.Decoder, part string, pairs []pickle.Value, known ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		b.checkKey(part, d.String(pairs[i]), known)
	}
}

func (b *torchBuilder) checkKey(part, key string, known []string) {
	if slices.Contains(known, key) {
		return
	}
	name := part + "." + key
	if part == "" {
		name = key
	}
	if !b.unknown[name] && len(b.unknown) < 100 {
		if b.unknown == nil {
			b.unknown = map[string]bool{}
		}
		b.unknown[name] = true
		b.out.Unknown = append(b.out.Unknown, name)
	}
}

// oldPickle is how pickles of protocols 0 and 1 begin: a container, or an import (to be refused).
var oldPickle = words.Lazy(`^(?:\([dl](?:p\d|[(.])|\([SVIF][^\n]{1,200}\n|[}\]][q(.]|[ci][A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n)`)

// IsPickle knows a pickle of protocol 2 and later by its first opcode and version, older ones by
// how they begin.
func IsPickle(head []byte) bool {
	if len(head) >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] < 16 {
		return true
	}
	return oldPickle.Regexp().Match(head)
}

// versionSigns are what tells a snapshot's PyTorch version, which no file states.
type versionSigns struct {
	history     bool // blocks with a history instead of frames
	annotations bool // external_annotations
	context     bool // compile_context on events
	metadata    bool // user_metadata on events
	maxRound    bool // max_round_threshold among the settings
	host        bool // host_segments or host_traces
	noRequests  bool // a block that is in use does not tell what was asked for
}

// versions are the releases of PyTorch that write these fields; none where no event could show the difference.
func (s versionSigns) versions(b *torchBuilder) mem.Versions {
	events := b.rows.n > 0
	switch {
	case s.host:
		return pytorch.WithHost
	case s.maxRound:
		return pytorch.WithMaxRound
	case s.metadata:
		return pytorch.WithMetadata
	case s.context:
		return pytorch.WithContext
	case s.history:
		return pytorch.WithHistory
	case events && b.rows.untimed:
		return pytorch.WithEvents
	case events && !s.annotations:
		return pytorch.WithTimes
	case events:
		return pytorch.WithAnnotations
	}
	return mem.Versions{}
}
