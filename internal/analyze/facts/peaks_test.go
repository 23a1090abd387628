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

// TestHeapPeakOfWhatWasResident: a reading from before the kernel was asked has pages that were never touched. Of a run
// that ended the picture of the peak has them no more, and neither has any other figure of the heap.
func TestHeapPeakOfWhatWasResident(t *testing.T) {
	for _, ended := range []bool{true, false} {
		run := mem.NewRun()
		frames := []mem.Frame{
			mem.RunInfo{ID: "r", Label: mem.Measured, StartMono: 1},
			mem.Process{ID: 1, PID: 7, Start: 1, Role: "main"},
			mem.HeapUse{Process: 1, Time: 50e6, Live: 75 << 20, Variance: 1 << 40},
			mem.HeapUse{Process: 1, Time: 90e6, Live: 14 << 20, Variance: 1 << 40, Absent: 61 << 20},
			mem.HeapUse{Process: 1, Time: 80e6, Live: 15 << 20, Variance: 1 << 40, Absent: 60 << 20, Peak: true},
		}
		want := int64(75 << 20) // what the picture may not have got round to
		if ended {
			frames, want = append(frames, mem.End{Time: 100e6, ExitCode: mem.Some(0)}), 15<<20
		}
		for _, f := range frames {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		in := Of(run, nil)
		if got := in.HeapPeak(1); got != mem.Some(want) {
			t.Errorf("ended %v: peak %v, want %d", ended, got, want)
		}
		if at, ok := in.HeapAt(1, 95e6, 100<<20); !ok || int64(at.Live) != want {
			t.Errorf("ended %v: %v held at the peak of the process, want %d", ended, at.Live, want)
		}
	}
}
