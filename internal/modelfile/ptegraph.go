package modelfile

import (
	"fmt"
	"io"
	"math"

	"hightide/internal/mem"
)

// The fields of ExecuTorch's tables that tell of a method's steps, by their numbers. Source: program.fbs of ExecuTorch.
const (
	pteMethod       = 0 // of ExecutionPlan
	pteInputs       = 3
	pteOutputs      = 4
	pteChains       = 5
	pteOperators    = 6
	pteInstructions = 2 // of Chain
	pteInstruction  = 0 // of Instruction: its kind, and behind it the table
	pteKernel       = 1 // an instruction's kind
	pteDelegate     = 2
	pteCalled       = 0 // of KernelCall and DelegateCall: of which operator or backend
	pteArguments    = 1
	pteDynamism     = 8 // of Tensor
	pteUnbound      = 2 // a tensor whose size is known once it is made
	pteTensorList   = 10
	pteOptionalList = 11
)

// readPTE reads the weights of a program of ExecuTorch, a flatbuffer: its constants, each once, and what it hands to
// backends, whose form only they know.
func readPTE(r io.ReaderAt, size int64, keep *budget, m *Model) error {
	f, program, err := openPTE(r, size)
	if err != nil {
		return err
	}
	held := max(f.vector(f.field(program, pteConstants)).n, f.offsets(program))
	seen := map[string]bool{}
	var tensors []Tensor
	add := func(at int64, key string, t Tensor) {
		if f.err == nil && t.Bytes > 0 && !seen[key] {
			seen[key] = true
			f.fail(at, keep.tensor(&t))
			tensors = append(tensors, t)
		}
	}
	for plan := range f.tables(f.field(program, ptePlans)) {
		for value := range f.tables(f.field(plan, pteValues)) {
			if kind := f.field(value, pteValueType); kind > 0 && f.bytes(kind, 1)[0] == pteTensor {
				at := f.follow(f.field(value, pteValue))
				t := f.constant(at, held)
				add(at, t.Name, t)
			}
		}
		number := 0
		for delegate := range f.tables(f.field(plan, pteDelegates)) {
			t, key := f.delegate(program, delegate, number)
			add(delegate, key, t)
			number++
		}
	}
	for named := range f.tables(f.field(program, pteNamed)) {
		t := f.named(program, named)
		add(named, t.Name, t)
	}
	m.Tensors, m.Planned = tensors, mem.Some(int64(f.planned(program)))
	if f.err == nil {
		m.Graph = f.methodGraph(program)
	}
	return f.err
}

// pteValueOf is what an argument of an instruction stands for: values of the graph, by their numbers.
type pteValueOf struct {
	is     []int
	inside bool // its memory is planned
}

// pteWalk walks through what a method does.
type pteWalk struct {
	f      *flatbuffer
	g      *Graph
	count  uses
	values []pteValueOf
	places []ptePlace       // of each value of the graph, where it is planned
	met    []bool           // the values that were there already
	in     map[ptePlace]int // the value that was met last in a place
}

// ptePlace is where the planner puts a value.
type ptePlace struct{ memory, low, high uint32 }

// methodGraph reads what the method computes that has most set aside.
func (f *flatbuffer) methodGraph(program int64) *Graph {
	w, plan, most := &pteWalk{f: f, g: &Graph{}, in: map[ptePlace]int{}}, int64(0), mem.Bytes(-1)
	for one := range f.tables(f.field(program, ptePlans)) {
		w.g.Methods++
		if planned := f.setAside(one); planned > most {
			plan, most = one, planned
		}
	}
	if plan == 0 || f.err != nil {
		return nil
	}
	w.g.Method = f.text(plan, pteMethod)
	w.computedValues(plan)
	w.met = make([]bool, len(w.g.Values))
	w.each(plan, pteInputs, func(v int, _ bool) {
		w.g.Values[v].Given = true
		w.meet(v)
	})
	w.each(plan, pteOutputs, func(v int, _ bool) { w.g.Values[v].Asked = true })
	names := [][]string{pteKernel: w.names(plan, pteOperators), pteDelegate: w.names(plan, pteDelegates)}
	for chain := range f.tables(f.field(plan, pteChains)) {
		for at := range f.tables(f.field(chain, pteInstructions)) {
			w.instruction(at, names)
		}
	}
	if f.err != nil {
		return nil
	}
	return w.g
}

func (w *pteWalk) meet(v int) {
	w.met[v], w.in[w.places[v]] = true, v
}

// instruction adds an operator, if it is a call of a kernel or of a backend.
func (w *pteWalk) instruction(at int64, names [][]string) {
	f := w.f
	kind := f.field(at, pteInstruction)
	if kind == 0 {
		return
	}
	of := int(f.bytes(kind, 1)[0])
	if of != pteKernel && of != pteDelegate {
		return
	}
	call, number := f.follow(f.field(at, pteInstruction+1)), 0
	if field := f.field(call, pteCalled); field > 0 {
		number = int(f.uint32(field))
	}
	o := Operator{Kind: "?"}
	if number < len(names[of]) {
		o.Kind = names[of][number]
	}
	times, planned := map[int]int{}, map[int]bool{}
	var news []int
	w.each(call, pteArguments, func(v int, inside bool) {
		f.fail(at, w.count.count(0, 1))
		if times[v]++; times[v] == 1 && !w.met[v] {
			planned[v], news = inside, append(news, v)
		} else if w.met[v] {
			o.Takes = append(o.Takes, v)
		}
	})
	for _, v := range news {
		w.first(v, of == pteKernel && times[v] == 1, planned[v], &o)
	}
	if f.fail(at, w.count.count(1, 0)); f.err == nil {
		w.g.Operators = append(w.g.Operators, o)
	}
}

// first is for a value that no operator had before. What a kernel makes is an argument and what it returns, so twice
// among its arguments: what it only takes is a view that was planned into the place of another value, or a state that
// the method keeps from call to call.
func (w *pteWalk) first(v int, takenOnly, planned bool, o *Operator) {
	if takenOnly {
		if of, is := w.in[w.places[v]]; is && planned {
			w.g.Values[v].Bytes = mem.Some(0)
			v = of
		} else {
			w.g.Values[v].Kept = true
			w.meet(v)
		}
		o.Takes = append(o.Takes, v)
		return
	}
	w.meet(v)
	o.Makes = append(o.Makes, v)
	if views[o.Kind] && !planned { // it lies in what it is a view of
		w.g.Values[v].Bytes = mem.Some(0)
	}
}

// computedValues reads the tensors of a method that are no constants, and which values of the method they are.
func (w *pteWalk) computedValues(plan int64) {
	f, lists := w.f, map[int]int64{}
	for value := range f.tables(f.field(plan, pteValues)) {
		v, kind := pteValueOf{}, byte(0)
		if field := f.field(value, pteValueType); field > 0 {
			kind = f.bytes(field, 1)[0]
		}
		switch kind {
		case pteTensor:
			v = w.computedTensor(f.follow(f.field(value, pteValue)))
		case pteTensorList, pteOptionalList:
			lists[len(w.values)] = f.follow(f.field(value, pteValue))
		}
		if f.fail(value, w.count.count(0, 1)); f.err != nil {
			return
		}
		w.values = append(w.values, v)
	}
	items := map[int][]int{}
	for at, table := range lists { // they name values behind them too
		w.each(table, 0, func(v int, _ bool) {
			f.fail(table, w.count.count(0, 1))
			items[at] = append(items[at], v)
		})
	}
	for at, is := range items {
		w.values[at] = pteValueOf{is, true}
	}
}

// computedTensor adds a tensor to the values of a graph, unless the file holds it and nothing writes to it.
func (w *pteWalk) computedTensor(at int64) pteValueOf {
	f := w.f
	allocation, held := f.field(at, pteAllocation), uint32(0)
	if field := f.field(at, pteBuffer); field > 0 {
		held = f.uint32(field)
	}
	if held > 0 && allocation == 0 {
		return pteValueOf{}
	}
	kind, dynamic := byte(0), byte(0)
	if field := f.field(at, pteScalar); field > 0 {
		kind = f.bytes(field, 1)[0]
	}
	if field := f.field(at, pteDynamism); field > 0 {
		dynamic = f.bytes(field, 1)[0]
	}
	shape, sizes := f.vectorOf(f.field(at, pteSizes), 4), []int64{}
	for i := int64(0); i < min(shape.n, 16) && f.err == nil; i++ {
		sizes = append(sizes, int64(int32(f.uint32(shape.at+4*i))))
	}
	v := Value{Name: fmt.Sprintf("value %d", len(w.values)), Bytes: sizeOf(pteTypes[kind], sizes), Kept: held > 0}
	if dynamic == pteUnbound {
		v.Bytes = mem.Optional{}
	}
	place := ptePlace{memory: math.MaxUint32, low: uint32(len(w.places))} // of its own
	if allocation > 0 {
		table := f.follow(allocation)
		for number, part := range []*uint32{&place.memory, &place.low, &place.high} {
			*part = 0
			if field := f.field(table, int64(number)); field > 0 {
				*part = f.uint32(field)
			}
		}
	}
	w.g.Values, w.places = append(w.g.Values, v), append(w.places, place)
	return pteValueOf{[]int{len(w.g.Values) - 1}, allocation > 0}
}

// each calls with the values of the graph that a field of a table lists, and whether each is planned; negative numbers
// are left out.
func (w *pteWalk) each(table, field int64, call func(v int, planned bool)) {
	list := w.f.vectorOf(w.f.field(table, field), 4)
	for i := int64(0); i < list.n && w.f.err == nil; i++ {
		n := int(int32(w.f.uint32(list.at + 4*i)))
		if n >= len(w.values) {
			w.f.fail(list.at, fmt.Errorf("value %d, of %d", n, len(w.values)))
			return
		}
		if n >= 0 {
			for _, v := range w.values[n].is {
				call(v, w.values[n].inside)
			}
		}
	}
}

// names are those of a plan's operators, as aten::mm.out, or of its backends.
func (w *pteWalk) names(plan, field int64) (names []string) {
	f := w.f
	for at := range f.tables(f.field(plan, field)) {
		name := f.text(at, 0)
		if field == pteOperators {
			if overload := f.text(at, 1); overload != "" {
				name += "." + overload
			}
		}
		if f.fail(at, w.count.count(1, 0)); f.err != nil {
			return names
		}
		names = append(names, name)
	}
	return names
}
