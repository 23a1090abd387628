package modelfile

import (
	"errors"
	"fmt"
	"math"

	"hightide/internal/mem"
)

// Graph is what a model computes, as far as memory goes: operators in the order in which the file has them, and the
// values that they hand to each other.
type Graph struct {
	Operators []Operator
	Values    []Value // whose data does not stand in the file
	Open      bool    // a size that the caller sets, as that of the batch, was taken as 1 or as the file has it
	Inside    int     // graphs inside operators, as loops have them: what is alive in these is not counted
	Method    string  // of ExecuTorch: the one that is computed here, of so many
	Methods   int
}

// Operator takes values and makes others, by their numbers in Graph.Values.
type Operator struct {
	Kind         string // as CONV_2D or MatMul
	Takes, Makes []int
}

// Value is one that is computed, or given from outside.
type Value struct {
	Name  string
	Bytes mem.Optional // absent: the file does not say its size
	Kept  bool         // it is alive all the time: the caller gives it, or it is a state
	Given bool         // the caller gives it, and its memory serves others once nobody takes it any more
	Asked bool         // the caller asks for it: once it is made it stays
}

// views are kinds of operators that runtimes do without a copy: what they make is what they take, in another shape.
var views = map[string]bool{"RESHAPE": true, "SQUEEZE": true, "EXPAND_DIMS": true, "Reshape": true, "Squeeze": true,
	"Unsqueeze": true, "Flatten": true, "Identity": true, "executorch_prim::et_view.default": true}

// storage says for each value in which other it lies: itself, where it has memory of its own.
func (g *Graph) storage() []int {
	in := make([]int, len(g.Values))
	for i := range in {
		in[i] = i
	}
	for i := range g.Operators {
		if o := &g.Operators[i]; views[o.Kind] && len(o.Takes) > 0 && len(o.Makes) == 1 && in[o.Makes[0]] == o.Makes[0] {
			in[o.Makes[0]] = in[o.Takes[0]]
		}
	}
	return in
}

// Live is how many bytes of values are alive while each operator runs: what it takes and makes, what later ones still
// take, and what the caller gave or asked for. A runtime needs that, and more for its kernels, which computes the graph
// in this order, and nothing in place but views.
func (g *Graph) Live() []mem.Bytes {
	in := g.storage()
	first, last, bytes := make([]int, len(in)), make([]int, len(in)), make([]mem.Bytes, len(in))
	for i := range first {
		first[i], last[i] = math.MaxInt, -1
	}
	use := func(v, from, to int) { first[in[v]], last[in[v]] = min(first[in[v]], from), max(last[in[v]], to) }
	for at, o := range g.Operators {
		for _, v := range o.Takes {
			last[in[v]] = max(last[in[v]], at) // what nobody makes is of a graph around
		}
		for _, v := range o.Makes {
			use(v, at, at)
		}
	}
	end := len(g.Operators) - 1
	for i := range g.Values {
		v := &g.Values[i]
		bytes[in[i]] = max(bytes[in[i]], mem.Bytes(v.Bytes.Or(0)))
		if v.Given {
			use(i, 0, 0)
		}
		if v.Kept {
			use(i, 0, end)
		} else if v.Asked {
			last[in[i]] = end
		}
	}
	changes := make([]mem.Bytes, len(g.Operators)+1)
	for i := range bytes {
		if in[i] == i && first[i] <= last[i] {
			changes[first[i]] += bytes[i]
			changes[last[i]+1] -= bytes[i]
		}
	}
	live, now := make([]mem.Bytes, len(g.Operators)), mem.Bytes(0)
	for at := range live {
		now += changes[at]
		live[at] = now
	}
	return live
}

// Unknown is how many values have a size that the file does not say, and how many there are.
func (g *Graph) Unknown() (unknown, all int) {
	for i := range g.Values {
		if !g.Values[i].Bytes.Known() {
			unknown++
		}
	}
	return unknown, len(g.Values)
}

// What of a graph is kept at most.
const (
	maxOperators = 1 << 20
	maxUses      = 1 << 22 // of values by operators
	maxValueSize = 1 << 50 // bytes: then the sums of all stay numbers
)

// uses counts what the operators of a file make us keep.
type uses struct{ operators, values int }

func (u *uses) count(operators, values int) error {
	u.operators += operators
	u.values += values
	switch {
	case u.operators > maxOperators:
		return fmt.Errorf("more than %d operators", maxOperators)
	case u.values > maxUses:
		return errors.New("operators that take more values than a model has")
	}
	return nil
}

// sizeOf is what a value of a shape takes; absent where there is no such size.
func sizeOf(kind Type, shape []int64) mem.Optional {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxValueSize/d {
			return mem.Optional{}
		}
		n *= d
	}
	if kind.Block <= 0 {
		return mem.Optional{}
	}
	blocks := (n + kind.Block - 1) / kind.Block
	if kind.Bytes > 0 && blocks > maxValueSize/kind.Bytes {
		return mem.Optional{}
	}
	return mem.Some(blocks * kind.Bytes)
}
