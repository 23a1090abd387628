package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hightide/internal/matrix"
	"hightide/internal/mem"
)

// TestBenchTable: running cells have a row however small the terminal is, rows stay in the spec's order, and what is
// left out is counted.
func TestBenchTable(t *testing.T) {
	var b benchCells
	var all []matrix.CellRow
	for i := range 10 {
		all = append(all, matrix.CellRow{Key: fmt.Sprintf("batch=%d", i), Left: 3})
	}
	b.takeRows(all)
	now := time.Unix(1000, 0)
	b.takeRows([]matrix.CellRow{{Key: "batch=2", State: matrix.Done, Trials: 2, Left: 1, Figure: matrix.RSS,
		Unit: mem.UnitBytes, Value: float64(mem.GiB), Within: &matrix.Interval{Low: float64(mem.GiB - mem.MiB),
			High: float64(mem.GiB + mem.MiB)}},
		{Key: "batch=7", State: matrix.Failed, Reason: "exit code 7", Trials: 1, Left: 1}})
	p := &matrix.Progress{Cells: 10, Running: []matrix.RunningTrial{{Cell: "batch=9", Repeat: 1,
		Since: now.Add(-75 * time.Second), Held: 3 * mem.GiB, Expected: mem.Some(int64(4 * mem.GiB))}}}

	whole := b.lines(p, "head", now, 40)
	if len(whole) != 12 || !strings.HasPrefix(whole[1], "CELL") {
		t.Fatalf("%d lines:\n%s", len(whole), strings.Join(whole, "\n"))
	}
	for i, want := range map[int][]string{4: {"batch=2", "done", "2/3", "1.00 GiB ± 1.00 MiB"},
		9: {"batch=7", "failed", "1/2", "exit code 7"}, 11: {"batch=9", "running", "0/3",
			"1m15s, holds 3.00 GiB of ~4.00 GiB"}, 2: {"batch=0", "waiting"}} {
		for _, word := range want {
			if !strings.Contains(whole[i], word) {
				t.Errorf("no %q in %q", word, whole[i])
			}
		}
	}
	few := b.lines(p, "head", now, 6)
	text := strings.Join(few, "\n")
	if len(few) != 6 || !strings.HasPrefix(few[2], "batch=2 ") || !strings.HasPrefix(few[3], "batch=7 ") ||
		!strings.HasPrefix(few[4], "batch=9 ") || few[5] != "… and 7 cells more" {
		t.Errorf("in 6 lines:\n%s", text)
	}
	for most := range 12 {
		if got := b.lines(p, "head", now, most); len(got) > max(most, 2) {
			t.Errorf("%d lines where there is room for %d", len(got), most)
		}
	}
}
