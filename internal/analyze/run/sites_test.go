package run

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
)

// TestUnlistedLines: what is told of lines that are not listed bounds what any function holds beside those that are. It is
// no less than what none of a sample may have seen.
func TestUnlistedLines(t *testing.T) {
	s := &synthetic{seed: 3, steps: 40, stepTime: 1e8, pace: 2e8, base: 100 * mem.MiB}
	held := map[string]mem.Bytes{}
	for i := range 44 { // four of one function are the smallest
		function, size := fmt.Sprintf("f%d", i), mem.Bytes(50-i)*mem.MiB
		if i >= 40 {
			function = "Net.forward"
		}
		held[function] += size
		s.sources = append(s.sources, source{
			stack: []mem.Location{{File: "/home/me/train.py", Line: 100 + i, Function: function}},
			step: func(step int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
				if step == 5 {
					alloc(size, forever)
				}
			}})
	}
	run := s.run()
	run.Process(1).HeapMean = mem.Some(512 << 10)
	r := Analyze(run, Options{})
	if r.Lines == nil || len(r.Lines.Lines) != sitesShown {
		t.Fatalf("%+v", r.Lines)
	}
	listed := map[string]mem.Bytes{}
	for _, l := range r.Lines.Lines {
		listed[l.Function] += mem.Bytes(l.Bytes)
	}
	var most mem.Bytes
	for function, bytes := range held {
		most = max(most, bytes-listed[function])
	}
	if most != held["Net.forward"] || mem.Bytes(r.Lines.Unlisted) < most || mem.Bytes(r.Lines.Unlisted) > most+most/4 {
		t.Errorf("at most %v, the lines of one function held %v", mem.Bytes(r.Lines.Unlisted), most)
	}
	if f := r.Figures()[mem.FigureUnlisted]; f.Bytes != r.Lines.Unlisted || f.Label != mem.Sampled {
		t.Errorf("%+v", f)
	}
	few := &synthetic{seed: 3, steps: 40, stepTime: 1e8, pace: 2e8, sources: s.sources[:2]}
	run = few.run()
	run.Process(1).HeapMean = mem.Some(512 << 10)
	if got := Analyze(run, Options{}).Lines.Unlisted; got != 3*512<<10 {
		t.Errorf("where all lines are listed: %d", got)
	}
}
