package facts

import (
	"testing"

	"hightide/internal/mem"
)

// TestAllocatedBy: a process that uses its own GPU of several is given what it took there, and an imagined one the
// peak that it told, which no sample saw.
func TestAllocatedBy(t *testing.T) {
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.RunInfo{ID: "r", Label: mem.Imagined, StartMono: 1},
		mem.SeriesDef{ID: 1, Process: 2, Device: "cuda:0", Name: mem.SeriesAllocated, Unit: mem.UnitBytes,
			Label: mem.Imagined},
		mem.SeriesDef{ID: 2, Process: 2, Device: "cuda:1", Name: mem.SeriesAllocated, Unit: mem.UnitBytes,
			Label: mem.Imagined},
		mem.Samples{Series: 1, Times: []int64{5}, Values: []int64{0}},
		mem.Samples{Series: 2, Times: []int64{5}, Values: []int64{70}},
		mem.DevicePeak{Time: 9, Process: 2, Device: "cuda:1", Allocated: mem.Some(100)},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	in := Of(run, nil)
	if got := in.AllocatedBy(2); got != mem.Some(100) {
		t.Errorf("process 2 allocated %v, want 100", got)
	}
	if got := in.AllocatedBy(3); got.Known() {
		t.Errorf("process 3 used no device and allocated %v", got)
	}
}
