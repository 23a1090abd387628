package run

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// past are the findings of growth that stopped.
func past(r *report.Report) (found []report.Finding) {
	for _, f := range r.Findings {
		if f.Kind == report.KindBounded {
			found = append(found, f)
		}
	}
	return found
}

// TestStopped: a growth that stopped before the end is told as past, at its line, with what it still holds, whether
// there are steps or not. It is no leak, and nothing runs out.
func TestStopped(t *testing.T) {
	const seeds = 20
	for _, steps := range []bool{true, false} {
		for _, part := range []float64{0.3, 0.5, 0.7, 0.85} {
			t.Run(fmt.Sprintf("steps %v, until %g", steps, part), func(t *testing.T) {
				told, within := 0, 0
				for seed := range uint64(seeds) {
					until := int(part * 300)
					leak := leakOf(mem.MiB, 64*mem.KiB)
					s := training(2000+seed, source{stack: userLine(leakLine), phase: mem.PhaseForward, step: onlyUntil(until, leak)})
					s.holders = []mem.Holder{
						{Time: 3e9 + int64(0.8*part*9e9), Kind: "list", Name: "kept",
							Where: mem.Location{File: "/home/me/project/train.py", Line: 7, Function: "step"},
							Items: int64(0.8 * float64(until)), PerStep: 1, PerMin: 2000, Contains: "Tensor"},
						{Time: 11.5e9, Kind: "list", Name: "kept", Where: mem.Location{File: "/home/me/project/train.py", Line: 7,
							Function: "step"}, Items: int64(until), Contains: "Tensor"},
					}
					run := s.run()
					if !steps {
						run.Steps, run.Totals = nil, map[uint32]mem.StepTotal{}
					}
					r := Analyze(run, Options{})
					if wrong := leaks(r); len(wrong) > 0 {
						if part < 0.8 { // so shortly before the end it may just go on
							t.Errorf("seed %d: %s", seed, wrong[0].Title)
						}
						continue
					}
					found := past(r)
					if len(found) == 0 {
						continue
					}
					f := found[0]
					if told++; len(found) != 1 || f.SiteLine != leakLine || f.Holder != "kept" ||
						!strings.Contains(f.Title, "then stopped") || !strings.Contains(f.Text, "gained 1 item") && steps {
						t.Errorf("seed %d: %d findings; %s: %s", seed, len(found), f.Title, f.Text)
					}
					if off := math.Abs(float64(f.Bytes.Or(0) - int64(mem.Bytes(until)*mem.MiB))); off <= float64(f.Error.Or(0)) {
						within++
					}
					if said := r.Headline.Verdict; !strings.Contains(said, "then stopped") || strings.Contains(said, "out of memory") {
						t.Errorf("seed %d: %s", seed, said)
					}
				}
				if t.Logf("told in %d of %d, within the error in %d", told, seeds, within); told < seeds*9/10 || within < told*8/10 {
					t.Errorf("told in %d of %d, within the error in %d", told, seeds, within)
				}
			})
		}
	}
}

// TestNothingStopped: what comes and goes, or replaces its oldest entries, has not grown and stopped.
func TestNothingStopped(t *testing.T) {
	for _, test := range innocents() {
		if strings.Contains(test.name, "stops") || strings.Contains(test.name, "warm-up") ||
			strings.Contains(test.name, "first epoch") || strings.Contains(test.name, "ever slower") ||
			strings.Contains(test.name, "replaces") || strings.Contains(test.name, "100 large") {
			continue // these have
		}
		for seed := range uint64(10) {
			s := training(3000+seed, source{stack: userLine(leakLine), phase: mem.PhaseForward, step: test.step})
			for _, f := range past(Analyze(s.run(), Options{})) {
				t.Errorf("%s, seed %d: %s", test.name, seed, f.Title)
			}
		}
	}
}

// TestBoundedOverTime: a container that is full in less than a minute is not full yet.
func TestBoundedOverTime(t *testing.T) {
	run := cached(2000, 50)
	for i := range run.Holders {
		run.Holders[i].Bound, run.Holders[i].BoundBy = mem.Some(60), "maxlen=60"
	}
	r := Analyze(run, Options{})
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, "in about 4.8 s (estimated). Then it stops.") ||
		strings.Contains(r.Findings[0].Text, "is full") {
		t.Errorf("%+v", r.Findings)
	}
	for i := range run.Holders {
		run.Holders[i].Bound, run.Holders[i].BoundBy = mem.Some(40), "maxlen=40"
	}
	if r = Analyze(run, Options{}); len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, "is full: it grows no more.") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestBounded: a container whose bound is known is no leak where memory lasts until it is full; what it takes then is
// said.
func TestBounded(t *testing.T) {
	holder := mem.Holder{Time: 11e9, Kind: "deque", Name: "recent",
		Where: mem.Location{File: "/home/me/project/train.py", Line: 7}, Items: 290, PerStep: 1, Contains: "ndarray",
		Tensors: mem.Some(int64(290 * mem.MiB)), Bound: mem.Some(1000), BoundBy: "maxlen=1000"}
	s := training(5, source{stack: userLine(leakLine), step: leakOf(mem.MiB, 64*mem.KiB)})
	s.holders = []mem.Holder{holder}
	r := Analyze(s.run(), Options{})
	if wrong := leaks(r); len(wrong) > 0 {
		t.Errorf("%+v", wrong)
	}
	found := past(r)
	if len(found) != 1 || found[0].Title != "`recent` (train.py:7) fills up to 1,000 items (maxlen=1000)" ||
		!strings.Contains(found[0].Text, "It takes at most 1,000 items (maxlen=1000): that is another 6") ||
		!strings.Contains(found[0].Text, "in about 680 steps") {
		t.Errorf("%+v", found)
	}
	if said := r.Headline.Verdict; !strings.Contains(said, "fills up to its bound (maxlen=1000)") ||
		strings.Contains(said, "out of memory") || strings.Contains(said, "first") {
		t.Errorf("%s", said)
	}

	s.holders[0].Bound, s.holders[0].BoundBy = mem.Some(100_000), "maxlen=100000"
	r = Analyze(s.run(), Options{})
	if wrong := leaks(r); len(wrong) != 1 || !strings.Contains(wrong[0].Text, "for which there is no room") ||
		!strings.Contains(r.Headline.Verdict, "out of memory in") {
		t.Errorf("%+v; %s", wrong, r.Headline.Verdict)
	}

	// What goes on comes before what ends, however slow it is.
	s = training(5, source{stack: userLine(leakLine), step: leakOf(mem.MiB, 64*mem.KiB)},
		source{stack: userLine(33), step: leakOf(256*mem.KiB, 64*mem.KiB)})
	s.holders = []mem.Holder{holder}
	r = Analyze(s.run(), Options{})
	if wrong := leaks(r); len(wrong) != 1 || wrong[0].Line != 33 || !strings.Contains(r.Headline.Verdict, "train.py:33") {
		t.Errorf("%+v; %s", wrong, r.Headline.Verdict)
	}
}

// TestAfterTheLastStep: steps that ended long before the program are told, as nothing grows with them any more.
func TestAfterTheLastStep(t *testing.T) {
	s := training(5, source{stack: userLine(leakLine), step: leakOf(mem.MiB, 64*mem.KiB)})
	run := s.run()
	if f := only(t, run); strings.Contains(f.Text, "before the end") {
		t.Errorf("%s", f.Text)
	}
	run.End.Time += 20e9
	if f := only(t, run); !strings.Contains(f.Text, "the last one ended 20.2 s before the end") {
		t.Errorf("%s", f.Text)
	}
}

// TestStoppedBeside: two functions of one line, as a comprehension in it, whose growth stops together. Each has its own
// bytes, and the container is told that Python's small objects, which the other asked for, may be of its items.
func TestStoppedBeside(t *testing.T) {
	leak := onlyUntil(150, leakOf(mem.MiB, 64*mem.KiB))
	line := userLine(leakLine)
	inner := append([]mem.Location{{File: mem.PythonObjects, Native: true}}, line...)
	inner[1].Function = "<listcomp>"
	s := training(77, source{stack: line, phase: mem.PhaseForward, step: leak},
		source{stack: inner, phase: mem.PhaseForward, step: onlyUntil(150, leakOf(2*mem.MiB, 64*mem.KiB))})
	kept := mem.Holder{Time: 6.6e9, Kind: "list", Name: "kept", Items: 120, PerStep: 1, PerMin: 2000, Contains: "Tensor",
		Where: mem.Location{File: "/home/me/project/train.py", Line: 7, Function: "step"}}
	later := kept
	later.Time, later.Items, later.PerStep, later.PerMin = 11.5e9, 150, 0, 0
	s.holders = []mem.Holder{kept, later}
	var all int64
	beside := false
	for _, f := range past(Analyze(s.run(), Options{})) {
		all += f.Bytes.Or(0)
		beside = beside || f.Holder == "kept" && strings.Contains(f.Advice, "Python's small objects grew beside it")
	}
	if mib := all >> 20; mib < 350 || mib > 550 || !beside {
		t.Errorf("%d MiB of 450 grew and stopped; small objects told beside the container: %v", mib, beside)
	}
}
