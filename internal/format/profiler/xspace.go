package profiler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hightide/internal/format/protobuf"
	"hightide/internal/mem"
	"hightide/internal/words"
)

// maxXSpace bounds a file once decompressed, and maxXEvents what is kept of it.
const (
	maxXSpace  = 1 << 30
	maxXEvents = 1 << 25
)

// IsXSpace knows an XSpace, which tf.profiler and jax.profiler write as *.xplane.pb, by its first plane: after its
// number, if it has one, comes a name such as "/host:CPU".
func IsXSpace(head []byte) bool {
	if len(head) < 4 || head[0] != 0x0a {
		return false
	}
	_, n := binary.Uvarint(head[1:])
	if n <= 0 {
		return false
	}
	head = head[1+n:]
	if len(head) > 0 && head[0] == 0x08 {
		if _, n = binary.Uvarint(head[1:]); n <= 0 {
			return false
		}
		head = head[1+n:]
	}
	if len(head) < 3 || head[0] != 0x12 {
		return false
	}
	name := head[2:]
	return bytes.HasPrefix(name, []byte("/host:")) || bytes.HasPrefix(name, []byte("/device:")) ||
		bytes.HasPrefix(name, []byte("Task Environment"))
}

// xspace reads planes of the host, on whose threads allocators tell what they hand out, whichever device it is on.
type xspace struct {
	*Trace
	count int
	based bool
	lines map[string]uint32 // of operations of graphs, where our agent added them
	exact bool              // it has, and its frames of Python are lines that ran
}

// linesPlane is the plane that our agent adds: of each operation of a graph the line that made it
// (agent/python/src/hightide_agent/imagine/tensorflow/lines.py).
const linesPlane = "/host:lines of operations"

// xplane is the part of a plane that its lines refer to.
type xplane struct {
	name         string
	names, stats map[uint64]string // of events, of statistics
	shown        map[uint64]string // names of events for people
	lines        [][]byte
}

// xstats are the statistics of an event that are read, by their names.
type xstats struct {
	allocator, op, shape, region string
	bytes, asked, held, address  int64
	step                         string
}

// ReadXSpace reads what tf.profiler wrote: every allocation and free that TensorFlow's allocators told of, with the
// operation.
func ReadXSpace(r io.Reader) (*mem.AllocatorSnapshot, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxXSpace+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(data) > maxXSpace {
		return nil, fmt.Errorf("a profile of more than %d bytes", maxXSpace)
	}
	x := &xspace{Trace: New("xspace"), lines: map[string]uint32{}}
	var planes []*xplane
	if err := protobuf.Fields(data, func(number int, _ uint64, plane []byte) error {
		if number != 1 {
			return nil
		}
		p, err := readPlane(plane)
		planes = append(planes, p)
		return err
	}); err != nil {
		return nil, err
	}
	for _, p := range planes {
		if p.name == linesPlane {
			x.readLines(p)
		}
	}
	for _, p := range planes {
		if err := x.plane(p); err != nil {
			return nil, err
		}
	}
	if len(x.Events) == 0 {
		return nil, errors.New("this profile has no memory events: TensorFlow writes them on GPUs, and on the CPU with " +
			"oneDNN's allocator (TF_ENABLE_ONEDNN_OPTS=1); JAX on GPUs alone")
	}
	x.Assemble()
	return x.Out, nil
}

func readPlane(data []byte) (*xplane, error) {
	p := &xplane{names: map[uint64]string{}, stats: map[uint64]string{}, shown: map[uint64]string{}}
	return p, protobuf.Fields(data, func(number int, _ uint64, inner []byte) error {
		switch number {
		case 2:
			p.name = string(inner)
		case 3:
			p.lines = append(p.lines, inner)
		case 4:
			if err := named(p.names, inner, 2); err != nil {
				return err
			}
			return named(p.shown, inner, 4)
		case 5:
			return named(p.stats, inner, 2)
		}
		return nil
	})
}

// readLines takes in which line each operation of a graph is of.
func (x *xspace) readLines(p *xplane) {
	x.exact = true
	for key, name := range p.names {
		if at, ok := pythonPlace(p.shown[key]); ok {
			x.lines[name] = x.Out.Stacks.Location(at)
		}
	}
}

func (x *xspace) plane(p *xplane) error {
	if !strings.HasPrefix(p.name, "/host:") {
		return nil
	}
	for _, line := range p.lines {
		if err := x.line(p, line); err != nil {
			return err
		}
	}
	return nil
}

// named takes in an entry of a map from numbers to what has a name: that field of it.
func named(names map[uint64]string, entry []byte, field int) error {
	key, name := uint64(0), ""
	err := protobuf.Fields(entry, func(number int, value uint64, data []byte) error {
		if number == 1 {
			key = value
		}
		if number != 2 {
			return nil
		}
		return protobuf.Fields(data, func(number int, _ uint64, text []byte) error {
			if number == field {
				name = string(text)
			}
			return nil
		})
	})
	names[key] = name
	return err
}

// line is a thread with its events, at times since its own.
func (x *xspace) line(p *xplane, data []byte) error {
	var thread string
	var start int64
	var events [][]byte
	if err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 1:
			thread = strconv.FormatUint(value, 10)
		case 3:
			start = int64(value)
		case 4:
			events = append(events, inner)
		}
		return nil
	}); err != nil {
		return err
	}
	if !x.based {
		x.based, x.Base = true, start
	}
	for _, event := range events {
		if err := x.event(p, thread, float64(start-x.Base)/1000, event); err != nil {
			return err
		}
	}
	return nil
}

// pythonStay is how both profilers name a function of Python: "$train.py:12 main".
var pythonStay = words.Lazy(`^\$(.+):(\d+) (.+)$`)

func pythonPlace(name string) (mem.Location, bool) {
	m := pythonStay.FindStringSubmatch(name)
	if m == nil {
		return mem.Location{}, false
	}
	number, err := strconv.Atoi(m[2])
	return mem.Location{File: m[1], Line: number, Function: m[3]}, err == nil
}

func (x *xspace) event(p *xplane, thread string, line float64, data []byte) error {
	if x.count++; x.count > maxXEvents {
		return fmt.Errorf("more than %d events", maxXEvents)
	}
	var name string
	var offset, duration uint64 // ps
	var stats [][]byte
	if err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 1:
			name = p.names[value]
		case 2:
			offset = value
		case 3:
			duration = value
		case 4:
			stats = append(stats, inner)
		}
		return nil
	}); err != nil {
		return err
	}
	at := line + float64(offset)/1e6
	switch {
	case name == "MemoryAllocation" || name == "MemoryDeallocation":
		return x.memory(p, thread, at, name == "MemoryAllocation", stats)
	case strings.HasPrefix(name, "$"):
		if place, ok := pythonPlace(name); ok {
			stay := Stay{at, at + float64(duration)/1e6, x.Out.Stacks.Location(place)}
			x.Stays[thread], x.Python = append(x.Stays[thread], stay), !x.exact
		}
	case len(stats) > 0:
		return x.step(p, name, at, float64(duration)/1e6, stats)
	}
	return nil
}

// step takes in a step that the program named: tf.profiler.experimental.Trace("train", step_num=7).
func (x *xspace) step(p *xplane, name string, at, duration float64, stats [][]byte) error {
	s, err := p.readStats(stats)
	if err == nil && s.step != "" {
		name += " " + s.step
		x.Out.Annotations = append(x.Out.Annotations, mem.Annotation{Name: name, Time: x.At(at)},
			mem.Annotation{Name: name, Time: x.At(at + duration), End: true})
	}
	return err
}

var gpuAllocator = words.Lazy(`^(?i)gpu_(\d+)_bfc$`)

func (x *xspace) memory(p *xplane, thread string, at float64, taken bool, stats [][]byte) error {
	s, err := p.readStats(stats)
	if err != nil {
		return err
	}
	if s.bytes < 0 || s.bytes > int64(mem.MaxSize) {
		return fmt.Errorf("a memory event of %d bytes", s.bytes)
	}
	e := Event{Time: at, Thread: thread, Device: Device{Name: s.allocator}, Address: uint64(s.address), Bytes: s.bytes,
		Before: max(0, s.held-s.bytes)}
	if s.allocator == "cpu" || s.allocator == "mklcpu" {
		e.Device.Name = "" // the host, whichever allocator serves it
	}
	if m := gpuAllocator.FindStringSubmatch(s.allocator); m != nil {
		number, _ := strconv.Atoi(m[1])
		e.Device = Device{Kind: 1, Index: min(number, 1<<16)}
	}
	if taken && 0 < s.asked && s.asked < s.bytes {
		e.Asked = s.asked
	}
	if !taken {
		e.Bytes, e.Before = -s.bytes, s.held+s.bytes
	}
	if s.op != "" {
		e.Named, e.Within = true, x.Out.Stacks.Location(mem.Location{Function: s.op, Native: true})
		e.Line, e.Lined = x.lines[s.op]
	}
	e.Metadata = strings.TrimSpace(s.region + " " + s.shape)
	x.Events = append(x.Events, e)
	return nil
}

func (p *xplane) readStats(stats [][]byte) (s xstats, err error) {
	for _, data := range stats {
		var name, text string
		var number int64
		err = protobuf.Fields(data, func(field int, value uint64, inner []byte) error {
			switch field {
			case 1:
				name = p.stats[value]
			case 3, 4:
				number = int64(value)
			case 5:
				text = string(inner)
			case 7:
				text = p.stats[value]
			}
			return nil
		})
		if err != nil {
			return s, err
		}
		switch name {
		case "allocator_name":
			s.allocator = text
		case "tf_op":
			s.op = text
		case "shape", "tensor_shape":
			s.shape = text
		case "region_type":
			s.region = text
		case "allocation_bytes":
			s.bytes = number
		case "requested_bytes":
			s.asked = number
		case "bytes_allocated":
			s.held = number
		case "addr":
			s.address = number
		case "step_num":
			s.step = strconv.FormatInt(number, 10)
		}
	}
	return s, nil
}
