package live

import (
	"cmp"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// TestCurveIsBounded: an hour of readings keeps its highest, its newest, and a size that does not grow.
func TestCurveIsBounded(t *testing.T) {
	var c Curve
	for i := range int64(100_000) {
		value := i % 1000
		switch i {
		case 70_001:
			value = 5_000_000
		case 80_002:
			value = -7
		}
		c.Add(i, value)
	}
	if len(c.All()) > 4*points+2 || len(c.Recent) > 2*recent {
		t.Errorf("%d and %d points are kept", len(c.All()), len(c.Recent))
	}
	if highest := slices.Max(c.Highest(0, 100_000, 50)); highest != 5_000_000 || c.Peak != mem.Some(5_000_000) {
		t.Errorf("the highest is %d, the peak %v", highest, c.Peak)
	}
	if c.Last() != mem.Some(999) {
		t.Errorf("the newest is %v", c.Last())
	}
	all := c.All()
	for _, kept := range []Point{{0, 0}, {70_001, 5_000_000}, {80_002, -7}, {99_999, 999}} {
		if !slices.Contains(all, kept) {
			t.Errorf("of the whole, %v is not kept", kept)
		}
	}
	if !slices.IsSortedFunc(all, func(a, b Point) int { return cmp.Compare(a.Time, b.Time) }) {
		t.Error("the whole is not in order of time")
	}
}

func TestHighestHoldsAcrossGaps(t *testing.T) {
	var c Curve
	for _, p := range []Point{{10, 1}, {30, 7}, {31, 5}, {60, 2}} {
		c.Add(p.Time, p.Value)
	}
	if got, want := c.Highest(0, 100, 10), []int64{-1, 1, 1, 7, 7, 7, 2, -1, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := c.Highest(40, 80, 4), []int64{5, 5, 2, -1}; !slices.Equal(got, want) {
		t.Errorf("from the middle: got %v, want %v", got, want)
	}
}

// TestRunTakesTheNewest: what replaces an earlier frame does, and samples without a series are passed over.
func TestRunTakesTheNewest(t *testing.T) {
	r := New()
	for _, f := range []mem.Frame{
		mem.RunInfo{ID: "a", StartMono: 100},
		mem.Process{ID: 1, PID: 7, Role: "main"}, mem.Process{ID: 2, PID: 8, Role: "dataloader"},
		mem.Process{ID: 2, PID: 8, Role: "dataloader", End: mem.Some(150)},
		mem.Samples{Series: 9, Times: []int64{1}, Values: []int64{1}},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS}, mem.Samples{Series: 1, Times: []int64{110, 120},
			Values: []int64{5, 6}},
		mem.StepTotal{Process: 1, Steps: 3}, mem.StepTotal{Process: 1, Steps: 4},
		mem.Spans{{Process: 1, Phase: mem.PhaseForward, End: 115}, {Process: 1, Phase: mem.PhaseModule, End: 116},
			{Process: 2, Phase: mem.PhaseData, End: 117}},
	} {
		r.Add(f)
	}
	if r.Last(1, mem.SeriesRSS) != mem.Some(6) || r.StepCount() != 4 || r.Elapsed() != 20 || r.Leader() != 1 ||
		r.Phase() != mem.PhaseForward {
		t.Errorf("RSS %v, steps %d, elapsed %d, leader %d, phase %q", r.Last(1, mem.SeriesRSS), r.StepCount(), r.Elapsed(),
			r.Leader(), r.Phase())
	}
	outline := r.Outline()
	if s := outline.Series; len(s) != 1 || !slices.Equal(s[0].Times, []int64{110, 120}) ||
		!slices.Equal(s[0].Values, []int64{5, 6}) || outline.Start() != 100 || len(outline.Processes) != 2 ||
		outline.Totals[1].Steps != 4 {
		t.Errorf("the outline: %+v", outline)
	}
	if alive := r.Alive(); len(alive) != 1 || alive[0].PID != 7 {
		t.Errorf("alive: %v", alive)
	}
}
