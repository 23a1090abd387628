package torch

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/pickle"
	"hightide/internal/words"
)

// column is what a key of an event or a frame means.
type column uint8

const (
	colNone column = iota
	colAction
	colAddress
	colSize
	colStream
	colTime
	colFrames
	colPool
	colMetadata
	colContext
	colCategory
	colInternal
	colForward
	colFile
	colLine
	colFunction
	colOp
	colNode
	colTarget
	colTrace
)

// columnsOf are the keys of trace entries, over all versions.
var eventColumns = map[string]column{
	"action": colAction, "addr": colAddress, "device_free": colAddress, "size": colSize, "stream": colStream,
	"time_us": colTime, "frames": colFrames, "pool_id": colPool, "user_metadata": colMetadata,
	"compile_context": colContext, "category": colCategory, "internal_metadata": colInternal,
	"forward_frames": colForward, "cpp_frames": colNone, "version": colNone, "device": colNone,
}

// frameColumns are the keys of frames; fx_… come with augment_with_fx_traces.
var frameColumns = map[string]column{
	"filename": colFile, "line": colLine, "name": colFunction,
	"fx_node_op": colOp, "fx_node_name": colNode, "fx_node_target": colTarget, "fx_original_trace": colTrace,
}

// layout says what the values of a record are, by place.
type layout struct {
	keys    []pickle.Value
	columns []column
	event   bool
	lacks   string // a key that every event has, and these do not
}

func (b *torchBuilder) layoutOf(d *pickle.Decoder, keys []pickle.Value) (layout, bool) {
	l := layout{keys: slices.Clone(keys)}
	isFrame := false
	for _, k := range keys {
		l.event = l.event || d.String(k) == "action"
		isFrame = isFrame || d.String(k) == "filename"
	}
	known, part := frameColumns, "frame"
	if l.event {
		known, part = eventColumns, "event"
	}
	if !l.event && !isFrame {
		return l, false
	}
	for _, k := range keys {
		c, ok := known[d.String(k)]
		if !ok {
			b.checkKey(part, d.String(k), nil)
		}
		l.columns = append(l.columns, c)
	}
	for _, c := range []column{colSize, colAddress} {
		if l.event && !slices.Contains(l.columns, c) {
			l.lacks = c.integer()
		}
	}
	return l, true
}

// Shape takes events, which occur once each, and frames.
func (b *torchBuilder) Shape(d *pickle.Decoder, keys []pickle.Value) pickle.Form {
	l, ok := b.layoutOf(d, keys)
	if !ok {
		return pickle.Form{}
	}
	b.shapes = append(b.shapes, l)
	form := pickle.Form{Take: true, Rows: l.event}
	if l.event {
		for _, c := range l.columns {
			form.Integers = append(form.Integers, c.integer() != "")
		}
	}
	return form
}

// Record takes a frame.
func (b *torchBuilder) Record(d *pickle.Decoder, shape int, values []pickle.Value) (pickle.Value, error) {
	return b.frame(d, &b.shapes[shape], values)
}

// slowRecord takes a record as the machine hands it over: keys and values in turn.
func (b *torchBuilder) slowRecord(d *pickle.Decoder, pairs []pickle.Value) (pickle.Value, error) {
	n := len(pairs) / 2
	keys, values := make([]pickle.Value, 0, 32), make([]pickle.Value, 0, 32)
	for i := range n {
		keys, values = append(keys, pairs[2*i]), append(values, pairs[2*i+1])
	}
	if !slices.Equal(keys, b.last.keys) {
		b.last, _ = b.layoutOf(d, keys)
	}
	if b.last.event {
		return b.event(d, &b.last, values)
	}
	return b.frame(d, &b.last, values)
}

func (b *torchBuilder) frame(d *pickle.Decoder, l *layout, values []pickle.Value) (pickle.Value, error) {
	var location mem.Location
	var node mem.FXNode
	for i, c := range l.columns {
		v := values[i]
		switch c {
		case colFile:
			location.File = d.String(v)
		case colLine:
			location.Line = int(b.number(d, v, "line"))
		case colFunction:
			location.Function = d.String(v)
		case colOp:
			node.Op = d.String(v)
		case colNode:
			node.Name = d.String(v)
		case colTarget:
			node.Target = d.String(v)
		case colTrace:
			node.Trace = d.String(v)
		}
	}
	if err := b.faulty("a frame"); err != nil {
		return 0, err
	}
	// _profile_to_snapshot's
	if location.Native = location.Line == 0 || nativeFile(location.File); location.Line == 0 && location.File == "none" {
		location = profilerLocation(location.Function)
	}
	id := b.out.Stacks.Location(location)
	if node != (mem.FXNode{}) {
		if b.out.FX == nil {
			b.out.FX = map[uint32]mem.FXNode{}
		}
		b.out.FX[id] = node
	}
	return made(isFrame, int(id)), nil
}

// compiled is how files of machine code and its sources end. PyTorch may write the place in a library as a line.
var compiled = map[string]bool{".so": true, ".dll": true, ".pyd": true, ".S": true, ".c": true, ".cc": true,
	".cpp": true, ".cxx": true, ".cu": true, ".cuh": true, ".h": true, ".hpp": true}

// interpreter is Python's own program.
var interpreter = words.Lazy(`(^|/)python\d*(\.\d+)?t?$`)

func nativeFile(name string) bool {
	return name == "??" || compiled[path.Ext(name)] || strings.Contains(name, ".so.") ||
		strings.Contains(name, "python") && interpreter.MatchString(name)
}

// stack interns a list of frames.
func (b *torchBuilder) stack(items []pickle.Value) (pickle.Value, error) {
	b.locations = b.locations[:0]
	for _, v := range items {
		k, n := unmade(v)
		if k != isFrame {
			return 0, fmt.Errorf("a stack holds something that is not a frame")
		}
		b.locations = append(b.locations, uint32(n))
	}
	return made(isStack, int(b.out.Stacks.Add(b.locations))), nil
}

func (b *torchBuilder) stackOf(v pickle.Value) uint32 {
	if k, n := unmade(v); k == isStack {
		return uint32(n)
	}
	return 0
}

// forwardLine is a line of Python's own traceback, which forward_frames hold as text.
var forwardLine = words.Lazy(`File "([^"]*)", line (\d+), in (\S+)`)

// forward reads the stack of a forward call. Python prints the outermost first.
func (b *torchBuilder) forward(d *pickle.Decoder, v pickle.Value) uint32 {
	k, n := unmade(v)
	if k != isList {
		return b.stackOf(v)
	}
	locations := []uint32{}
	for _, item := range slices.Backward(b.lists[n]) {
		text := d.String(item)
		l := mem.Location{Function: text, Native: true}
		if m := forwardLine.FindStringSubmatch(text); m != nil {
			line, _ := strconv.Atoi(m[2])
			l = mem.Location{File: m[1], Line: line, Function: m[3]}
		}
		locations = append(locations, b.out.Stacks.Location(l))
	}
	return b.out.Stacks.Add(locations)
}

// text numbers a text; 0 is the empty one. A dictionary, which other tools write, becomes text.
func (b *torchBuilder) text(d *pickle.Decoder, v pickle.Value) uint32 {
	if id, ok := b.texts[v]; ok {
		return id
	}
	s := d.String(v)
	if k, n := unmade(v); k == isDict {
		s = b.plain(d, b.dicts[n])
	}
	if s == "" {
		return 0
	}
	if b.texts == nil {
		b.texts = map[pickle.Value]uint32{}
		b.out.Texts = []string{""}
	}
	id := uint32(len(b.out.Texts))
	b.out.Texts = append(b.out.Texts, s)
	b.texts[v] = id
	return id
}

func (b *torchBuilder) action(d *pickle.Decoder, v pickle.Value) mem.Action {
	if n := v.Payload(); v.Tag() == pickle.Str && n < uint64(len(b.rows.actions)) && b.rows.actions[n] > 0 {
		return b.rows.actions[n] - 1
	}
	a := mem.ActionUnknown
	for i, name := range mem.ActionNames {
		if name == d.String(v) {
			a = mem.Action(i)
		}
	}
	if a == mem.ActionUnknown {
		b.checkKey("action", d.String(v), nil)
	}
	if n := v.Payload(); v.Tag() == pickle.Str && n < 1<<16 {
		for uint64(len(b.rows.actions)) <= n {
			b.rows.actions = append(b.rows.actions, 0)
		}
		b.rows.actions[n] = a + 1
	}
	return a
}
