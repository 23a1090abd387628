package run

import (
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
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
