package engine

import (
	"errors"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestFindAgain: runs of which findings and lines were not kept can be searched for after it, and say as many findings as
// their report. One that is being recorded is left out.
func TestFindAgain(t *testing.T) {
	s := &store.Memory{}
	e := &Engine{Store: s}
	begin := func(name string) store.Writer {
		t.Helper()
		w, err := s.Create(mem.RunInfo{Name: name, Verb: "run", Label: mem.Measured, Command: []string{"x"}, StartMono: 1})
		err = errors.Join(err, w.Write(mem.Event{Time: 2, Kind: "oom", Text: "out of memory", Where: &mem.Location{File: "a/train.py",
			Line: 7}}))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	old, cut := begin("old"), begin("cut")
	if err := errors.Join(old.Write(mem.End{Time: 3, Reason: "exit", ExitCode: mem.Some(1)}), old.Write(mem.Found{Findings: 9}),
		old.Close(), cut.Close()); err != nil {
		t.Fatal(err)
	}
	going := begin("going")
	defer going.Close()
	filter := store.Filter{Finding: "oom"}
	if n, err := e.Unsearched(t.Context(), filter); err != nil || n != 3 {
		t.Errorf("%d runs are not searched, want 3, %v", n, err)
	}
	did, err := e.FindAgain(t.Context(), nil)
	if err != nil || did.Runs != 2 || len(did.Failed) > 0 {
		t.Errorf("%+v %v", did, err)
	}
	runs, err := e.Runs(t.Context(), filter)
	if err != nil || len(runs) != 2 {
		t.Fatalf("found: %d runs, %v", len(runs), err)
	}
	for _, run := range runs {
		_, whole, err := e.Load(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(len(Analyze(whole).Findings)); run.Findings != mem.Some(n) || n == 0 {
			t.Errorf("%s has %v findings, its report %d", run.Name, run.Findings, n)
		}
	}
	if n, err := e.Unsearched(t.Context(), filter); err != nil || n != 1 {
		t.Errorf("afterwards %d runs are not searched, want the one that goes on, %v", n, err)
	}
	if again, err := e.FindAgain(t.Context(), nil); err != nil || again.Runs != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
}
