package growth

import (
	"math"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// TestStepsSeldomRecorded: steps that are short are recorded in full ever more rarely; what was seen of RSS until
// long before the end tells no growth to the end.
func TestStepsSeldomRecorded(t *testing.T) {
	run := mem.NewRun()
	for n := int64(1); n <= 100; n++ {
		s := mem.Step{Process: 1, Number: uint64(n), Time: n * 1e9}
		if n <= 70 {
			s.RSS = mem.Some(n << 20)
		}
		run.Steps = append(run.Steps, s)
	}
	in := Find(facts.Of(run, nil))
	m := in.memories(1)[0]
	if c, _ := in.totalCurve(m, in.atEnds(m), 1e9, 100e9); len(c.X) != 0 {
		t.Errorf("%d points to the 70th of 100 steps", len(c.X))
	}
	if c, _ := in.totalCurve(m, in.atEnds(m), 1e9, 72e9); len(c.X) == 0 {
		t.Error("no points")
	}
}

// TestHolderThatSlowsDownAtTheEnd: by the clock a container's rate is that of all its looks, since in the last few the
// program may have had no processor. Where it had more before, it is that of the looks since then.
func TestHolderThatSlowsDownAtTheEnd(t *testing.T) {
	run := mem.NewRun()
	run.Processes = []*mem.Process{{ID: 1}}
	look := func(second, items int64, perMin float64) {
		run.Holders = append(run.Holders, mem.Holder{Process: 1, Kind: "list", Name: "kept", Time: second * 1e9, Items: items,
			PerMin: perMin})
	}
	look(3, 90, 600)
	look(4, 10, 600)
	look(8, 50, 600)
	look(10, 52, 60)
	run.End = &mem.End{Time: 10e9}
	in := Find(facts.Of(run, nil))
	if all := in.HoldersOf(1); len(all) != 1 || math.Round(all[0].PerStep) != 420 {
		t.Errorf("%+v", all)
	}
}

// TestItemsPerStepOfLooksByTheClock: steps were slow at first, and each added an item. What the looks lie apart in steps
// tells the rate, not how long these took.
func TestItemsPerStepOfLooksByTheClock(t *testing.T) {
	run := oneProcess()
	at := func(step int64) int64 { return min(step, 30)*3e8 + max(step-30, 0)*1e8 }
	for step := range int64(300) {
		run.Steps = append(run.Steps, mem.Step{Process: 1, Number: uint64(step + 1), Time: at(step + 1)})
	}
	for _, step := range []int64{30, 150, 300} {
		run.Holders = append(run.Holders, mem.Holder{Process: 1, Kind: "list", Name: "scores", Time: at(step) + 1e6,
			Items: step, PerMin: 599})
	}
	run.End = &mem.End{Time: at(300) + 2e9}
	in := Find(facts.Of(run, nil))
	if all := in.HoldersOf(1); len(all) != 1 || math.Abs(all[0].PerStep-1) > 0.001 {
		t.Errorf("%+v", all)
	}
}

// TestHolderThatIsPartlyEmptied: a container that was seen to shrink gains what it has more than at first.
func TestHolderThatIsPartlyEmptied(t *testing.T) {
	for _, test := range []struct{ after, want float64 }{{40, 300}, {9, 0}} {
		run := mem.NewRun()
		run.Processes = []*mem.Process{{ID: 1}}
		run.Holders = []mem.Holder{
			{Process: 1, Kind: "list", Name: "kept", Time: 4e9, Items: 10, PerMin: 600},
			{Process: 1, Kind: "list", Name: "kept", Time: 9e9, Items: 60, PerMin: 600},
			{Process: 1, Kind: "list", Name: "kept", Time: 10e9, Items: int64(test.after)},
		}
		run.End = &mem.End{Time: 10e9}
		var got float64
		for _, h := range Find(facts.Of(run, nil)).HoldersOf(1) {
			got = h.PerStep
		}
		if math.Round(got) != test.want {
			t.Errorf("of 10, then 60, then %g items: %g a minute, want %g", test.after, got, test.want)
		}
	}
}

// TestHolderSeenTwiceAtTheEnd: two looks a hundredth of a second apart tell no rate.
func TestHolderSeenTwiceAtTheEnd(t *testing.T) {
	run := oneProcess()
	for _, look := range []mem.Holder{{Time: 1.6e9, Items: 145, PerMin: 6000}, {Time: 1.61e9, Items: 150, PerMin: 5900}} {
		look.Process, look.Kind, look.Name = 1, "list", "history"
		run.Holders = append(run.Holders, look)
	}
	run.End = &mem.End{Time: 1.7e9}
	if all := Find(facts.Of(run, nil)).HoldersOf(1); len(all) != 1 || all[0].PerStep != 5900 {
		t.Errorf("%+v", all)
	}
}

// TestItemsOfThreeLines: one cause, though each line alone is near enough to the container's rate for a run without
// steps, whose rates are of stretches that hardly overlap.
func TestItemsOfThreeLines(t *testing.T) {
	for _, perMin := range []float64{3750, 5800} {
		run := oneProcess()
		run.Holders = []mem.Holder{{Process: 1, Kind: "list", Name: "history", Time: 1.44e9, Items: 150, PerMin: perMin,
			Tensors: mem.Some(int64(280 << 20))}}
		run.End = &mem.End{Time: 1.5e9}
		var lines []growingLine
		for n, rate := range []float64{4.9, 4.7, 4.6} { // GiB a minute
			line := growingLine{}
			line.Site = &usage.Site{Location: mem.Location{File: "train.py", Line: n + 1}}
			line.Slope, line.Half = rate*(1<<30), 1<<30
			line.Held = mem.Bytes(line.Slope * 1.44 / 60)
			lines = append(lines, line)
		}
		if causes := Find(facts.Of(run, nil)).joinLines(1, lines); len(causes) != 1 || len(causes[0].lines) != 3 {
			t.Errorf("%g a minute: %d causes", perMin, len(causes))
		}
	}
}
