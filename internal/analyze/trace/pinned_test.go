package trace

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

// TestPinnedRounding: PyTorch records pinned memory after it rounded it up, so nothing "lost to rounding" is
// measured; 2.2 GiB took 4 here.
func TestPinnedRounding(t *testing.T) {
	for _, test := range []struct {
		size mem.Bytes
		says string
	}{
		{4 * mem.GiB, "4.00 GiB may be for little more than 2.00 GiB"},
		{2362232012, ""}, // with pinned_max_round_threshold_mb
		{64 * mem.MiB, ""},
	} {
		s := &mem.AllocatorSnapshot{Label: mem.Measured,
			HostSegments: []mem.Segment{{Device: mem.HostDevice, Address: 1 << 40, Size: test.size,
				Blocks: []mem.Block{{Address: 1 << 40, Size: test.size, Requested: test.size, State: mem.BlockAllocated}}}}}
		x := Explaining{Report: report.New(), Options: Options{}}
		if err := x.Add(File{AllocatorSnapshot: s, Name: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := x.Finish(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range x.Report.Findings {
			said += f.Title
		}
		if !strings.Contains(said, test.says) || test.says == "" && said != "" {
			t.Errorf("%v: %q, want %q", test.size, said, test.says)
		}
		if text := x.Report.Text(report.TextOptions{Width: 100}); strings.Contains(text, "lost to rounding") || !strings.Contains(text, "blocks in use, with what rounding added") {
			t.Errorf("%v:\n%s", test.size, text)
		}
	}
}

// TestPinnedBlocksAreAsLargeAsTold: a host allocation of few bytes is not rounded as one of a device.
func TestPinnedBlocksAreAsLargeAsTold(t *testing.T) {
	s := &mem.AllocatorSnapshot{Label: mem.Measured, HostSegments: []mem.Segment{{Device: mem.HostDevice, Address: 1 << 40,
		Size: 4, Blocks: []mem.Block{{Address: 1 << 40, Size: 4, Requested: 4, State: mem.BlockInactive}}}}}
	s.HostTraces = []mem.Trace{{Device: mem.HostDevice, Time: []int64{1, 2, 3},
		Action:  []mem.Action{mem.ActionSegmentAlloc, mem.ActionAlloc, mem.ActionFreeCompleted},
		Address: []uint64{1 << 40, 1 << 40, 1 << 40}, Size: []mem.Bytes{4, 4, 4}, Stream: []uint64{0, 0, 0},
		Stack: []uint32{0, 0, 0}}}
	r := reported(t, s, "a.pickle", Options{})
	if len(r.Allocators) != 1 || r.Allocators[0].Peak.Allocated != 4 || r.Allocators[0].Unplaced != 0 {
		t.Errorf("%+v", r.Allocators)
	}
}

// TestPinnedHostMemoryIsADeviceOfItsOwn: by line, measured also beside an imaginary GPU, and never the headline where
// there is a device.
func TestPinnedHostMemoryIsADeviceOfItsOwn(t *testing.T) {
	s := testkit.WithPinned()
	s.Label = mem.Imagined
	r := reported(t, s, "a.pickle", Options{})
	if len(r.Allocators) != 2 || r.Allocators[0].Label != mem.Imagined || r.Allocators[1].Label != mem.Measured ||
		r.Allocators[1].Name != "host (pinned)" {
		t.Fatalf("the parts are %+v", r.Allocators)
	}
	if blame := r.Allocators[1].Blame; len(blame) != 1 || blame[0].Name != "data.py:5" || blame[0].Bytes != 3*mem.GiB {
		t.Errorf("pinned memory is of %+v", blame)
	}
	if !strings.HasPrefix(r.Headline.Verdict, "Device 0 of a.pickle") {
		t.Errorf("the headline is %q", r.Headline.Verdict)
	}
	alone := reported(t, s, "a.pickle", Options{Device: mem.Some(int64(mem.HostDevice))})
	if len(alone.Allocators) != 1 || !strings.HasPrefix(alone.Headline.Verdict,
		"Host (pinned) of a.pickle holds 3.00 GiB") {
		t.Errorf("alone it reads %q", alone.Headline.Verdict)
	}
	x := Explaining{Report: report.New(), Options: Options{Device: mem.Some(int64(mem.HostDevice))}}
	if err := x.Add(File{AllocatorSnapshot: testkit.OutOfPieces(), Name: "b.pickle"}); err == nil || !strings.Contains(err.Error(), "says nothing about pinned host memory") {
		t.Errorf("a file without it: %v", err)
	}
}
