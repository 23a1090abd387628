package modelfile

import (
	"bufio"
	"errors"
	"io"
	"math"
	"slices"

	"hightide/internal/mem"
)

// The numbers of the fields of ONNX's messages that tell of what is computed.
const (
	onnxGraph       = 7 // of ModelProto
	onnxNode        = 1 // of GraphProto
	onnxInitializer = 5
	onnxInput       = 11 // values, with their types
	onnxOutput      = 12
	onnxValue       = 13
	onnxTakes       = 1 // of NodeProto
	onnxMakes       = 2
	onnxKind        = 4
	onnxAttribute   = 5
	onnxTensor      = 5 // of AttributeProto: a constant
	onnxSubgraph    = 6
	onnxValueName   = 1 // of ValueInfoProto
	onnxValueType   = 2
	onnxTensorType  = 1 // of TypeProto
	onnxElement     = 1 // of TypeProto.Tensor
	onnxShape       = 2
	onnxDim         = 1 // of TensorShapeProto
	onnxDimValue    = 1 // of Dimension
)

// onnxValues gathers the graph while the file is read: its parts name values, in any order.
type onnxValues struct {
	Graph
	number    map[string]int
	constants map[int]bool
	names     int // bytes of them
	count     uses
}

// of is the number of a value.
func (g *onnxValues) of(name string) (int, error) {
	if n, ok := g.number[name]; ok {
		return n, nil
	}
	if g.number == nil {
		g.number, g.constants = map[string]int{}, map[int]bool{}
	}
	if g.names += len(name); g.names > maxNames {
		return 0, errors.New("names of values of more bytes than a model has")
	}
	n := len(g.Values)
	g.number[name] = n
	g.Values = append(g.Values, Value{Name: name})
	return n, nil
}

// done is the graph without its constants, which are weights.
func (g *onnxValues) done() *Graph {
	isConstant := func(v int) bool { return g.constants[v] }
	for i := range g.Operators {
		o := &g.Operators[i]
		o.Takes, o.Makes = slices.DeleteFunc(o.Takes, isConstant), slices.DeleteFunc(o.Makes, isConstant)
	}
	for v := range g.constants {
		g.Values[v] = Value{Name: g.Values[v].Name, Bytes: mem.Some(0)}
	}
	return &g.Graph
}

// onnxModel reads a model: its weights and its graph.
type onnxModel struct {
	onnxReader
	values onnxValues
}

// readONNX reads the weights of a graph, of its constants and of the graphs inside it, and what it computes.
func readONNX(r io.ReaderAt, size int64, keep *budget, m *Model) error {
	if size < 0 {
		size = math.MaxInt64 / 2
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16)
	o := &onnxModel{onnxReader: onnxReader{in: in, keep: keep}}
	graphs := 0
	err := o.message(size, func(number, length int64) error {
		if number == onnxGraph && length >= 0 {
			graphs++
			return o.graph(length, 0)
		}
		return o.pass(length)
	})
	if err == nil && graphs == 0 {
		err = errors.New("no ONNX: it has no graph")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errEnds
	}
	if err != nil {
		return &Error{Offset: o.at, Err: err}
	}
	m.Tensors, m.Graph = o.tensors, o.values.done()
	return nil
}

// graph reads the weights of one, and of the graphs in its nodes.
func (o *onnxModel) graph(length int64, depth int) error {
	if depth > 8 {
		return errors.New("graphs inside graphs, more than 8 of them")
	}
	return o.message(length, func(number, length int64) error {
		switch {
		case number == onnxInitializer && length >= 0:
			return o.initializer(length, depth)
		case number == onnxNode && length >= 0:
			return o.node(length, depth)
		case depth == 0 && length >= 0 && (number == onnxInput || number == onnxOutput || number == onnxValue):
			return o.value(length, number)
		}
		return o.pass(length)
	})
}

// initializer reads a weight. In older files it is among the inputs too.
func (o *onnxModel) initializer(length int64, depth int) error {
	if err := o.tensor(length); err != nil || depth > 0 {
		return err
	}
	v, err := o.values.of(o.tensors[len(o.tensors)-1].Name)
	if err == nil {
		o.values.constants[v] = true
	}
	return err
}

func (o *onnxModel) attribute(length int64, depth int) error {
	return o.message(length, func(number, length int64) error {
		switch {
		case number == onnxTensor && length >= 0:
			return o.tensor(length)
		case number == onnxSubgraph && length >= 0:
			o.values.Inside++
			return o.graph(length, depth+1)
		}
		return o.pass(length)
	})
}

// node reads an operator of the main graph, or only what is inside one of another.
func (o *onnxModel) node(length int64, depth int) error {
	var op Operator
	err := o.message(length, func(number, length int64) error {
		switch {
		case number == onnxAttribute && length >= 0:
			return o.attribute(length, depth)
		case depth > 0 || length < 0 || number != onnxTakes && number != onnxMakes && number != onnxKind:
			return o.pass(length)
		}
		name, err := o.text(length)
		if err != nil || name == "" { // one that is left out
			return err
		}
		if number == onnxKind {
			op.Kind = name
			return nil
		}
		if err := o.values.count.count(0, 1); err != nil {
			return err
		}
		v, err := o.values.of(name)
		if number == onnxTakes {
			op.Takes = append(op.Takes, v)
		} else {
			op.Makes = append(op.Makes, v)
		}
		return err
	})
	if err != nil || depth > 0 {
		return err
	}
	if op.Kind == "Constant" {
		for _, v := range op.Makes {
			o.values.constants[v] = true
		}
		return nil
	}
	o.values.Operators = append(o.values.Operators, op)
	return o.values.count.count(1, 0)
}

// value reads the type of a value, and what it is to the caller.
func (o *onnxModel) value(length, as int64) error {
	name, bytes := "", mem.Optional{}
	err := o.message(length, func(number, length int64) (err error) {
		switch {
		case number == onnxValueName && length >= 0:
			name, err = o.text(length)
		case number == onnxValueType && length >= 0:
			err = o.message(length, func(number, length int64) (err error) {
				if number != onnxTensorType || length < 0 {
					return o.pass(length)
				}
				bytes, err = o.valueSize(length)
				return err
			})
		default:
			err = o.pass(length)
		}
		return err
	})
	if err != nil || name == "" {
		return err
	}
	v, err := o.values.of(name)
	if err != nil {
		return err
	}
	is := &o.values.Values[v]
	if bytes.Known() {
		is.Bytes = bytes
	}
	is.Kept, is.Asked = is.Kept || as == onnxInput, is.Asked || as == onnxOutput
	return o.values.count.count(0, 1)
}

// valueSize reads the type and shape of a tensor.
func (o *onnxModel) valueSize(length int64) (mem.Optional, error) {
	var kind Type
	var shape []int64
	shaped := false
	err := o.message(length, func(number, length int64) error {
		switch {
		case number == onnxElement && length < 0:
			n, err := o.varint()
			kind = onnxTypes[n]
			return err
		case number == onnxShape && length >= 0:
			shaped = true
			return o.message(length, func(number, length int64) error {
				if number != onnxDim || length < 0 {
					return o.pass(length)
				}
				d, err := o.dimension(length)
				if shape = append(shape, d); len(shape) > 16 {
					return errors.New("a value with sizes that no tensor has")
				}
				return err
			})
		}
		return o.pass(length)
	})
	if err != nil || !shaped {
		return mem.Optional{}, err
	}
	return sizeOf(kind, shape), nil
}

// dimension reads one size; 1 where the file leaves it open.
func (o *onnxModel) dimension(length int64) (int64, error) {
	size := int64(-1)
	err := o.message(length, func(number, length int64) error {
		if number != onnxDimValue || length >= 0 {
			return o.pass(length)
		}
		n, err := o.varint()
		size = int64(min(n, 1<<62))
		return err
	})
	if size < 0 {
		o.values.Open = true
		size = 1
	}
	return size, err
}
