package replay

import (
	"path/filepath"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/testkit"
)

// TestReplayIsExactOnRealTraces: every address and every segment of the traces of real H100s.
func TestReplayIsExactOnRealTraces(t *testing.T) {
	files, err := filepath.Glob("../../testdata/real/h100-*.pickle")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			snapshot := testkit.Snapshot(t, "real/"+filepath.Base(file))
			trace := allocator.TraceOf(snapshot, 0)
			out, err := allocator.Verify(snapshot, trace, allocator.Settings{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d addresses, %d segments, peak reserved %v", out.AddressesTotal, out.SegmentsTotal, out.Usage.PeakReserved)
			if out.AddressesTotal == 0 || !out.Exact() || out.First != "" {
				t.Errorf("%d of %d addresses and %d of %d segments are exact: %s", out.AddressesExact, out.AddressesTotal, out.SegmentsExact, out.SegmentsTotal, out.First)
			}
			p, err := allocator.Compile(snapshot, trace, allocator.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			setup := allocator.Setup{Rules: allocator.RulesOf(2, 6)}
			free := allocator.Run(p, setup)
			if free.OOM != nil || free.Usage.PeakAllocated != out.Usage.PeakAllocated || free.Usage.PeakReserved != out.Usage.PeakReserved {
				t.Errorf("without an end: %+v, recorded %+v", free, out.Usage)
			}
			setup.Capacity = out.Usage.PeakAllocated / 2
			half := allocator.Run(p, setup)
			if half.OOM == nil || half.Usage.PeakReserved > setup.Capacity {
				t.Errorf("on half of what it allocates: %+v", half)
			}
		})
	}
}
