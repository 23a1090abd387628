package profiler

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Which dimensions of a program's values are of one length, whatever that length is, follows from what its
// instructions do: the rows of a product are those of its left operand.
//
//	hloCode ──▶ a node for each dimension ──▶ joined where an instruction takes one length for both
//	                                      └─▶ splits: dimensions that are folded into others, as batch and time
//
// What is made of scalars alone and is taken several times, as zeros, joins nothing: XLA makes equal ones once, whatever
// they are for. It is in filled.
type hloDims struct {
	code   map[uint64]*hloCode
	parts  map[uint64]*hloPart
	entry  *hloPart
	up     []int32  // of a node, one that it is joined to
	length []uint64 // of a node
	walked []bool   // of a node: a loop takes one after the other
	filled map[uint64]map[hloTaken]*hloShape
	splits []hloSplit
	sums   []hloSum
}

// hloTaken is an operand of an instruction.
type hloTaken struct {
	by uint64
	at int
}

// hloSplit are dimensions whose lengths have the same product.
type hloSplit [2][]int

// hloSum is a dimension that several others are put together in.
type hloSum struct {
	whole int
	parts []int
}

// dimsOf joins the dimensions of a module.
func dimsOf(parts map[uint64]*hloPart, entry uint64) *hloDims {
	d := &hloDims{parts: parts, entry: parts[entry], code: map[uint64]*hloCode{},
		filled: map[uint64]map[hloTaken]*hloShape{}}
	for _, p := range parts {
		for _, c := range p.codes {
			d.code[c.id] = c
			for _, leaf := range c.shape.leaves() {
				d.place(leaf)
			}
			if c.opcode == "parameter" && c.number < uint64(len(p.codes)) {
				for uint64(len(p.parameters)) <= c.number {
					p.parameters = append(p.parameters, nil)
				}
				p.parameters[c.number] = c
			}
		}
	}
	taken := map[uint64]int{}
	for _, p := range parts {
		for _, c := range p.codes {
			for _, id := range c.operands {
				taken[id]++
			}
		}
	}
	for id, c := range d.code {
		if taken[id] > 1 && c.opcode != "parameter" && !c.shape.tuple &&
			!slices.ContainsFunc(c.operands, func(id uint64) bool {
				of := d.code[id]
				return of == nil || of.shape.tuple || len(of.shape.dims) > 0
			}) {
			d.filled[id] = map[hloTaken]*hloShape{}
		}
	}
	for _, p := range parts {
		for _, c := range p.codes {
			d.follow(c)
		}
	}
	return d
}

// place gives nodes to the dimensions of an array.
func (d *hloDims) place(leaf *hloShape) {
	leaf.first = len(d.up)
	for _, n := range leaf.dims {
		d.up, d.length, d.walked = append(d.up, int32(len(d.up))), append(d.length, n), append(d.walked, false)
	}
}

func (d *hloDims) find(node int) int {
	for int(d.up[node]) != node {
		d.up[node] = d.up[d.up[node]]
		node = int(d.up[node])
	}
	return node
}

// join says that two dimensions are of one length. Those of different lengths are not, and not told apart by a caller.
func (d *hloDims) join(a *hloShape, i uint64, b *hloShape, j uint64) {
	if i < uint64(len(a.dims)) && j < uint64(len(b.dims)) && a.dims[i] == b.dims[j] && a.dims[i] > 1 {
		d.up[d.find(b.first+int(j))] = int32(d.find(a.first + int(i)))
	}
}

// alike joins the dimensions of two arrays in their order.
func (d *hloDims) alike(a, b *hloShape) {
	if a != nil && b != nil && len(a.dims) == len(b.dims) {
		for i := range uint64(len(a.dims)) {
			d.join(a, i, b, i)
		}
	}
}

func (d *hloDims) all(a, b []*hloShape) {
	if len(a) == len(b) {
		for i := range a {
			d.alike(a[i], b[i])
		}
	}
}

func (d *hloDims) same(a, b *hloShape) {
	if a != nil && b != nil {
		d.all(a.leaves(), b.leaves())
	}
}

// operand is the shape of what an instruction takes; nil: it takes fewer.
func (d *hloDims) operand(c *hloCode, i int) *hloShape {
	if i < len(c.operands) {
		from := d.code[c.operands[i]]
		if from == nil {
			return nil
		}
		own, filled := d.filled[from.id]
		if !filled {
			return &from.shape
		}
		as := hloTaken{c.id, i}
		if own[as] == nil {
			one := from.shape
			d.place(&one)
			own[as] = &one
		}
		return own[as]
	}
	return nil
}

// operands are the arrays of all that an instruction takes.
func (d *hloDims) operands(c *hloCode) (all []*hloShape) {
	for i := range c.operands {
		if s := d.operand(c, i); s != nil {
			all = append(all, s.leaves()...)
		}
	}
	return all
}

// follow joins what an instruction takes and makes.
func (d *hloDims) follow(c *hloCode) {
	first := d.operand(c, 0)
	out := &c.shape
	if first == nil {
		return
	}
	switch strings.TrimSuffix(c.opcode, "-start") {
	case "tuple":
		d.all(out.leaves(), d.operands(c))
	case "get-tuple-element":
		d.same(out, first.part(c.index))
	case "while", "call", "fusion", "async", "conditional", "map":
		d.calls(c)
	case "copy-done":
		d.same(out, first.part(0))
	case "async-done", "async-update":
		d.same(out.part(), first.part(1))
	case "broadcast":
		for i, dim := range c.dims {
			d.join(out, dim, first, uint64(i))
		}
	case "transpose":
		for i, dim := range c.dims {
			d.join(out, uint64(i), first, dim)
		}
	case "reshape":
		d.fold(out, out.logical(), first, first.logical())
	case "bitcast":
		d.fold(out, out.inMemory(), first, first.inMemory())
	case "reduce":
		d.reduce(c)
	case "dot":
		d.product(out, first, d.operand(c, 1), c.dot)
	case "convolution":
		d.convolved(first, d.operand(c, 1), out, c.window)
	case "gather":
		d.gather(c)
	case "scatter":
		d.scatter(c)
	case "custom-call":
		d.custom(c)
	default:
		d.elementwise(c)
	}
}

// elementwise are also slices, windows and what puts arrays together: what has its length on both sides is kept.
func (d *hloDims) elementwise(c *hloCode) {
	outs := c.shape.leaves()
	ins := d.operands(c)
	for i, in := range ins {
		switch {
		case len(outs) == 1:
			d.alike(outs[0], in)
		case i < len(outs):
			d.alike(outs[i], in)
		}
	}
	switch {
	case len(ins) == 0 || len(outs) == 0:
	case c.opcode == "concatenate" && len(c.dims) == 1 && c.dims[0] < uint64(len(outs[0].dims)):
		s := hloSum{whole: outs[0].first + int(c.dims[0])}
		for _, in := range ins {
			s.parts = append(s.parts, in.first+int(c.dims[0]))
		}
		d.sums = append(d.sums, s)
	case c.opcode == "sort":
		for _, in := range ins {
			d.alike(ins[0], in)
		}
	case c.opcode == "dynamic-slice" && len(ins[0].dims) == len(outs[0].dims):
		d.walks(ins[0], outs[0])
	case c.opcode == "dynamic-update-slice" && len(ins) > 1 && len(ins[0].dims) == len(ins[1].dims):
		d.walks(ins[0], ins[1])
	}
}

func (d *hloDims) walks(whole, one *hloShape) {
	for i, n := range one.dims {
		if n == 1 && whole.dims[i] > 1 {
			d.walked[whole.first+i] = true
		}
	}
}

// calls joins operands with the parameters of what is called, and its root with the result.
func (d *hloDims) calls(c *hloCode) {
	out := &c.shape
	for i, id := range c.called {
		p := d.parts[id]
		if p == nil {
			continue
		}
		from := 0 // the operand of the first parameter
		if c.opcode == "conditional" {
			from = i + 1
		}
		for number, parameter := range p.parameters {
			if in := d.operand(c, from+number); parameter != nil && in != nil {
				d.same(&parameter.shape, in)
			}
		}
		root := d.code[p.root]
		switch {
		case root == nil:
		case c.opcode == "async-start":
			d.same(out.part(1), &root.shape)
			if taken := out.part(0); taken != nil {
				d.all(taken.leaves(), d.operands(c))
			}
		default:
			d.same(out, &root.shape)
		}
	}
	if c.opcode == "while" {
		d.same(out, d.operand(c, 0))
	}
}

// fold joins two orders of dimensions that stand for the same elements, where they are the same, and notes where
// several are folded into one.
func (d *hloDims) fold(a *hloShape, inA []int, b *hloShape, inB []int) {
	inA = slices.DeleteFunc(inA, func(i int) bool { return a.dims[i] == 1 })
	inB = slices.DeleteFunc(inB, func(i int) bool { return b.dims[i] == 1 })
	for len(inA) > 0 && len(inB) > 0 {
		i, j := 1, 1
		x, y := a.dims[inA[0]], b.dims[inB[0]]
		for x != y {
			switch {
			case x < y && i < len(inA):
				x *= a.dims[inA[i]]
				i++
			case y < x && j < len(inB):
				y *= b.dims[inB[j]]
				j++
			default: // of other elements
				return
			}
		}
		if i == 1 && j == 1 {
			d.join(a, uint64(inA[0]), b, uint64(inB[0]))
		} else {
			d.splits = append(d.splits, hloSplit{nodes(a, inA[:i]), nodes(b, inB[:j])})
		}
		inA, inB = inA[i:], inB[j:]
	}
}

func nodes(s *hloShape, dims []int) (all []int) {
	for _, i := range dims {
		all = append(all, s.first+i)
	}
	return all
}

func (d *hloDims) reduce(c *hloCode) {
	outs, ins := c.shape.leaves(), d.operands(c)
	for k := range min(len(outs), len(ins)/2) {
		d.alike(ins[0], ins[k])
		to := uint64(0)
		for i := range uint64(len(ins[k].dims)) {
			if !slices.Contains(c.dims, i) {
				d.join(outs[k], to, ins[k], i)
				to++
			}
		}
	}
}

// product: what is summed over is alike on both sides; the result has the batch, then what is left of each side.
func (d *hloDims) product(out, a, b *hloShape, by hloNumbers) {
	if out == nil || a == nil || b == nil {
		return
	}
	for i := range min(len(by[1]), len(by[2])) {
		d.join(a, by[1][i], b, by[2][i])
	}
	to := uint64(0)
	for i := range min(len(by[3]), len(by[4])) {
		d.join(a, by[3][i], b, by[4][i])
		d.join(out, to, a, by[3][i])
		to++
	}
	for _, side := range []struct {
		of           *hloShape
		summed, both []uint64
	}{{a, by[1], by[3]}, {b, by[2], by[4]}} {
		for i := range uint64(len(side.of.dims)) {
			if !slices.Contains(side.summed, i) && !slices.Contains(side.both, i) {
				d.join(out, to, side.of, i)
				to++
			}
		}
	}
}

func (d *hloDims) convolved(in, kernel, out *hloShape, by hloNumbers) {
	if in == nil || kernel == nil || out == nil {
		return
	}
	d.join(out, by.one(9), in, by.one(7))
	d.join(out, by.one(10), kernel, by.one(4))
	d.join(in, by.one(8), kernel, by.one(3))
}

// gather: of each place that the indices name, a slice of the operand.
func (d *hloDims) gather(c *hloCode) {
	table, indices := d.operand(c, 0), d.operand(c, 1)
	if table == nil || indices == nil {
		return
	}
	var kept []uint64 // of the table
	for i := range uint64(len(table.dims)) {
		if !slices.Contains(c.picks[2], i) && !slices.Contains(c.picks[5], i) {
			kept = append(kept, i)
		}
	}
	d.picked(&c.shape, c.picks[1], table, kept, indices, c.picks.one(4))
}

func (d *hloDims) scatter(c *hloCode) {
	ins, outs := d.operands(c), c.shape.leaves()
	n := len(outs)
	if len(ins) != 2*n+1 {
		return
	}
	for k := range outs {
		d.alike(outs[k], ins[k])
		var kept []uint64
		for i := range uint64(len(ins[k].dims)) {
			if !slices.Contains(c.places[2], i) && !slices.Contains(c.places[5], i) {
				kept = append(kept, i)
			}
		}
		d.picked(ins[n+1+k], c.places[1], ins[k], kept, ins[n], c.places.one(4))
	}
}

// picked joins slices of a table with the table, by their own dimensions, and with what says where they are from.
func (d *hloDims) picked(out *hloShape, own []uint64, table *hloShape, kept []uint64, indices *hloShape,
	vector uint64) {
	of, at := 0, uint64(0)
	for i := range uint64(len(out.dims)) {
		if slices.Contains(own, i) {
			if of < len(kept) {
				d.join(out, i, table, kept[of])
			}
			of++
			continue
		}
		if at == vector {
			at++
		}
		d.join(out, i, indices, at)
		at++
	}
}

// products are the names of what multiplies matrices.
var products = regexp.MustCompile("cublas|gemm|matmul")

// custom knows products and convolutions of NVIDIA's libraries. Of others, arrays of the same shape are taken as alike.
func (d *hloDims) custom(c *hloCode) {
	outs, ins := c.shape.leaves(), d.operands(c)
	if len(outs) == 0 || len(ins) == 0 {
		return
	}
	switch {
	case products.MatchString(c.target):
		if by := c.productOf(); by != nil && len(ins) > 1 {
			d.product(outs[0], ins[0], ins[1], by)
			ins = ins[2:]
		}
	case len(c.window) > 0 && len(ins) > 1:
		switch a, b, out := ins[0], ins[1], outs[0]; {
		case strings.HasSuffix(c.target, "BackwardInput"):
			d.convolved(out, b, a, c.window)
		case strings.HasSuffix(c.target, "BackwardFilter"):
			d.convolved(a, out, b, c.window)
		default:
			d.convolved(a, b, out, c.window)
		}
		ins = ins[2:]
	}
	for _, in := range ins {
		for _, out := range outs {
			if slices.Equal(in.dims, out.dims) {
				d.alike(out, in)
			}
		}
	}
}

// productOf is how a product of a library takes dimensions, as hloCode.dot says of others.
func (c *hloCode) productOf() hloNumbers {
	var config struct {
		Gemm struct {
			Numbers struct {
				LhsSummed []string `json:"lhs_contracting_dimensions"`
				RhsSummed []string `json:"rhs_contracting_dimensions"`
				LhsBatch  []string `json:"lhs_batch_dimensions"`
				RhsBatch  []string `json:"rhs_batch_dimensions"`
			} `json:"dot_dimension_numbers"`
		} `json:"gemm_backend_config"`
	}
	if json.Unmarshal(c.config, &config) != nil {
		return nil
	}
	by := hloNumbers{}
	of := &config.Gemm.Numbers
	for i, list := range [][]string{of.LhsSummed, of.RhsSummed, of.LhsBatch, of.RhsBatch} {
		for _, text := range list {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return nil
			}
			by[i+1] = append(by[i+1], n)
		}
	}
	return by
}
