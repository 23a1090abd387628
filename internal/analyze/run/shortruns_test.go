package run

import (
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// importing is a library whose import takes memory at the steps given, a twentieth of it each time.
func importing(at map[int]bool) source {
	stack := append([]mem.Location{{File: "/lib/site-packages/numpy/core.py", Line: 3, Function: "<module>"},
		{File: "<frozen importlib._bootstrap>", Line: 241, Function: "_call_with_frames_removed"}}, userLine(8)...)
	return source{stack: stack, step: func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
		if at[step] {
			alloc(always, forever)
		}
	}}
}

// overTime is a run of so many turns of 5 ms that nobody saw step.
func overTime(turns int, sources ...source) *mem.Run {
	s := training(5, sources...)
	s.steps, s.stepTime, s.pace = turns, 5*ms, 50*ms
	run := s.run()
	run.Steps, run.Totals = nil, map[uint32]mem.StepTotal{}
	run.Processes[0].Start = 29e8 // no time passes before the first turn
	return run
}

// TestRunOfTwoSeconds: a leak is told by its line in a run of less than two seconds, whose first part was an import.
func TestRunOfTwoSeconds(t *testing.T) {
	imports := map[int]bool{}
	for step := range 60 {
		imports[step] = true
	}
	leak := leakOf(1*mem.MiB, 1*mem.MiB)
	run := overTime(360, importing(imports), source{stack: userLine(leakLine),
		step: func(step int, rng *rand.Rand, alloc func(mem.Bytes, int)) {
			if step >= 60 {
				leak(step, rng, alloc)
			}
		}})
	f := only(t, run)
	if f.Line != leakLine {
		t.Errorf("%+v", f)
	}
	if kept := mem.Bytes(f.Bytes.Or(0)); kept < 255*mem.MiB || kept > 345*mem.MiB {
		t.Errorf("%v kept, 300 MiB are", kept)
	}
}

// TestImportThatIsReadAgain: pages of a library that come to be resident late do not make the import last to the end.
func TestImportThatIsReadAgain(t *testing.T) {
	run := overTime(2000, importing(map[int]bool{0: true, 1: true, 1760: true}),
		source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 64*mem.MiB)})
	if f := only(t, run); f.Line != leakLine {
		t.Errorf("%+v", f)
	}
}

// cached is a run of ten seconds in which a container gains four blocks a second up to a moment, in turns so far
// apart, and is looked at twice as it ends.
func cached(until, each int) *mem.Run {
	run := overTime(2000, source{stack: userLine(leakLine), step: func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
		if step%each == 0 && step < until {
			for range each / 50 {
				alloc(always, forever)
			}
		}
	}})
	for _, step := range []int{900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 1998, 2000} {
		items := int64(min(step, until) / each * each / 50)
		run.Holders = append(run.Holders, mem.Holder{Process: 1, Time: 3e9 + int64(step)*5*ms, Kind: "dict", Name: "cache",
			Where: mem.Location{File: "/home/me/project/train.py", Line: leakLine}, Items: items, PerMin: 240,
			Contains: "ndarray", Tensors: mem.Some(items * int64(always))})
	}
	return run
}

// TestCacheThatIsFullAtTheEnd: a container that gained nothing for longer than an item takes has stopped. One that goes
// on is a leak, also where it was looked at twice as the program ended.
func TestCacheThatIsFullAtTheEnd(t *testing.T) {
	if f := only(t, cached(2000, 50)); f.Holder != "cache" || f.Line != leakLine {
		t.Errorf("%+v", f)
	}
	if f := only(t, cached(1850, 250)); f.Holder != "cache" { // five at a time: the next were due as it ended
		t.Errorf("%+v", f)
	}
	r := Analyze(cached(1800, 50), Options{})
	if found := leaks(r); len(found) > 0 {
		t.Errorf("full, and accused: %s", found[0].Title)
	}
	if len(r.Findings) != 1 || r.Findings[0].Kind != report.KindBounded || r.Findings[0].Holder != "cache" {
		t.Errorf("%+v", r.Findings)
	}
}

// TestAgentsOwnMemory: what the agent keeps for itself is nobody's leak.
func TestAgentsOwnMemory(t *testing.T) {
	run := overTime(2000, source{stack: []mem.Location{{File: "/x/hightide_agent/holders.py", Line: 9, Function: "scan"}},
		step: leakOf(16*mem.KiB, 16*mem.KiB)})
	if found := leaks(Analyze(run, Options{})); len(found) > 0 {
		t.Error(found[0].Title)
	}
}
