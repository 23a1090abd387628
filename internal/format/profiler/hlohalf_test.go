package profiler

import (
	"bytes"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// hloStep is a step as XLA writes it: of x (8 x 4) and the weights w (4 x 4), which come out again. The product of
// both is folded into 32; of another array of 8 x 4 the instructions do not say where it is from.
func hloStep() []byte {
	shape := func(dims ...byte) []byte { return slices.Concat(part(3, number(2, 11), part(3, dims))) }
	instruction := func(id uint64, opcode string, shape []byte, more ...[]byte) []byte {
		return part(2, part(2, []byte(opcode)), shape, number(35, id), slices.Concat(more...))
	}
	takes := func(ids ...byte) []byte { return part(36, ids) }
	named := func(name string) []byte { return part(7, part(2, []byte(name))) }
	entry := part(3, number(5, 1), number(6, 19),
		instruction(10, "parameter", shape(8, 4), number(9, 0), named("x")),
		instruction(11, "parameter", shape(4, 4), number(9, 1), named("w")),
		instruction(12, "dot", shape(8, 4), takes(10, 11), part(30, part(1, []byte{1}), part(2, []byte{0}))),
		instruction(13, "reshape", shape(32), takes(12)),
		instruction(14, "negate", shape(32), takes(13)),
		instruction(15, "iota", shape(8, 4)),
		instruction(16, "add", shape(4, 4), takes(11, 11)),
		part(2, part(2, []byte("tuple")), part(3, number(2, 13), part(4, number(2, 11), part(3, []byte{4, 4}))),
			number(35, 19), takes(16)))
	buffer := func(id, size, by uint64) []byte {
		return part(1, number(1, id), number(2, size), part(3, number(4, by)))
	}
	holds := func(id uint64) []byte { return part(9, number(1, id)) }
	event := func(kind, id uint64) []byte { return part(1, number(1, kind), number(2, id)) }
	return slices.Concat(part(1, part(1, []byte("jit_step")), part(2, []byte("main")), entry, number(6, 1)),
		part(3, buffer(1, 12800, 10), buffer(2, 6400, 11), buffer(3, 12800, 12), buffer(4, 12800, 14), buffer(5, 12800, 15),
			buffer(6, 6400, 16),
			part(3, number(2, 12800), number(5, 1), holds(1)), part(3, number(2, 6400), number(5, 1), holds(2)),
			part(3, number(2, 6400), number(7, 1), holds(6)), part(3, number(2, 38400), holds(3), holds(4), holds(5)),
			part(4, event(hloAlloc, 3), event(hloAlloc, 4), event(hloAlloc, 5), event(hloFree, 3), event(hloFree, 4),
				event(hloFree, 5))))
}

// TestHalves: x is the batch, w is not, as it comes out again. Of the temporaries two follow from x by what is done
// with it, and the third is halved in the lower figure alone.
func TestHalves(t *testing.T) {
	p, err := ReadHLO(bytes.NewReader(hloStep()))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Halves) != 1 {
		t.Fatalf("%+v", p.Halves)
	}
	low, high := mem.Bytes(6400+2*6400+3*6400), mem.Bytes(6400+2*6400+2*6400+12800)
	h := p.Halves[0]
	if h.Batch != 8 || !slices.Equal(h.Arguments, []string{"x"}) || h.Low != low-low/anewBelow ||
		h.High != high+high/anewAbove {
		t.Errorf("%+v, not %v and %v", h, low-low/anewBelow, high+high/anewAbove)
	}
}

// TestFolded: of two dimensions that are folded into one, the one that must have the batch is found in either direction;
// where nothing says which of two has it, it is the outermost or the innermost.
func TestFolded(t *testing.T) {
	fold := func(from, to []uint64) *hloDims {
		codes := []*hloCode{{id: 1, opcode: "parameter", shape: hloShape{dims: from}},
			{id: 2, opcode: "reshape", shape: hloShape{dims: to}, operands: []uint64{1}}}
		return dimsOf(map[uint64]*hloPart{1: {codes: codes, root: 2}}, 1)
	}
	for _, test := range []struct {
		from, to             []uint64
		batch                uint64
		outermost, innermost []uint64 // how often the batch is in the result
		guessed              bool
	}{
		{[]uint64{6, 5}, []uint64{30}, 6, []uint64{1}, []uint64{1}, false},
		{[]uint64{6, 5}, []uint64{6, 1, 5}, 6, []uint64{1, 0, 0}, []uint64{1, 0, 0}, false},
		{[]uint64{12, 5}, []uint64{4, 3, 5}, 12, []uint64{1, 0, 0}, []uint64{0, 1, 0}, true},
	} {
		d := fold(test.from, test.to)
		b := hloBatch{length: test.batch, classes: map[int]bool{d.find(0): true}}
		for _, outermost := range []bool{true, false} {
			s := d.spread(&b, []hloArgument{{shape: &d.code[1].shape}}, outermost)
			var got []uint64
			for i := range test.to {
				has := uint64(0)
				if s.scaled[d.find(len(test.from)+i)] {
					has = 1
				}
				got = append(got, has)
			}
			if want := map[bool][]uint64{true: test.outermost, false: test.innermost}[outermost]; !slices.Equal(got, want) ||
				s.guessed != test.guessed {
				t.Errorf("%v as %v, outermost %v: %v, guessed %v", test.from, test.to, outermost, got, s.guessed)
			}
		}
	}
}
