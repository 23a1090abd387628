package profiler

import (
	"encoding/binary"
	"fmt"
	"io"

	"hightide/internal/format/protobuf"
	"hightide/internal/mem"
)

// What a program of XLA needs, by the lines it was written on, from the module and the assignment of its buffers:
//
//	HloProto ──▶ hlomodule: instructions ─▶ stacks     ──▶ mem.Profile, a sample for each buffer at the fullest moment
//	         └─▶ hlobuffers: allocations, their buffers, the order in which temporaries come and go
//
// XLA writes it as *.hlo.pb for XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_proto". Only what it writes after
// its optimizations has buffers. Source: xla/service/hlo.proto.

const (
	linesField = 4001 // our agent's: a plane with the lines of operations of TensorFlow, whose own are of its library
	maxHLO     = 1 << 30
)

// IsHLO knows an HloProto by its module, which begins with its name and that of its entry computation.
func IsHLO(head []byte) bool {
	if len(head) < 8 || head[0] != 0x0a {
		return false
	}
	_, n := binary.Uvarint(head[1:])
	if n <= 0 {
		return false
	}
	rest, ok := nameAt(head[1+n:], 1)
	if !ok {
		return false
	}
	_, ok = nameAt(rest, 2)
	return ok
}

// nameAt is what follows a field that is a name.
func nameAt(data []byte, number byte) (rest []byte, ok bool) {
	if len(data) < 3 || data[0] != number<<3|2 {
		return nil, false
	}
	size, n := binary.Uvarint(data[1:])
	if n <= 0 || size == 0 || size > uint64(len(data)-1-n) {
		return nil, false
	}
	for _, c := range data[1+n : 1+n+int(size)] {
		if c < ' ' || c > '~' {
			return nil, false
		}
	}
	return data[1+n+int(size):], true
}

// ReadHLO reads what a program needs at once.
func ReadHLO(r io.Reader) (*mem.Profile, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxHLO+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(data) > maxHLO {
		return nil, fmt.Errorf("a program of more than %d bytes", maxHLO)
	}
	module := hloModule{instructions: map[uint64]hloInstruction{}, lines: map[string]mem.Location{},
		hloGraph: hloGraph{parts: map[uint64]*hloPart{}}}
	buffers := hloBuffers{defined: map[uint64]uint64{}, size: map[uint64]int64{}, path: map[uint64][]uint64{}}
	if err := protobuf.Fields(data, func(number int, _ uint64, inner []byte) error {
		switch number {
		case 1:
			return protobuf.Fields(inner, module.field)
		case 3:
			return protobuf.Fields(inner, buffers.field)
		case linesField:
			return protobuf.Fields(inner, module.readLines)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(buffers.allocations) == 0 {
		return nil, fmt.Errorf("%s has no assignment of buffers: XLA writes one in ...after_optimizations.hlo.pb", module.name)
	}
	p := &mem.Profile{Label: mem.Estimated, Default: 1,
		Kinds: []mem.ProfileKind{{Name: "buffers", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes}},
		Notes: []string{"What " + module.name + " needs for one call, as XLA assigned its buffers: arguments, outputs, " +
			"constants, and the temporaries that are alive at their fullest."}}
	named := hloStacks{p, &module, map[hloUse]uint32{}}
	for i := range buffers.allocations {
		a := &buffers.allocations[i]
		if a.local || a.size <= 0 {
			continue
		}
		rest := a.size
		for _, id := range buffers.held(a) {
			bytes := min(buffers.size[id], rest)
			named.add(a.kind(), buffers.defined[id], bytes)
			rest -= bytes
		}
		if rest > 0 { // between buffers, or of an allocation that does not say what is in it
			named.add(a.kind(), 0, rest)
		}
	}
	p.Halves = module.halves(&buffers, func(id uint64) string { return module.instructions[id].op })
	return p, nil
}

// hloModule is the part of a module that tells where its instructions are from.
type hloModule struct {
	name         string
	instructions map[uint64]hloInstruction
	files, calls []string
	places       []hloPlace
	frames       []hloFrame
	lines        map[string]mem.Location // of operations of graphs, where our agent added them

	hloGraph
}

type hloInstruction struct {
	op, file string
	line     int
	frame    uint64 // from 1; 0: it has none
}

// hloPlace and hloFrame refer to their lists by numbers from 1.
type hloPlace struct {
	file, function uint64
	line           int
}

type hloFrame struct{ place, parent uint64 }

func (m *hloModule) field(number int, value uint64, data []byte) error {
	switch number {
	case 1:
		m.name = string(data)
	case 3:
		if err := m.part(data); err != nil {
			return err
		}
		return protobuf.Fields(data, m.computation)
	case 6:
		m.entry = value
	case 7:
		return protobuf.Fields(data, m.sequence)
	case 8:
		return protobuf.Fields(data, m.alias)
	case 17:
		return protobuf.Fields(data, m.index)
	}
	return nil
}

func (m *hloModule) computation(number int, _ uint64, data []byte) error {
	if number != 2 {
		return nil
	}
	var id uint64
	var one hloInstruction
	err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 7:
			return protobuf.Fields(inner, one.field)
		case 35:
			id = value
		}
		return nil
	})
	m.instructions[id] = one
	return err
}

func (i *hloInstruction) field(number int, value uint64, data []byte) error {
	switch number {
	case 2:
		i.op = string(data)
	case 3:
		i.file = string(data)
	case 4:
		i.line = int(int32(value))
	case 15:
		i.frame = value
	}
	return nil
}

func (m *hloModule) index(number int, _ uint64, data []byte) error {
	switch number {
	case 1:
		m.files = append(m.files, string(data))
	case 2:
		m.calls = append(m.calls, string(data))
	case 3:
		var one hloPlace
		err := protobuf.Fields(data, func(number int, value uint64, _ []byte) error {
			switch number {
			case 1:
				one.file = value
			case 2:
				one.function = value
			case 3:
				one.line = int(int32(value))
			}
			return nil
		})
		m.places = append(m.places, one)
		return err
	case 4:
		var one hloFrame
		err := protobuf.Fields(data, func(number int, value uint64, _ []byte) error {
			switch number {
			case 1:
				one.place = value
			case 2:
				one.parent = value
			}
			return nil
		})
		m.frames = append(m.frames, one)
		return err
	}
	return nil
}

// readLines takes in which line each operation of TensorFlow's graphs is of.
func (m *hloModule) readLines(number int, _ uint64, data []byte) error {
	p, err := readPlane(data)
	if number != 1 || err != nil {
		return err
	}
	for key, name := range p.names {
		if at, ok := pythonPlace(p.shown[key]); ok {
			m.lines[name] = at
		}
	}
	return nil
}

// at is the value of a number that counts from 1.
func at[T any](all []T, number uint64) (value T) {
	if number == 0 || number > uint64(len(all)) {
		return value
	}
	return all[number-1]
}

// stack is where an instruction is from, innermost first; before JAX 0.9 one line.
func (m *hloModule) stack(i *hloInstruction) (lines []mem.Location) {
	if own, ok := m.lines[i.op]; ok {
		return []mem.Location{own}
	}
	if len(m.lines) > 0 && i.op != "" {
		return []mem.Location{{Function: i.op, Native: true}}
	}
	for number := i.frame; number != 0 && len(lines) < maxHLODepth; {
		frame := at(m.frames, number)
		place := at(m.places, frame.place)
		lines = append(lines, mem.Location{File: at(m.files, place.file), Line: place.line,
			Function: at(m.calls, place.function)})
		number = frame.parent
	}
	if lines == nil && i.file != "" {
		lines = append(lines, mem.Location{File: i.file, Line: i.line})
	}
	return lines
}

// hloStacks makes samples of instructions.
type hloStacks struct {
	*mem.Profile
	module *hloModule
	known  map[hloUse]uint32 // stacks
}

// hloUse is an instruction, whose result an argument may be the place of, or a temporary.
type hloUse struct {
	instruction uint64
	argument    bool
}

func (s *hloStacks) add(kind string, instruction uint64, bytes int64) {
	i, named := s.module.instructions[instruction]
	use := hloUse{instruction, kind == HLOArgument}
	stack, ok := s.known[use]
	if !named {
		stack = s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "XLA", Function: "between buffers", Native: true})})
	} else if !ok {
		var numbers []uint32
		if use.argument { // XLA knows its name, and not where it was made
			numbers = append(numbers, s.Stacks.Location(mem.Location{File: HLOArguments, Function: i.op, Native: true}))
		}
		for _, l := range s.module.stack(&i) {
			numbers = append(numbers, s.Stacks.Location(l))
		}
		if numbers == nil { // of what XLA itself put in, as copies
			numbers = append(numbers, s.Stacks.Location(mem.Location{File: "XLA", Function: "without a line", Native: true}))
		}
		stack = s.Stacks.Add(numbers)
		s.known[use] = stack
	}
	labels := map[string]string{HLOKind: kind}
	if i.op != "" {
		labels[HLOOperation] = i.op
	}
	s.Samples = append(s.Samples, mem.ProfileSample{Stack: stack, Values: []int64{1, bytes}, Labels: labels})
}
