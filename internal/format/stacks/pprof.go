// Package stacks reads and writes memory by call stack, mem.Profile: pprof both ways, memray's table, and for
// viewers speedscope, folded stacks and Graphviz. Each format is one file.
//
//	pprof, memray's table ──▶ mem.Profile ──▶ pprof, speedscope, folded stacks, Graphviz
package stacks

import (
	"encoding/binary"
	"fmt"
	"io"

	"hightide/internal/format/protobuf"
	"hightide/internal/mem"
)

// maxProfile bounds a profile once decompressed, in bytes.
const maxProfile = 1 << 30

// IsPprof knows a pprof profile by the type of its first value: two numbers of strings. Go writes that of its period,
// the period and times before.
func IsPprof(head []byte) bool {
	for range 6 {
		key, at := binary.Uvarint(head)
		if at <= 0 {
			return false
		}
		head = head[at:]
		switch key {
		case 1<<3 | 2:
			_, ok := valueType(head)
			return ok
		case 11<<3 | 2:
			rest, ok := valueType(head)
			if !ok {
				return false
			}
			head = rest
		case 9 << 3, 10 << 3, 12 << 3, 14 << 3:
			_, at := binary.Uvarint(head)
			if at <= 0 {
				return false
			}
			head = head[at:]
		default:
			return false
		}
	}
	return false
}

// valueType knows the message of a type and its unit at the beginning of bytes, and returns what follows.
func valueType(head []byte) (rest []byte, ok bool) {
	if len(head) < 6 || head[0] < 2 || head[0] > 12 || int(head[0])+1 >= len(head) {
		return nil, false
	}
	numbers := 0
	err := protobuf.Fields(head[1:1+head[0]], func(number int, _ uint64, data []byte) error {
		if number > 2 || data != nil {
			return protobuf.ErrMalformed
		}
		numbers++
		return nil
	})
	return head[1+head[0]:], err == nil && numbers > 0
}

// pprofReader holds the parts of a profile that refer to each other by number.
type pprofReader struct {
	out       *mem.Profile
	strings   []string
	functions map[uint64]pprofFunction
	locations map[uint64][]pprofLine
	places    map[uint64][2]uint64 // mapping and address of locations without symbols
	numbers   map[uint64][]uint32  // location → numbers in the stack table, innermost first
	types     [][2]uint64
	files     map[uint64]uint64 // of mappings
	period    int64
	every     [2]uint64 // what the period is of
	chosen    uint64
	comments  []uint64
}

// pprofFunction has numbers of strings: their table comes last in some files.
type pprofFunction struct{ name, file uint64 }

type pprofLine struct {
	function uint64
	line     int64
}

// ReadPprof reads a pprof profile (decompressed), such as jax.profiler.save_device_memory_profile
// writes: memory by call stack, device and kind of buffer.
func ReadPprof(r io.Reader) (*mem.Profile, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(data) > maxProfile {
		return nil, fmt.Errorf("a profile of more than %d bytes", maxProfile)
	}
	p := &pprofReader{out: &mem.Profile{Label: mem.Measured}, functions: map[uint64]pprofFunction{},
		locations: map[uint64][]pprofLine{}, places: map[uint64][2]uint64{}, files: map[uint64]uint64{},
		numbers: map[uint64][]uint32{}}
	if err := protobuf.Fields(data, p.definition); err != nil {
		return nil, err
	}
	if err := p.kinds(); err != nil {
		return nil, err
	}
	if err := protobuf.Fields(data, p.sampleField); err != nil {
		return nil, err
	}
	return p.out, nil
}

// text is the string of a number; the table is read before anything asks.
func (p *pprofReader) text(n uint64) string {
	if n >= uint64(len(p.strings)) {
		return ""
	}
	return p.strings[n]
}

// definition takes all fields but the samples.
func (p *pprofReader) definition(number int, value uint64, data []byte) error {
	switch number {
	case 1:
		pair, err := typeAndUnit(data)
		p.types = append(p.types, pair)
		return err
	case 3:
		return p.mapping(data)
	case 4:
		return p.location(data)
	case 5:
		return p.function(data)
	case 6:
		p.strings = append(p.strings, string(data))
	case 9:
		p.out.Time = int64(value)
	case 11:
		var err error
		p.every, err = typeAndUnit(data)
		return err
	case 12:
		p.period = int64(value)
	case 13:
		var err error
		p.comments, err = protobuf.Varints(p.comments, value, data)
		return err
	case 14:
		p.chosen = value
	}
	return nil
}

func typeAndUnit(data []byte) (pair [2]uint64, err error) {
	err = protobuf.Fields(data, func(n int, v uint64, _ []byte) error {
		if n == 1 || n == 2 {
			pair[n-1] = v
		}
		return nil
	})
	return pair, err
}

// mapping keeps the file of a stretch of address space.
func (p *pprofReader) mapping(data []byte) error {
	var id, file uint64
	err := protobuf.Fields(data, func(n int, v uint64, _ []byte) error {
		switch n {
		case 1:
			id = v
		case 5:
			file = v
		}
		return nil
	})
	p.files[id] = file
	return err
}

func (p *pprofReader) location(data []byte) error {
	var id, mapping, address uint64
	var lines []pprofLine
	err := protobuf.Fields(data, func(n int, v uint64, inner []byte) error {
		switch n {
		case 1:
			id = v
		case 2:
			mapping = v
		case 3:
			address = v
		case 4:
			var l pprofLine
			err := protobuf.Fields(inner, func(n int, v uint64, _ []byte) error {
				switch n {
				case 1:
					l.function = v
				case 2:
					l.line = int64(v)
				}
				return nil
			})
			lines = append(lines, l)
			return err
		}
		return nil
	})
	if len(lines) == 0 {
		p.places[id] = [2]uint64{mapping, address}
	}
	p.locations[id] = lines
	return err
}

func (p *pprofReader) function(data []byte) error {
	var id uint64
	var f pprofFunction
	err := protobuf.Fields(data, func(n int, v uint64, _ []byte) error {
		switch n {
		case 1:
			id = v
		case 2:
			f.name = v
		case 4:
			f.file = v
		}
		return nil
	})
	p.functions[id] = f
	return err
}

// kinds resolves what the values of a sample are.
func (p *pprofReader) kinds() error {
	if len(p.types) == 0 || len(p.strings) == 0 {
		return fmt.Errorf("%w: a profile without types or strings", protobuf.ErrMalformed)
	}
	held := false
	for i, t := range p.types {
		unit := mem.Unit(p.text(t[1]))
		switch unit {
		case "nanoseconds":
			unit = mem.UnitNanoseconds
		case "byte", "B":
			unit = mem.UnitBytes
		}
		p.out.Kinds = append(p.out.Kinds, mem.ProfileKind{Name: p.text(t[0]), Unit: unit})
		if unit == mem.UnitBytes && !held { // of several without a word of the file the last, as pprof takes
			p.out.Default, held = i, p.text(t[0]) == "inuse_space" || p.chosen != 0 && t[0] == p.chosen
		}
	}
	for i, k := range p.out.Kinds { // what is held, whatever the file shows first
		if k.Name == "inuse_space" && k.Unit == mem.UnitBytes {
			p.out.Default = i
		}
	}
	if p.period > 1 && mem.Unit(p.text(p.every[1])) == mem.UnitBytes {
		p.out.Label = mem.Sampled
		p.out.Notes = append(p.out.Notes, fmt.Sprintf("Its figures are scaled up from samples, one in %v on average.",
			mem.Bytes(p.period)))
	}
	if p.out.Kinds[p.out.Default].Unit != mem.UnitBytes {
		return fmt.Errorf("a profile of %s, not of memory", p.out.Kinds[p.out.Default].Name)
	}
	for _, c := range p.comments {
		p.out.Notes = append(p.out.Notes, p.text(c))
	}
	return nil
}

func (p *pprofReader) sampleField(number int, _ uint64, data []byte) error {
	if number != 2 {
		return nil
	}
	var ids, values []uint64
	var labels map[string]string
	err := protobuf.Fields(data, func(n int, v uint64, inner []byte) (err error) {
		switch n {
		case 1:
			ids, err = protobuf.Varints(ids, v, inner)
		case 2:
			values, err = protobuf.Varints(values, v, inner)
		case 3:
			if labels == nil {
				labels = map[string]string{}
			}
			err = p.label(labels, inner)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(values) != len(p.types) {
		return fmt.Errorf("%w: a sample of %d values, of which there are %d", protobuf.ErrMalformed, len(values),
			len(p.types))
	}
	s := mem.ProfileSample{Labels: labels, Values: make([]int64, len(values))}
	for i, v := range values {
		s.Values[i] = int64(v)
	}
	var stack []uint32
	for _, id := range ids {
		stack = append(stack, p.frames(id)...)
	}
	s.Stack = p.out.Stacks.Add(stack)
	p.out.Samples = append(p.out.Samples, s)
	return nil
}

// frames are the lines of a location, the inlined ones first.
func (p *pprofReader) frames(id uint64) []uint32 {
	if numbers, ok := p.numbers[id]; ok {
		return numbers
	}
	var numbers []uint32
	for _, l := range p.locations[id] {
		f := p.functions[l.function]
		where := mem.Location{File: p.text(f.file), Line: int(l.line), Function: p.text(f.name)}
		numbers = append(numbers, p.out.Stacks.Location(where))
	}
	if place, ok := p.places[id]; ok && place[1] != 0 {
		numbers = append(numbers, p.out.Stacks.Location(mem.Location{File: p.text(p.files[place[0]]),
			Function: fmt.Sprintf("%#x", place[1]), Native: true}))
	}
	p.numbers[id] = numbers
	return numbers
}

func (p *pprofReader) label(to map[string]string, data []byte) error {
	var key, text, number, unit uint64
	err := protobuf.Fields(data, func(n int, v uint64, _ []byte) error {
		switch n {
		case 1:
			key = v
		case 2:
			text = v
		case 3:
			number = v
		case 4:
			unit = v
		}
		return nil
	})
	value := p.text(text)
	if text == 0 {
		value = fmt.Sprintf("%d%s", int64(number), p.text(unit))
	}
	to[p.text(key)] = value
	return err
}
