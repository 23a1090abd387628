package growth

import (
	"strings"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestTracedMeanwhile: beside a growth whose line is not known stands a function that is traced on and on.
func TestTracedMeanwhile(t *testing.T) {
	run := mem.NewRun()
	add := func(f mem.Frame) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(mem.Process{ID: 1, Role: "main"})
	for i := range int64(64) {
		add(mem.Event{Time: i, Process: 1, Kind: "traced", Numbers: map[string]int64{"count": i + 1},
			Where: &mem.Location{File: "/a/train.py", Line: 7, Function: "ongoing"},
			Facts: map[string]string{"framework": "tensorflow"}})
	}
	add(mem.End{Time: 64})
	said := Find(facts.Of(run, nil)).tracedMeanwhile(1)
	if want := "Meanwhile `ongoing` (train.py:7) was traced or compiled 64 times"; !strings.Contains(said, want) {
		t.Errorf("%q lacks %q", said, want)
	}
}
