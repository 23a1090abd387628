package run

import (
	"fmt"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestLost: what could not be written leaves gaps in the curves, and the note says so; what a ring lost does not.
func TestLost(t *testing.T) {
	for place, want := range map[string]string{"disk": "curves stop or have gaps",
		"ring": "samples of host and devices are not among them", "message": "could not be read"} {
		run := mem.NewRun()
		for _, f := range []mem.Frame{
			mem.Process{ID: 1, PID: 10, Role: "main", Start: 1},
			mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			mem.Samples{Series: 1, Times: []int64{1e9}, Values: []int64{1 << 20}},
			mem.Drop{Process: 1, Place: place, Records: 7},
			mem.End{Time: 9e9},
		} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		if notes := strings.Join(Analyze(run, Options{}).Notes, "\n"); !strings.Contains(notes, "7 records were lost ("+place+")") || !strings.Contains(notes, want) {
			t.Errorf("%s: %s", place, notes)
		}
	}
}

// TestUnobserved: a reason that many processes share is one note, with their number; reasons beyond those listed are
// counted.
func TestUnobserved(t *testing.T) {
	run := mem.NewRun()
	frames := []mem.Frame{mem.Process{ID: 1, PID: 10, Role: "main", Start: 1}}
	for i := range 20 {
		p := mem.Process{ID: uint32(i + 2), PID: 100 + i, Start: 1}
		frames = append(frames, p, mem.Event{Process: p.ID, Kind: "unobserved",
			Text: fmt.Sprintf("process %d, python -I: it leaves out start-up hooks", p.PID)})
	}
	for i := range 21 {
		frames = append(frames, mem.Event{Kind: "unobserved", Text: fmt.Sprintf("reason %d", i)})
	}
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	notes := strings.Join(Analyze(run, Options{}).Notes, "\n")
	for _, want := range []string{"Not observed: process 100, python -I: it leaves out start-up hooks; the same in 19 " +
		"more processes.", "Not observed: reason 0.", "2 more reasons why"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %s", want, notes)
		}
	}
	if strings.Contains(notes, "process 101") {
		t.Error("each process is named by itself")
	}
}
