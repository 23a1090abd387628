package profiler

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// hloDeep is a step of so many layers, as XLA writes it: each folds what it is given into rows, multiplies them with a
// weight of its own, unfolds the product, and has a new weight come out.
func hloDeep(layers int) []byte {
	varints := func(all ...uint64) (data []byte) {
		for _, n := range all {
			data = binary.AppendUvarint(data, n)
		}
		return data
	}
	shape := func(dims ...uint64) []byte { return part(3, number(2, 11), part(3, varints(dims...))) }
	instruction := func(id uint64, opcode string, shape []byte, more ...[]byte) []byte {
		return part(2, part(2, []byte(opcode)), shape, number(35, id), slices.Concat(more...))
	}
	takes := func(ids ...uint64) []byte { return part(36, varints(ids...)) }
	product := part(30, part(1, []byte{1}), part(2, []byte{0}))
	buffer := func(id, size uint64) []byte {
		return part(1, number(1, id), number(2, size), part(3, number(4, id)))
	}
	holds := func(id uint64) []byte { return part(9, number(1, id)) }
	event := func(kind, id uint64) []byte { return part(1, number(1, kind), number(2, id)) }
	weight, root := func(i int) uint64 { return uint64(10 + 10*i) }, uint64(10+10*layers)
	code, sizes, places, whole, results, moves := instruction(2, "parameter", shape(8, 4, 16), number(9, uint64(layers)),
		part(7, part(2, []byte("x")))), buffer(2, 2048), part(3, number(2, 2048), number(5, 1), holds(2)), []byte(nil),
		[]uint64(nil), []byte(nil)
	outs, donated, at := []byte(nil), []byte(nil), uint64(2)
	for i := range layers {
		w := weight(i)
		code = slices.Concat(code,
			instruction(w, "parameter", shape(16, 16), number(9, uint64(i)), part(7, part(2, fmt.Appendf(nil, "w%d", i)))),
			instruction(w+1, "reshape", shape(32, 16), takes(at)),
			instruction(w+2, "dot", shape(32, 16), takes(w+1, w), product),
			instruction(w+3, "reshape", shape(8, 4, 16), takes(w+2)),
			instruction(w+4, "add", shape(16, 16), takes(w, w)))
		at = w + 3
		for _, temporary := range []uint64{w + 1, w + 2, w + 3} {
			sizes = append(sizes, buffer(temporary, 2048)...)
			whole, moves = append(whole, holds(temporary)...), append(moves, event(hloAlloc, temporary)...)
		}
		moves = append(moves, event(hloFree, w+1)...)
		donated = append(donated, part(1, part(1, varints(uint64(i))), number(2, uint64(i)))...)
		sizes = slices.Concat(sizes, buffer(w, 1024), buffer(w+4, 1024))
		places = slices.Concat(places, part(3, number(2, 1024), number(5, 1), holds(w)),
			part(3, number(2, 1024), number(7, 1), holds(w+4)))
		outs, results = append(outs, part(4, number(2, 11), part(3, []byte{16, 16}))...), append(results, w+4)
	}
	code = append(code, part(2, part(2, []byte("tuple")), part(3, number(2, 13), outs), number(35, root), takes(results...))...)
	return slices.Concat(part(1, part(1, []byte("jit_step")), part(2, []byte("main")),
		part(3, number(5, 1), number(6, root), code), number(6, 1), part(8, donated)),
		part(3, sizes, places, part(3, number(2, uint64(2048*(2*layers+1))), whole), part(4, moves)))
}

// TestDeep: the batch is followed through a thousand layers, in each of which it is folded and unfolded.
func TestDeep(t *testing.T) {
	const layers = 1000
	p, err := ReadHLO(bytes.NewReader(hloDeep(layers)))
	if err != nil {
		t.Fatal(err)
	}
	weights, batch := mem.Bytes(2*1024*layers), mem.Bytes(2048+2048*2*layers+2048)
	var whole mem.Bytes
	for _, sample := range p.Samples {
		whole += mem.Bytes(sample.Values[p.Default])
	}
	if whole != weights+batch || len(p.Halves) != 1 {
		t.Fatalf("%v, not %v; %+v", whole, weights+batch, p.Halves)
	}
	h, half := p.Halves[0], weights+batch/2
	if h.Batch != 8 || !slices.Equal(h.Arguments, []string{"x"}) || h.High < half || h.Low > half {
		t.Errorf("%+v, not about %v", h, half)
	}
}

func BenchmarkDeep(b *testing.B) {
	data := hloDeep(4000)
	for b.Loop() {
		if _, err := ReadHLO(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
