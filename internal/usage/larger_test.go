package usage

import (
	"fmt"
	"testing"

	"hightide/internal/mem"
)

// TestLarger: a line that replaces its block by a larger one in each step gets larger. One that keeps its blocks is a
// growth and none of these, and one whose blocks come and go alike is neither.
func TestLarger(t *testing.T) {
	const steps, each = 20, 10
	h := &History{Stacks: &mem.StackTable{}, Moments: steps * each}
	span := func(file string, bytes mem.Bytes, from, to int) {
		stack := h.Stacks.Add([]uint32{h.Stacks.Location(mem.Location{File: file, Function: "f", Line: 1})})
		h.Stack, h.Bytes = append(h.Stack, stack), append(h.Bytes, bytes)
		h.From, h.To = append(h.From, int32(from)), append(h.To, int32(to))
	}
	var bins Bins
	for k := range steps {
		at := k * each
		span("/a/cache.py", mem.Bytes(k+1)*mem.MiB, at+1, at+each+2) // the next one is made before it is freed
		span("/a/leak.py", mem.MiB, at+2, steps*each)
		span("/a/steady.py", 3*mem.MiB, at+3, at+8)
		span("/a/across.py", 3*mem.MiB, at+4, at+each+1)
		bins.Stretches, bins.X = append(bins.Stretches, Stretch{at, at + each - 1}), append(bins.X, float64(k))
	}
	bins.Whole = true
	found := h.Larger(NewNames(h.Stacks), bins, float64(mem.MiB), nil)
	var said []string
	for _, g := range found {
		said = append(said, fmt.Sprintf("%s %.0f %v", g.Site.Name, g.Slope, g.Held))
	}
	if got, want := fmt.Sprint(said), fmt.Sprintf("[cache.py:1 %d 20.0 MiB]", int(mem.MiB)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if grown := h.Growing(NewNames(h.Stacks), bins, float64(mem.MiB), Trend{}, nil); len(grown) != 1 || grown[0].Site.Name != "leak.py:1" {
		t.Errorf("%+v", grown)
	}
}
