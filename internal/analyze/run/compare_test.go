package run_test

import (
	"slices"
	"strings"
	"testing"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// compared is a report with a PSS, the parts of its peak and the lines of its heap.
func compared(name string, pss, half int64, parts, lines []report.Holding, total int64) *report.Report {
	r := report.New()
	r.Run.Name, r.Run.Verb = name, "run"
	r.Headline.MainSource = mem.SeriesTreePSS
	r.Headline.Peak = report.Peak{HostPSS: mem.Some(pss), PSSError: mem.Some(half), HostRSS: mem.Some(2 * pss),
		Label: mem.Measured}
	r.Parts = parts
	if len(lines) > 0 {
		r.Lines = &report.HoldingLines{Lines: lines, Total: total}
	}
	return r
}

func rows(t *testing.T, r *report.Report, name string) map[string][]report.Cell {
	t.Helper()
	found := map[string][]report.Cell{}
	for i := range r.Tables {
		table := &r.Tables[i]
		for _, row := range table.Rows {
			if table.Name == name {
				what, _ := row[0].(string)
				found[what] = []report.Cell{table.Cell(row, "delta"), table.Cell(row, "error"), table.Cell(row, "a"),
					table.Cell(row, "b")}
			}
		}
	}
	return found
}

func equal(t *testing.T, what string, got []report.Cell, want ...report.Cell) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// TestCompare: processes of one kind and lines of one function are matched, errors add in quadrature, and what a run
// does not list is not zero.
func TestCompare(t *testing.T) {
	before := compared("a", 1000, 30,
		[]report.Holding{{Kind: "allocations", Name: "allocations", Bytes: 500, Half: 30},
			{Kind: "process", Name: "process worker", Bytes: 200}, {Kind: "process", Name: "process worker", Bytes: 100}},
		[]report.Holding{{Name: "train.py:3", Function: "train", Bytes: 300, Half: 30, File: "/a/train.py"},
			{Name: "train.py:5", Function: "train", Bytes: 100, Half: 40, File: "/a/train.py"},
			{Name: "gone.py:1", Function: "gone", Bytes: 50, File: "/a/gone.py"}}, 500)
	after := compared("b", 1400, 40,
		[]report.Holding{{Kind: "allocations", Name: "allocations", Bytes: 900, Half: 40},
			{Kind: "process", Name: "process worker", Bytes: 250}},
		[]report.Holding{{Name: "train.py:4", Function: "train", Bytes: 700, Half: 120, File: "/b/train.py"}}, 720)
	r := analyze.Compare(&report.Pair{Before: before, After: after})
	if want := "The peak, PSS of all processes, rose by 400 B: 1000 B before, 1.37 KiB after (estimated)."; r.Headline.Verdict != want {
		t.Errorf("headline %q, want %q", r.Headline.Verdict, want)
	}
	n := func(v int64) report.Cell { return v }
	equal(t, "PSS", rows(t, r, "figures")["PSS of all processes"], n(400), n(50), n(1000), n(1400))
	parts := rows(t, r, "parts")
	equal(t, "allocations", parts["allocations"], n(400), n(50), n(500), n(900))
	equal(t, "workers", parts["process worker"], n(-50), nil, n(300), n(250))
	lines := rows(t, r, "lines")
	equal(t, "train", lines["train.py:train"], n(300), n(130), n(400), n(700))
	equal(t, "gone", lines["gone.py:gone"], n(-50), nil, n(50), nil)
	equal(t, "rest", lines["functions that a run does not list"], n(-30), nil, n(50), n(20))
}

// TestCompareWithinError: a change that the error covers is not a rise.
func TestCompareWithinError(t *testing.T) {
	r := analyze.Compare(&report.Pair{Before: compared("a", 1000, 30, nil, nil, 0),
		After: compared("b", 1049, 40, nil, nil, 0)})
	if !strings.Contains(r.Headline.Verdict, "differs by 49 B, which is within the error of ± 50 B") {
		t.Error(r.Headline.Verdict)
	}
	if r := analyze.Compare(&report.Pair{Before: report.New(), After: report.New()}); r != nil {
		t.Errorf("two reports without a figure: %q", r.Headline.Verdict)
	}
}

// TestCompareOneHeap: where one heap was not sampled, its allocations are in the rest, and nothing rose.
func TestCompareOneHeap(t *testing.T) {
	before := compared("a", 1000, 0, []report.Holding{{Kind: "rest", Name: "rest", Bytes: 900},
		{Kind: "parameters", Name: "model parameters", Bytes: 100}}, nil, 0)
	after := compared("b", 1000, 0, []report.Holding{{Kind: "allocations", Name: "allocations", Bytes: 700, Half: 10},
		{Kind: "rest", Name: "rest", Bytes: 300}}, nil, 0)
	parts := rows(t, analyze.Compare(&report.Pair{Before: before, After: after}), "parts")
	if len(parts) != 1 {
		t.Errorf("parts %v", parts)
	}
	for _, row := range parts {
		if row[0] != int64(0) {
			t.Errorf("changed by %v", row[0])
		}
	}
}

// TestCompareByTheOneFigure: what leads is the figure by which lists know both, and how they ended is told where that
// differs. Figures of two kinds are not compared: another one leads, and it is said.
func TestCompareByTheOneFigure(t *testing.T) {
	known := func(name string, bytes int64, what string, source mem.Quantity, end string) *report.Report {
		r := compared(name, bytes/2, 0, nil, nil, 0)
		r.Headline.Peak.HostRSS, r.Headline.Peak.DeviceUsed = mem.Some(3*bytes), mem.Some(2*bytes) // of two devices
		r.Headline.Figure = mem.Figure{Bytes: bytes, What: what, Source: source, Label: mem.Imagined}
		r.Headline.Ended = mem.Ending{Kind: mem.EndFits, Text: end}
		return r
	}
	r := analyze.Compare(&report.Pair{Before: known("a", 100, "on the device", mem.SeriesDeviceProcess, "fits"),
		After: known("b", 150, "on the device", mem.SeriesDeviceProcess, "out of memory")})
	if want := "The peak, on the device, rose by 50 B: 100 B before, 150 B after (imagined)."; r.Headline.Verdict != want {
		t.Errorf("%q, not %q", r.Headline.Verdict, want)
	}
	if !slices.Contains(r.Notes, "They ended differently: fits before, out of memory after.") {
		t.Errorf("%q", r.Notes)
	}
	r = analyze.Compare(&report.Pair{Before: known("a", 100, "RSS", mem.SeriesTreeRSS, "done"),
		After: known("b", 150, "PSS", mem.SeriesTreePSS, "done")})
	if told := strings.Join(r.Notes, "\n"); !strings.Contains(told, "known by 100 B RSS, the run after by 150 B PSS") {
		t.Errorf("%q", told)
	}
}
