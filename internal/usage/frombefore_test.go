package usage

import (
	"testing"

	"hightide/internal/mem"
)

// TestFromBefore: what was there before a trace is called parameters where each block has a gradient of its size, and
// else by no name of a purpose.
func TestFromBefore(t *testing.T) {
	sizes := []mem.Bytes{mem.MiB, 3 * mem.MiB, 5 * mem.MiB, 7 * mem.MiB}
	for name, c := range map[string]struct {
		blocks    int // from before, for each parameter
		gradients bool
		category  string
		times     int
	}{
		"parameters": {1, true, "parameters", 1}, "with a momentum": {2, true, BeforeTrace, 2},
		"with the states of Adam": {3, true, BeforeTrace, 3},
		"inference":               {1, false, BeforeTrace, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var m made
			var gradients []uint64
			for range 2 {
				m.forward(3, true)
				for i, a := range gradients { // as zero_grad does
					m.free(a, sizes[i])
				}
				gradients = nil
				for i := range sizes {
					m.free(m.alloc(0, mem.MiB), mem.MiB)
					if c.gradients {
						gradients = append(gradients, m.alloc(0, sizes[i]))
					}
				}
			}
			m.forward(3, true) // the last gradients stay
			for n := range c.blocks {
				for i, size := range sizes {
					m.free(uint64(1<<50+(n*100+i)<<30), size)
				}
			}
			d := m.device()
			sorter := NewCategories(d, nil)
			before := 0
			for i, from := range d.From {
				if from >= 0 {
					continue
				}
				before++
				if got := sorter.Of(i); got != c.category {
					t.Fatalf("%d bytes are %s, want %s", d.Bytes[i], got, c.category)
				}
			}
			if got := sorter.FromBefore(); before != c.blocks*len(sizes) || got.Times() != c.times ||
				got.Bytes != mem.Bytes(c.blocks)*16*mem.MiB {
				t.Errorf("%d blocks: %+v, %d times", before, got, got.Times())
			}
		})
	}
}
