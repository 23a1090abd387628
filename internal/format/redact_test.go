package format

import (
	"testing"

	"hightide/internal/mem"
)

// TestRedactedSpans: the names that a program gives its spans lose their folders, and two of them stay two.
func TestRedactedSpans(t *testing.T) {
	run := mem.NewRun()
	user := func(name string) mem.Span { return mem.Span{Process: 1, Phase: mem.PhaseUser, Name: name, End: 1} }
	frames := []mem.Frame{
		mem.RunInfo{ID: "x", StartMono: 1}, mem.Process{ID: 1, PID: 7},
		mem.Spans{user("home/me/a/test_x.py::test"), user("home/me/b/test_x.py::test"), user("encode"), user("encode")},
	}
	for _, name := range []string{"home/me/a/test_x.py::test", "home/me/b/test_x.py::test", "encode"} {
		frames = append(frames, mem.PhaseStats{Process: 1, Phase: mem.PhaseUser, Name: name, Count: 1})
	}
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	copied := Redact(run)
	want := map[string]int{"test_x.py::test": 1, "test_x.py::test (2)": 1, "encode": 2}
	got, sums := map[string]int{}, map[string]int{}
	for s := range copied.Spans.All() {
		got[s.Name]++
	}
	for _, s := range copied.Phases {
		sums[s.Name]++
	}
	for name, n := range want {
		if got[name] != n || sums[name] != 1 || len(got) != 3 || len(sums) != 3 {
			t.Errorf("spans %v, sums %v", got, sums)
		}
	}
}
