package modelfile

import (
	"fmt"
	"slices"
	"strings"
)

// weights computes the tensors of a model from its configuration.
type weights struct {
	*config
	kind    Type
	packing *packing
	kinds   []string // of the layers
	tensors []Tensor
	err     error
}

// add makes a tensor, and with bias another of its rows.
func (w *weights) add(name string, bias bool, shape ...int) {
	w.typed(w.kind, name+".weight", shape...)
	if bias {
		w.vector(name+".bias", shape[len(shape)-2])
	}
}

// vector makes a tensor of one dimension, or of one for each expert.
func (w *weights) vector(name string, shape ...int) { w.typed(w.shape.Type, name, shape...) }

// typed makes a tensor of a type.
func (w *weights) typed(kind Type, name string, shape ...int) {
	t := Tensor{Name: name, Type: kind}
	for _, n := range shape {
		t.Shape = append(t.Shape, int64(n))
	}
	var err error
	if t.Bytes, err = kind.size(t.Shape); err != nil {
		w.err = err
	}
	w.tensors = append(w.tensors, t)
}

// linear makes a matrix, packed where the model is.
func (w *weights) linear(name string, bias bool, shape ...int) {
	p := w.packing
	if p == nil || p.experts && !strings.Contains(name, ".experts.") {
		w.add(name, bias, shape...)
		return
	}
	w.kind = p.kind
	w.add(name, bias, shape...)
	w.kind = w.shape.Type
	before, rows, columns := shape[:len(shape)-2], shape[len(shape)-2], shape[len(shape)-1]
	down, across := 1, columns
	if p.rows > 0 {
		down = p.rows
	}
	if p.columns > 0 {
		across = p.columns
	}
	scales := append(slices.Clone(before), (rows+down-1)/down, (columns+across-1)/across)
	w.typed(p.scale, name+".weight_scale", scales...)
	if p.zeros {
		w.typed(p.kind, name+".weight_zeros", scales...)
	}
}

// packing is how the matrices of the layers are packed: the type of their numbers, and for so many of them, rows and
// columns, a scale. No columns: a whole row.
type packing struct {
	kind          Type
	scale         Type
	rows, columns int
	zeros         bool // a number besides, of the type that is packed
	experts       bool // only experts' matrices are
}

// packed is the packing that a configuration names; nil: none. An error says that how many bytes it takes stands only
// in the files.
func (c *config) packed() (*packing, error) {
	s, q := &c.shape, c.whole.object("quantization_config")
	bits, group := q.int("bits", "w_bit"), q.int("group_size", "q_group_size")
	switch s.Quantization {
	case "":
		return nil, nil
	case "fp8":
		p := &packing{kind: FP8, scale: F32, rows: 128, columns: 128}
		if block := list[int](q, "weight_block_size"); len(block) == 2 && block[0] > 0 && block[1] > 0 {
			p.rows, p.columns = block[0], block[1]
		} else {
			p.rows, p.columns = most, most // one scale for all
		}
		return p, nil
	case "mxfp4":
		return &packing{kind: Type{"F4", 2, 1}, scale: Type{"F8_E8M0", 1, 1}, columns: 32, experts: s.Kind == "gpt_oss"}, nil
	case "awq", "gptq":
		if bits == 4 && s.Experts == 0 {
			return &packing{kind: int4, scale: F16, columns: group, zeros: true}, nil
		}
	}
	return nil, fmt.Errorf("the weights are packed by %s: how many bytes that takes is only in their files",
		short(s.Quantization))
}

// int4 is that of two numbers in a byte.
var int4 = Type{"INT4", 2, 1}

func (w *weights) norm(name string, n int) {
	if !w.bool("layer_norm_elementwise_affine", true) {
		return
	}
	w.vector(name+".weight", n)
	if w.family.normBias {
		w.vector(name+".bias", n)
	}
}

// affine makes a norm with a bias or without.
func (w *weights) affine(name string, bias bool, n int) {
	w.vector(name+".weight", n)
	if bias {
		w.vector(name+".bias", n)
	}
}
