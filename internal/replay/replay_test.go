package replay

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
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
				t.Errorf("%d of %d addresses and %d of %d segments are exact: %s", out.AddressesExact, out.AddressesTotal,
					out.SegmentsExact, out.SegmentsTotal, out.First)
			}
			p, err := allocator.Compile(snapshot, trace, allocator.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			setup := allocator.Setup{Rules: allocator.RulesOf(mem.Version{Major: 2, Minor: 6})}
			free := allocator.Run(p, setup)
			if free.OOM != nil || free.Usage.PeakAllocated != out.Usage.PeakAllocated ||
				free.Usage.PeakReserved != out.Usage.PeakReserved {
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

// TestRecordedCurveIsLabelledAsItsSnapshot: what an imaginary GPU recorded was not measured.
func TestRecordedCurveIsLabelledAsItsSnapshot(t *testing.T) {
	for _, label := range []mem.Label{mem.Measured, mem.Imagined} {
		s := testkit.Snapshot(t, "imagined/leak-a10.pickle")
		s.Label = label
		r, err := Run(context.Background(), []Source{{Name: "x", Snapshot: s}}, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Picture(report.TextOptions{Width: 100}); !strings.Contains(got, "as recorded ("+string(label)) {
			t.Errorf("%s:\n%s", label, got)
		}
	}
}
