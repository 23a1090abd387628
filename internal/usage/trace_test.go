package usage

import (
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// Real traces end exactly in the state that was recorded beside them, block by block, and their peak
// is what adding up every moment gives.
func TestHistoryEndsInTheFinalState(t *testing.T) {
	for _, name := range []string{"h100-lm-ctx128-train-step.pickle", "h100-lm-ctx256-forward-bf16.pickle"} {
		s := testkit.Snapshot(t, "real/"+name)
		d := FromTrace(s, 0, Whole)
		totals := s.Totals(0)
		want := Levels{totals.Allocated, totals.Active, totals.Reserved, totals.Requested}
		if d.End != want || d.Unplaced != 0 || d.Contradictions != 0 {
			t.Errorf("%s: ends with %+v, want %+v; %d unplaced, %d contradictions", name, d.End, want, d.Unplaced,
				d.Contradictions)
		}
		sizes := map[uint64]mem.Bytes{}
		d.Each(d.Moments-1, func(n int) { sizes[d.AddressOf(n)] = d.Bytes[n] })
		for _, segment := range s.Segments {
			for _, block := range segment.Blocks {
				if block.State == mem.BlockAllocated && sizes[block.Address] != block.Size {
					t.Fatalf("%s: block %#x has %d bytes, want %d", name, block.Address, sizes[block.Address], block.Size)
				}
			}
		}
		var high mem.Bytes
		for range 300 {
			at := rand.IntN(d.Moments)
			var sum mem.Bytes
			for _, use := range d.Held(at) {
				sum += use.Bytes
			}
			if got := d.LevelsAt(at).Allocated; got != sum {
				t.Fatalf("%s: event %d has %d allocated, its blocks %d", name, at, got, sum)
			}
			high = max(high, sum)
		}
		if at := d.LevelsAt(d.Peak.Moment); high > d.Peak.Bytes || at != d.PeakLevels || at.Allocated != d.Peak.Bytes {
			t.Errorf("%s: peak %+v %+v, levels there %+v, random moments up to %d", name, d.Peak, d.PeakLevels, at, high)
		}
	}
}

// TestRingThatBeginsAmidstAFree: a block whose free the program had asked for before the ring begins is held by
// nobody in it. That is so though its memory is not free before the free is complete.
func TestRingThatBeginsAmidstAFree(t *testing.T) {
	var m made
	m.event(mem.ActionFreeCompleted, 1<<50, 7*mem.MiB, 0)
	m.free(m.alloc(0, mem.MiB), mem.MiB)
	d := m.device()
	if d.Begin.Allocated != 0 || d.Begin.Active != 7*mem.MiB || d.PeakLevels.Allocated != mem.MiB {
		t.Errorf("at the beginning %+v, at the peak %+v", d.Begin, d.PeakLevels)
	}
}
