package profiler

import (
	"fmt"
	"slices"

	"hightide/internal/format/protobuf"
)

// hloShape is an array with its dimensions, or a tuple of shapes.
type hloShape struct {
	element uint64 // its type
	dims    []uint64
	order   []uint64 // of dimensions in memory, the innermost first; none: the last is the innermost
	parts   []hloShape
	tuple   bool
	depth   int // of tuples around it
	first   int // the node of its first dimension
}

// tupleType is the number of XLA's element type of tuples.
const tupleType = 13

const maxHLODepth = 256 // frames of a stack, and tuples in each other

func (s *hloShape) field(number int, value uint64, data []byte) (err error) {
	switch number {
	case 2:
		s.element, s.tuple = value, s.tuple || value == tupleType
	case 3:
		s.dims, err = protobuf.Varints(s.dims, value, data)
	case 4:
		s.tuple = true
		part := hloShape{depth: s.depth + 1}
		if part.depth > maxHLODepth {
			return fmt.Errorf("a tuple in %d others: %w", maxHLODepth, protobuf.ErrMalformed)
		}
		err = protobuf.Fields(data, part.field)
		s.parts = append(s.parts, part)
	case 5:
		return protobuf.Fields(data, func(number int, value uint64, data []byte) (err error) {
			if number == 1 {
				s.order, err = protobuf.Varints(s.order, value, data)
			}
			return err
		})
	}
	return err
}

// leaves are the arrays of a shape, from left to right.
func (s *hloShape) leaves() []*hloShape {
	if !s.tuple {
		return []*hloShape{s}
	}
	var all []*hloShape
	for i := range s.parts {
		all = append(all, s.parts[i].leaves()...)
	}
	return all
}

// part is what a path leads to; nil: nothing.
func (s *hloShape) part(path ...uint64) *hloShape {
	for _, i := range path {
		if i >= uint64(len(s.parts)) {
			return nil
		}
		s = &s.parts[i]
	}
	return s
}

// inMemory are the dimensions from the outermost to the innermost.
func (s *hloShape) inMemory() (dims []int) {
	for _, d := range slices.Backward(s.order) {
		if d < uint64(len(s.dims)) {
			dims = append(dims, int(d))
		}
	}
	if len(dims) == len(s.dims) {
		return dims
	}
	return s.logical()
}

func (s *hloShape) logical() (dims []int) {
	for i := range s.dims {
		dims = append(dims, i)
	}
	return dims
}

// hloCode is what an instruction does.
type hloCode struct {
	id, number, index          uint64 // number: of a parameter; index: of a tuple
	opcode, target             string
	shape                      hloShape
	dims, sizes                []uint64
	operands, called           []uint64
	config                     []byte
	dot, window, picks, places hloNumbers // how a product, a convolution, a gather and a scatter take dimensions
}

// hloNumbers are lists of numbers by the number of their field.
type hloNumbers map[int][]uint64

func (n *hloNumbers) read(data []byte) error {
	*n = hloNumbers{}
	return protobuf.Fields(data, func(number int, value uint64, data []byte) (err error) {
		(*n)[number], err = protobuf.Varints((*n)[number], value, data)
		return err
	})
}

// one is a number that is 0 where it is not written.
func (n hloNumbers) one(field int) uint64 {
	if len(n[field]) == 0 {
		return 0
	}
	return n[field][0]
}

func (c *hloCode) field(number int, value uint64, data []byte) (err error) {
	switch number {
	case 2:
		c.opcode = string(data)
	case 3:
		return protobuf.Fields(data, c.shape.field)
	case 9:
		c.number = value
	case 13:
		c.index = value
	case 14:
		c.dims, err = protobuf.Varints(c.dims, value, data)
	case 16:
		return c.window.read(data)
	case 28:
		c.target = string(data)
	case 30:
		return c.dot.read(data)
	case 33:
		return c.picks.read(data)
	case 34:
		c.sizes, err = protobuf.Varints(c.sizes, value, data)
	case 35:
		c.id = value
	case 36:
		c.operands, err = protobuf.Varints(c.operands, value, data)
	case 38:
		c.called, err = protobuf.Varints(c.called, value, data)
	case 43:
		c.config = data
	case 48:
		return c.places.read(data)
	}
	return err
}

// hloPart is a computation: a program's own, a loop's body, what was fused.
type hloPart struct {
	parameters []*hloCode // by their numbers
	root       uint64
	codes      []*hloCode
}

// hloGraph is what a module runs.
type hloGraph struct {
	parts   map[uint64]*hloPart // by their numbers
	entry   uint64              // the one that is called
	donated []hloNumbers        // arguments whose place a result takes
	order   map[uint64]int      // of the entry's instructions
}

// part reads a computation whole.
func (g *hloGraph) part(data []byte) error {
	var p hloPart
	var id uint64
	err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 2:
			var c hloCode
			if err := protobuf.Fields(inner, c.field); err != nil {
				return err
			}
			p.codes = append(p.codes, &c)
		case 5:
			id = value
		case 6:
			p.root = value
		}
		return nil
	})
	g.parts[id] = &p
	return err
}

// sequence reads in which order a computation runs.
func (g *hloGraph) sequence(number int, _ uint64, data []byte) error {
	var of uint64
	var ids []uint64
	if number != 1 {
		return nil
	}
	err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 1:
			of = value
		case 2:
			return protobuf.Fields(inner, func(_ int, value uint64, data []byte) (err error) {
				ids, err = protobuf.Varints(ids, value, data)
				return err
			})
		}
		return nil
	})
	if of == g.entry {
		g.order = map[uint64]int{}
		for i, id := range ids {
			g.order[id] = i
		}
	}
	return err
}

// alias reads which argument a result takes the place of.
func (g *hloGraph) alias(number int, _ uint64, data []byte) error {
	var entry hloNumbers
	if number != 1 {
		return nil
	}
	err := entry.read(data)
	g.donated = append(g.donated, entry)
	return err
}
