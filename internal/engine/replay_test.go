package engine

import (
	"path/filepath"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// TestReplayIsExactOnRealTraces: every address and every segment of the traces of real H100s.
func TestReplayIsExactOnRealTraces(t *testing.T) {
	files, err := filepath.Glob("../../testdata/real/h100-*.pickle")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			document, err := (&Engine{}).Document(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := allocator.NewReplay(document.Snapshot, 0)
			if err != nil {
				t.Fatal(err)
			}
			out := r.Verify(allocator.Settings{}, allocator.RulesOf(2, 6))
			t.Logf("%d addresses, %d segments, peak reserved %v", out.Addresses, out.Segments, out.PeakReserved)
			if out.Addresses == 0 || out.AddressesExact != out.Addresses || out.SegmentsExact != out.Segments {
				t.Errorf("%d of %d addresses and %d of %d segments are exact", out.AddressesExact, out.Addresses, out.SegmentsExact, out.Segments)
			}
			free := r.Run(allocator.Settings{}, allocator.RulesOf(2, 6), 0, false)
			if free.OOM >= 0 || free.PeakAllocated != out.PeakAllocated {
				t.Errorf("without an end: OOM at %d, peak allocated %v, recorded %v", free.OOM, free.PeakAllocated, out.PeakAllocated)
			}
			half := r.Run(allocator.Settings{}, allocator.RulesOf(2, 6), out.PeakAllocated/2, false)
			if half.OOM < 0 || half.PeakReserved > out.PeakAllocated/2+2*mem.MiB {
				t.Errorf("on half of what it allocates: OOM at %d, reserved %v", half.OOM, half.PeakReserved)
			}
		})
	}
}
