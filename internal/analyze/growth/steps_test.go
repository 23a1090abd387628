package growth

import (
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
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
