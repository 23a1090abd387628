package analyze

import (
	"math/rand/v2"
	"os"
	"testing"

	"hightide/internal/intake"
	"hightide/internal/mem"
)

// Real traces end exactly in the state that was recorded beside them, block by block, and their peak
// is what adding up every moment gives.
func TestBooksEndInTheFinalState(t *testing.T) {
	for _, name := range []string{"h100-lm-ctx128-train-step.pickle", "h100-lm-ctx256-forward-bf16.pickle"} {
		s := openSnapshot(t, name)
		b := newBooks(s, 0)
		totals := s.Totals(0)
		want := levels{totals.Allocated, totals.Active, totals.Reserved, totals.Requested}
		if b.end != want || b.unplaced != 0 || b.strange != 0 {
			t.Errorf("%s: ends with %+v, want %+v; %d unplaced, %d strange", name, b.end, want, b.unplaced, b.strange)
		}
		sizes := map[uint64]mem.Bytes{}
		b.alive(b.trace.Len()-1, func(l *life) { sizes[l.address] = l.size })
		for _, segment := range s.Segments {
			for _, block := range segment.Blocks {
				if block.State == mem.BlockAllocated && sizes[block.Address] != block.Size {
					t.Fatalf("%s: block %#x has %d bytes, want %d", name, block.Address, sizes[block.Address], block.Size)
				}
			}
		}
		var high mem.Bytes
		for range 300 {
			at := rand.IntN(b.trace.Len())
			var sum mem.Bytes
			b.alive(at, func(l *life) { sum += l.size })
			if got := b.levelsAt(at).allocated; got != sum {
				t.Fatalf("%s: event %d has %d allocated, its blocks %d", name, at, got, sum)
			}
			high = max(high, sum)
		}
		if high > b.peak.allocated || b.levelsAt(b.peakAt) != b.peak {
			t.Errorf("%s: peak %+v at %d, levels there %+v, random moments up to %d", name, b.peak, b.peakAt, b.levelsAt(b.peakAt), high)
		}
		t.Logf("%s: begin %+v peak %+v at %d", name, b.begin, b.peak, b.peakAt)
	}
}

func openSnapshot(t testing.TB, name string) *mem.AllocatorSnapshot {
	t.Helper()
	file, err := os.Open("../../testdata/real/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s, err := intake.Torch(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBlameAddsUpToThePeak(t *testing.T) {
	for _, name := range []string{"h100-lm-ctx128-train-step.pickle", "h100-lm-ctx256-forward-bf16.pickle", "mosaic-synthetic.pickle"} {
		s := openSnapshot(t, name)
		for _, by := range Groupings {
			a, err := ExplainDevice(s, 0, name, ExplainOptions{By: by})
			if err != nil {
				t.Fatal(err)
			}
			var sum mem.Bytes
			for _, g := range a.Blame {
				sum += g.Bytes
			}
			if sum != a.Peak.Allocated {
				t.Errorf("%s by %s: groups have %d bytes, the peak %d", name, by, sum, a.Peak.Allocated)
			}
			if by == "category" {
				for _, g := range a.Blame {
					t.Log(name, g.Name, g.Bytes, g.Blocks)
				}
			}
		}
	}
}
