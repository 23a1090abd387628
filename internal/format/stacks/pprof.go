// Package stacks reads and writes memory by call stack, mem.Profile: pprof both ways, memray's table, and for
// viewers speedscope, folded stacks and Graphviz. Each format is one file.
package stacks

import (
	"fmt"
	"io"

	"hightide/internal/format/protobuf"
	"hightide/internal/mem"
)

// maxProfile bounds a profile once decompressed, in bytes.
const maxProfile = 1 << 30

// IsPprof knows a pprof profile by its first field, the type of its first value: two numbers of
// strings.
func IsPprof(head []byte) bool {
	if len(head) < 8 || head[0] != 0x0a || head[1] < 2 || head[1] > 12 || int(head[1])+2 >= len(head) {
		return false
	}
	numbers := 0
	err := protobuf.Fields(head[2:2+head[1]], func(number int, _ uint64, data []byte) error {
		if number > 2 || data != nil {
			return protobuf.ErrMalformed
		}
		numbers++
		return nil
	})
	return err == nil && numbers > 0
}

// pprofReader holds the parts of a profile that refer to each other by number.
type pprofReader struct {
	out       *mem.Profile
	strings   []string
	functions map[uint64]pprofFunction
	locations map[uint64][]pprofLine
	numbers   map[uint64][]uint32 // location → numbers in the stack table, innermost first
	types     [][2]uint64
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
		locations: map[uint64][]pprofLine{}, numbers: map[uint64][]uint32{}}
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
		var pair [2]uint64
		err := protobuf.Fields(data, func(n int, v uint64, _ []byte) error {
			if n == 1 || n == 2 {
				pair[n-1] = v
			}
			return nil
		})
		p.types = append(p.types, pair)
		return err
	case 4:
		return p.location(data)
	case 5:
		return p.function(data)
	case 6:
		p.strings = append(p.strings, string(data))
	case 9:
		p.out.Time = int64(value)
	case 13:
		var err error
		p.comments, err = protobuf.Varints(p.comments, value, data)
		return err
	case 14:
		p.chosen = value
	}
	return nil
}

func (p *pprofReader) location(data []byte) error {
	var id uint64
	var lines []pprofLine
	err := protobuf.Fields(data, func(n int, v uint64, inner []byte) error {
		switch n {
		case 1:
			id = v
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
	for i, t := range p.types {
		unit := mem.Unit(p.text(t[1]))
		switch unit {
		case "nanoseconds":
			unit = mem.UnitNanoseconds
		case "byte", "B":
			unit = mem.UnitBytes
		}
		p.out.Kinds = append(p.out.Kinds, mem.ProfileKind{Name: p.text(t[0]), Unit: unit})
		if unit == mem.UnitBytes && p.out.Kinds[p.out.Default].Unit != mem.UnitBytes || p.chosen != 0 && t[0] == p.chosen {
			p.out.Default = i
		}
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
		return fmt.Errorf("%w: a sample of %d values, of which there are %d", protobuf.ErrMalformed, len(values), len(p.types))
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
