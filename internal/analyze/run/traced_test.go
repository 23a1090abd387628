package run

import (
	"fmt"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestTracedByALibrary: functions that the program did not write are told by its line that runs them; without such a
// line they are not told.
func TestTracedByALibrary(t *testing.T) {
	run := mem.NewRun()
	run.Add(mem.RunInfo{StartMono: 0})
	run.Add(mem.Process{ID: 1, Role: "main"})
	for i := range int64(12) {
		for _, file := range []string{"/a/train.py", "/x/lib/python3.11/site-packages/tensorflow/structured_function.py"} {
			run.Add(mem.Event{Time: i * 9, Process: 1, Kind: "traced",
				Where: &mem.Location{File: file, Line: 13, Function: "wrapped_fn"},
				Facts: map[string]string{"framework": "tensorflow", "count": fmt.Sprint(i + 1), "library": "yes"}})
		}
	}
	run.Add(mem.End{Time: 100})
	var found []report.Finding
	for _, f := range Analyze(run, Options{}).Findings {
		if f.Kind == report.KindTracing {
			found = append(found, f)
		}
	}
	if len(found) != 1 || found[0].File != "/a/train.py" ||
		!strings.Contains(found[0].Title, "train.py:13 makes TensorFlow trace functions of its own") ||
		strings.Contains(found[0].Text, "keeps a graph") || strings.Contains(found[0].Advice, "Pad") {
		t.Errorf("%+v", found)
	}
}

// TestTraced: tracings that go on are a finding, a warm-up of shapes is none.
func TestTraced(t *testing.T) {
	run := mem.NewRun()
	run.Add(mem.RunInfo{StartMono: 0})
	run.Add(mem.Process{ID: 1, Role: "main"})
	run.Add(mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes})
	run.Add(mem.Samples{Series: 1, Times: []int64{0, 100}, Values: []int64{100 << 20, 164 << 20}})
	event := func(name string, time, count int64) {
		run.Add(mem.Event{Time: time, Process: 1, Kind: "traced",
			Where: &mem.Location{File: "/a/train.py", Line: 7, Function: name},
			Facts: map[string]string{"framework": "tensorflow", "count": fmt.Sprint(count), "argument": "x",
				"before": "float32(31, 8)", "after": "float32(32, 8)"}})
	}
	for i := range int64(12) {
		event("steady", i, i+1)
		event("ongoing", i*9, i+1)
	}
	event("ongoing", 100, 64) // those between were counted only
	for i := range int64(16) {
		event("made before the first step", 50+i, i+1)
		event("all early", i, i+1)
	}
	for _, name := range []string{"made before the first step", "all early"} {
		run.Add(mem.Event{Time: 100, Process: 1, Kind: "traced", // told at the end, of what was so before
			Where: &mem.Location{File: "/a/train.py", Line: 7, Function: name},
			Facts: map[string]string{"framework": "tensorflow", "count": "24", "last_ns": "60"}})
	}
	for i := range int64(5) {
		run.Add(mem.Steps{{Process: 1, Number: uint64(i + 1), Time: 75 + 5*i}})
	}
	run.Add(mem.End{Time: 100})
	r := Analyze(run, Options{})
	var found []report.Finding
	for _, f := range r.Findings {
		if f.Kind == report.KindTracing {
			found = append(found, f)
		}
	}
	if len(found) != 1 || found[0].Line != 7 || found[0].Severity != report.Warning {
		t.Fatalf("%+v", found)
	}
	for _, want := range []string{"ongoing was traced 64 times, 55 or more of them in the second half",
		"x changed from float32(31, 8) to float32(32, 8)", "RSS rose by 64.0 MiB"} {
		if !strings.Contains(found[0].Text, want) {
			t.Errorf("%q lacks %q", found[0].Text, want)
		}
	}
	if !strings.Contains(found[0].Advice, "input_signature") {
		t.Error(found[0].Advice)
	}
}
