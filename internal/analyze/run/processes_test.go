package run

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestProcessesOfOtherNumbers: two runs of one program differ in the numbers of its processes alone, so nothing of
// what they held changed.
func TestProcessesOfOtherNumbers(t *testing.T) {
	of := func(pid int) *report.Report {
		run := mem.NewRun()
		for _, f := range []mem.Frame{
			mem.RunInfo{ID: "r", Verb: "run", Label: mem.Measured, StartMono: 1},
			mem.Process{ID: 1, PID: pid, Role: "main", Start: 1},
			mem.Process{ID: 2, Parent: 1, PID: pid + 1, Start: 1},
			mem.Process{ID: 3, Parent: 1, PID: pid + 2, Role: "dataloader", Start: 1},
			mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			mem.SeriesDef{ID: 2, Process: 2, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			mem.SeriesDef{ID: 3, Process: 3, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			mem.SeriesDef{ID: 4, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			mem.Samples{Series: 1, Times: []int64{5}, Values: []int64{100 << 20}},
			mem.Samples{Series: 2, Times: []int64{5}, Values: []int64{40 << 20}},
			mem.Samples{Series: 3, Times: []int64{5}, Values: []int64{20 << 20}},
			mem.Samples{Series: 4, Times: []int64{5}, Values: []int64{160 << 20}},
		} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		return Analyze(run, Options{})
	}
	changed := Compare(&report.Pair{Before: of(100), After: of(200)})
	var held []string
	for i := range changed.Tables {
		table := &changed.Tables[i]
		for _, row := range table.Rows {
			if table.Name != "parts" {
				continue
			}
			if what := table.Cell(row, "what").(string); table.Cell(row, "delta") == int64(0) {
				held = append(held, what)
			} else {
				t.Errorf("%s changed: %v", what, row)
			}
		}
	}
	if want := []string{"DataLoader workers", "other processes", "the process that held most"}; !slices.Equal(held, want) {
		t.Errorf("%q, want %q", held, want)
	}
}

// TestRestOfAForkedProcess: it holds what its parent had, which none of its own allocations explain.
func TestRestOfAForkedProcess(t *testing.T) {
	run := mem.NewRun()
	command := []string{"python", "train.py"}
	for _, p := range []mem.Process{
		{ID: 1, Role: "main", Command: command}, {ID: 2, Parent: 1, Role: "dataloader", Command: command},
		{ID: 3, Parent: 1, Role: "child", Command: []string{"python", "-c", "from multiprocessing.spawn import spawn_main"}},
	} {
		if err := run.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	in := newInput(run, Options{})
	for id, forked := range map[uint32]bool{1: false, 2: true, 3: false} {
		if name := in.restName(id, true); strings.Contains(name, "fork") != forked {
			t.Errorf("process %d: %q", id, name)
		}
	}
}
