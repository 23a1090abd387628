package run

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// only is the one leak or growth of a report.
func only(t *testing.T, run *mem.Run) report.Finding {
	t.Helper()
	found := leaks(Analyze(run, Options{}))
	if len(found) != 1 {
		for _, f := range found {
			t.Log(f.Kind, f.Title)
		}
		t.Fatalf("%d findings, want one", len(found))
	}
	return found[0]
}

func near(t *testing.T, f report.Finding, want mem.Bytes, share float64) {
	t.Helper()
	got := f.BytesPerStep.Or(0)
	if off := float64(got-int64(want)) / float64(want); off > share || off < -share {
		t.Errorf("%v per step, want %v", mem.Bytes(got), want)
	}
}

// TestShortSteps: 300 steps of 2 ms leave few heap frames, but the leak is still named.
func TestShortSteps(t *testing.T) {
	for seed := range uint64(10) {
		s := training(seed, source{stack: userLine(leakLine), step: leakOf(256*mem.KiB, 32*mem.KiB)})
		s.stepTime, s.pace = 2*ms, 50*ms
		f := only(t, s.run())
		if f.Line != leakLine || f.Kind != report.KindLeak {
			t.Errorf("%s %s:%d", f.Kind, f.File, f.Line)
		}
	}
}

// TestFewFrames: three heap frames in all, as of a DataLoader worker, are enough where the whole heap
// is seen to grow. Where they are not, the growth is still reported, without a line.
func TestFewFrames(t *testing.T) {
	named := 0
	for seed := range uint64(20) {
		s := training(seed, source{stack: userLine(leakLine), step: leakOf(256*mem.KiB, 32*mem.KiB)})
		s.pace = 2500 * ms
		f := only(t, s.run())
		near(t, f, 256*mem.KiB, 0.35)
		if f.Kind == report.KindLeak {
			named++
			if f.Line != leakLine {
				t.Errorf("seed %d: line %d", seed, f.Line)
			}
		}
	}
	if t.Logf("named in %d of 20", named); named < 17 {
		t.Errorf("named in %d of 20", named)
	}
}

// TestWithoutHeap: where the heap was not sampled RSS still shows the growth, and nothing else.
func TestWithoutHeap(t *testing.T) {
	for seed := range uint64(20) {
		s := training(seed, source{stack: userLine(leakLine), step: leakOf(256*mem.KiB, 32*mem.KiB)})
		s.noHeap, s.rssNoise = true, 1e6
		f := only(t, s.run())
		if f.Kind != report.KindGrowth || f.File != "" || f.Label != mem.Measured {
			t.Errorf("%+v", f)
		}
		near(t, f, 256*mem.KiB, 0.1)
		for _, innocent := range []func(int, *rand.Rand, func(mem.Bytes, int)){
			func(int, *rand.Rand, func(mem.Bytes, int)) {},
			func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
				if step < 150 {
					alloc(1*mem.MiB, forever)
				}
			},
			func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) { alloc(1*mem.MiB, 60-step%60-1) },
		} {
			s := training(seed, source{stack: userLine(leakLine), step: innocent})
			s.noHeap, s.rssNoise = true, 1e6
			for _, f := range leaks(Analyze(s.run(), Options{})) {
				t.Errorf("innocent: %s", f.Title)
			}
		}
	}
}

// TestHolderWithoutHeap: a container of graphs names the line of a growth seen in RSS alone.
func TestHolderWithoutHeap(t *testing.T) {
	s := training(1, source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 32*mem.KiB)})
	s.noHeap = true
	s.holders = []mem.Holder{{Kind: "list", Name: "history", Where: mem.Location{File: "/p/train.py", Line: 7},
		Items: 300, PerStep: 1, Graph: true}}
	f := only(t, s.run())
	if f.Kind != report.KindLeak || f.Line != 7 || f.Holder != "history" {
		t.Errorf("%+v", f)
	}
}

// TestHolderTakenBack: a container that was seen to shrink, or that grew by the clock only early on, names nothing.
func TestHolderTakenBack(t *testing.T) {
	s := training(1, source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 32*mem.KiB)})
	gathered := mem.Holder{Kind: "list", Name: "gathered", Where: mem.Location{File: "/p/train.py", Line: 7}, Items: 20,
		PerStep: 1, Contains: "Tensor", Tensors: mem.Some(int64(20 * mem.MiB))}
	emptied := gathered
	emptied.Items, emptied.PerStep = 2, 0
	early := mem.Holder{Kind: "dict", Name: "loggers", Items: 100, PerMin: 900, Contains: "Logger"}
	s.holders = []mem.Holder{gathered, emptied, early}
	if f := only(t, s.run()); f.Holder != "" || f.Line != leakLine {
		t.Errorf("%s: %s", f.Holder, f.Title)
	}
	s.holders = []mem.Holder{gathered}
	if f := only(t, s.run()); f.Holder != "gathered" {
		t.Errorf("not taken back: %s", f.Title)
	}
}

// TestArrayThatIsCopied: an array that is copied to be extended is told by its sizes, not by what its line holds: that
// is now one, now two of them.
func TestArrayThatIsCopied(t *testing.T) {
	const row = 128 * mem.KiB
	run := overTime(2000, source{stack: userLine(leakLine), step: func(step int, rng *rand.Rand, alloc func(mem.Bytes, int)) {
		alloc(mem.Bytes(step+1)*row, 1+rng.IntN(2))
	}})
	for _, step := range []int64{900, 1100, 1300, 1500, 1700, 1900, 1999} {
		run.Holders = append(run.Holders, mem.Holder{Process: 1, Time: 3e9 + step*5*ms, Kind: "array", Name: "history",
			Where: mem.Location{File: "/home/me/project/train.py", Line: leakLine}, Items: step * int64(row),
			PerMin: 12000 * float64(row), Contains: "byte", Tensors: mem.Some(step * int64(row))})
	}
	f := only(t, run)
	if f.Holder != "history" || f.Label != mem.Estimated || !strings.Contains(f.Text, "1.46 GiB per minute") {
		t.Errorf("%+v", f)
	}
	if whole := float64(2000 * row); math.Abs(float64(f.Bytes.Or(0))-whole) > 0.02*whole {
		t.Errorf("%v, of %v", mem.Bytes(f.Bytes.Or(0)), mem.Bytes(whole))
	}
}

// TestArrayBySize: an array that is replaced by larger ones so often that its line is seen half filled is told by its
// sizes, where it grew to the end. One that did not is a window that became full.
func TestArrayBySize(t *testing.T) {
	seen := func(at int64, bytes int64, rate float64) mem.Holder {
		return mem.Holder{Time: at, Kind: "array", Name: "history", Where: mem.Location{File: "/p/train.py", Line: 7},
			Items: bytes, PerStep: rate, Contains: "byte", Tensors: mem.Some(bytes)}
	}
	s := training(1)
	s.holders = []mem.Holder{seen(8e9, 40<<20, 1<<18), seen(10e9, 60<<20, 1<<18), seen(11e9, 70<<20, 1<<18)}
	f := only(t, s.run())
	if f.Holder != "history" || f.Line != 7 || f.Label != mem.Estimated {
		t.Errorf("%+v", f)
	}
	near(t, f, 256*mem.KiB, 0.01)
	if kept := f.Bytes.Or(0); kept <= 70<<20 || strings.Contains(f.Text, "± 0 B") {
		t.Errorf("%v at the end, of 70 MiB before: %s", mem.Bytes(kept), f.Text)
	}
	for name, holders := range map[string][]mem.Holder{
		"taken back":    {seen(8e9, 40<<20, 1<<18), seen(9e9, 50<<20, 1<<18), seen(11e9, 50<<20, 0)},
		"the same":      {seen(8e9, 40<<20, 1<<18), seen(10e9, 50<<20, 1<<18), seen(11e9, 50<<20, 1<<17)},
		"not seen late": {seen(5e9, 40<<20, 1<<18), seen(6e9, 50<<20, 1<<18), seen(7e9, 60<<20, 1<<18)},
	} {
		s.holders = holders
		for _, f := range leaks(Analyze(s.run(), Options{})) {
			t.Errorf("%s: %s", name, f.Title)
		}
	}
}

// TestGraphIsOneFinding: the many lines of a kept graph are one finding, with or without a holder,
// and a leak elsewhere is its own.
func TestGraphIsOneFinding(t *testing.T) {
	var sources []source
	for i := range 6 {
		sources = append(sources, source{stack: userLine(40 + i), phase: mem.PhaseForward,
			step: leakOf(256*mem.KiB, 64*mem.KiB)})
	}
	s := training(2, sources...)
	s.holders = []mem.Holder{{Kind: "list", Name: "losses", Where: mem.Location{File: "/p/train.py", Line: 7},
		Items: 300, PerStep: 1, Contains: "Tensor", Graph: true}}
	f := only(t, s.run())
	if f.Line != 7 || f.SiteLine < 40 || !strings.Contains(f.Text, "graph") {
		t.Errorf("%+v", f)
	}
	near(t, f, 1536*mem.KiB, 0.15)

	s = training(2, sources...)
	f = only(t, s.run())
	if f.SiteLine < 40 || !strings.Contains(f.Advice, "detach") {
		t.Errorf("%+v", f)
	}

	s = training(2, append(sources, source{stack: userLine(80), phase: mem.PhaseData,
		step: leakOf(2*mem.MiB, 512*mem.KiB)})...)
	s.holders = []mem.Holder{
		{Kind: "list", Name: "losses", Where: mem.Location{File: "/p/train.py", Line: 7}, Items: 300, PerStep: 1,
			Graph: true},
		{Kind: "dict", Name: "cache", Where: mem.Location{File: "/p/train.py", Line: 8}, Items: 300, PerStep: 1,
			Tensors: mem.Some(int64(600 * mem.MiB))},
	}
	found := leaks(Analyze(s.run(), Options{}))
	if len(found) != 2 || found[0].Holder != "cache" || found[0].SiteLine != 80 || found[1].Holder != "losses" {
		t.Errorf("%+v", found)
	}
	// A dict may be a cache that fills; a list of losses is none.
	if !strings.Contains(found[0].Advice, "had not reached it") ||
		strings.Contains(found[1].Advice, "had not reached it") {
		t.Errorf("advice: %q; %q", found[0].Advice, found[1].Advice)
	}
}

// TestHolderOfNumbers: a list of numbers that grows beside a leak is not blamed for it.
func TestHolderOfNumbers(t *testing.T) {
	s := training(3, source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 64*mem.KiB)})
	s.holders = []mem.Holder{{Kind: "list", Name: "curve", Where: mem.Location{File: "/p/train.py", Line: 7}, Items: 300,
		PerStep: 1, Contains: "float"}}
	if f := only(t, s.run()); f.Line != leakLine || f.Holder != "" {
		t.Errorf("%+v", f)
	}
}

// TestWorkers: a leak in DataLoader workers, which have no steps of their own, counts by the steps
// of the training, over all workers.
func TestWorkers(t *testing.T) {
	run := training(4).run()
	for id := uint32(2); id <= 3; id++ {
		s := training(uint64(id), source{stack: userLine(leakLine), step: leakOf(512*mem.KiB, 64*mem.KiB)})
		s.sources = s.sources[len(s.sources)-1:]
		worker := s.run()
		heap := worker.Heap[1]
		if err := run.Add(mem.Process{ID: id, PID: int(100 + id), Parent: 1, Role: "dataloader", Start: 3e9}); err != nil {
			t.Fatal(err)
		}
		if err := run.Stacks.Define(50, worker.Stacks.Frames(1)); err != nil {
			t.Fatal(err)
		}
		heap.Sites[50], heap.Peak = heap.Sites[1], nil
		delete(heap.Sites, 1)
		for i := range heap.Sites[50] {
			heap.Sites[50][i].Stack = 50
		}
		run.Heap[id] = heap
		run.Holders = append(run.Holders, mem.Holder{Process: id, Kind: "dict", Name: "cache",
			Where: mem.Location{File: "/p/train.py", Line: leakLine}, Items: 900, PerStep: 3,
			Time: run.Steps[len(run.Steps)-1].Time})
	}
	f := only(t, run)
	if f.Line != leakLine || !strings.Contains(f.Text, "2 processes") ||
		!strings.Contains(f.Text, "gains 6 items per step") {
		t.Errorf("%+v", f)
	}
	near(t, f, 1*mem.MiB, 0.2)
}

// TestWhatALineHoldsBesides: what was there from the beginning is not kept by what grows.
func TestWhatALineHoldsBesides(t *testing.T) {
	leak := leakOf(256*mem.KiB, 32*mem.KiB)
	f := only(t, training(4, source{stack: userLine(leakLine),
		step: func(step int, rng *rand.Rand, alloc func(mem.Bytes, int)) {
			if step == 0 {
				alloc(200*mem.MiB, forever)
			}
			leak(step, rng, alloc)
		}}).run())
	near(t, f, 256*mem.KiB, 0.2)
	if kept := mem.Bytes(f.Bytes.Or(0)); kept < 60*mem.MiB || kept > 90*mem.MiB ||
		!strings.Contains(f.Text, kept.String()+" ± ") {
		t.Errorf("%v by the end of 300 steps: %s", kept, f.Text)
	}
}

// TestWithoutSteps: a program without steps grows per minute.
func TestWithoutSteps(t *testing.T) {
	s := training(5, source{stack: userLine(leakLine), step: leakOf(256*mem.KiB, 32*mem.KiB)})
	s.stepTime, s.pace = 500*ms, 500*ms
	run := s.run()
	run.Steps, run.Totals = nil, map[uint32]mem.StepTotal{}
	r := Analyze(run, Options{})
	found := leaks(r)
	if len(found) != 1 || found[0].Line != leakLine || found[0].BytesPerStep.Known() ||
		!strings.Contains(found[0].Text, "per minute") {
		t.Errorf("%+v", found)
	}
	if r.Headline.Growth.Known() || !strings.Contains(r.Headline.Verdict, "per minute") {
		t.Errorf("%+v", r.Headline)
	}
	// Of half a minute the whole process tells nothing, and that is said beside what was looked for.
	s = training(5)
	s.steps, s.stepTime, s.pace = 60, 500*ms, 500*ms
	run = s.run()
	run.Steps, run.Totals = nil, map[uint32]mem.StepTotal{}
	if said := Analyze(run, Options{}).Headline.Looked; !strings.Contains(said, "4.00 MiB or more") || !strings.Contains(said, "without steps that takes 2 min") {
		t.Errorf("%q", said)
	}
}

// TestVerdictWithoutGrowth says that there is none.
func TestVerdictWithoutGrowth(t *testing.T) {
	r := Analyze(training(6).run(), Options{})
	if g, ok := r.Headline.Growth.Get(); !ok || g != 0 ||
		!strings.Contains(r.Headline.Verdict, "no steady growth with the steps is seen (it is reported from 16.0 MiB "+
			"on)") || !strings.Contains(r.Headline.Looked, "4.00 MiB") {
		t.Errorf("growth %v %v: %s", g, ok, r.Headline.Verdict)
	}
}

// TestNetIsOfAPass: forward that takes 14 GiB and backward that gives them back leave as much in each pass, whatever
// their number.
func TestNetIsOfAPass(t *testing.T) {
	run := training(6).run()
	passes := int64(7)
	run.Phases = []mem.PhaseStats{{Process: 1, Phase: mem.PhaseForward, Count: uint64(passes),
		DeviceNet: mem.Some(passes * 14 << 30)},
		{Process: 1, Phase: mem.PhaseBackward, Count: uint64(passes), DeviceNet: mem.Some(-passes * 14 << 30),
			RSSNet: mem.Some(-10)}}
	for _, table := range Analyze(run, Options{}).Tables {
		if table.Name != "phases" {
			continue
		}
		cell := func(row, i int) string { return report.FormatCell(table.Rows[row][i], mem.UnitBytes) }
		for i, c := range table.Columns {
			if c.Name == "device_net" && (cell(0, i) != "14.0 GiB" || cell(1, i) != "-14.0 GiB") ||
				c.Name == "rss_net" && cell(1, i) != "-1 B" {
				t.Errorf("%s: %v, %v", c.Title, cell(0, i), cell(1, i))
			}
		}
		return
	}
	t.Error("no phases")
}

// TestStepsReadSeldom: of many steps whose ends were not read it is not said that they were too few.
func TestStepsReadSeldom(t *testing.T) {
	for steps, want := range map[int]string{60: "at the ends of too few of the 60 steps",
		8: "too few steps were observed"} {
		s := training(5)
		s.steps = steps
		run := s.run()
		run.Heap, run.Series = nil, nil
		for i := range run.Steps {
			run.Steps[i].RSS, run.Steps[i].Device = mem.Optional{}, mem.Optional{}
		}
		if said := Analyze(run, Options{}).Headline.NotLooked; !strings.Contains(said, want) {
			t.Errorf("%d steps: %q", steps, said)
		}
	}
}
