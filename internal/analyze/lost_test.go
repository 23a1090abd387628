package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestLost: what could not be written leaves gaps in the curves, and the note says so; what a ring lost does not.
func TestLost(t *testing.T) {
	for place, want := range map[string]string{"disk": "curves stop or have gaps", "ring": "samples of host and devices are not among them", "message": "could not be read"} {
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
