package run

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

// TestPinnedHostMemoryOfARun: it has a table of its own.
func TestPinnedHostMemoryOfARun(t *testing.T) {
	run := mem.NewRun()
	for _, f := range []mem.Frame{mem.Process{ID: 1, PID: 10},
		mem.Snapshot{Process: 1, Name: "exit.pickle", Format: "torch-pickle", Last: true}} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	of := Analyze(run, Options{Snapshots: map[string]*mem.AllocatorSnapshot{"exit.pickle": testkit.WithPinned()}})
	titles := ""
	for _, table := range of.Tables {
		titles += table.Title + "\n"
	}
	if !strings.Contains(titles, "Who holds host (pinned) (exit.pickle)") ||
		!strings.Contains(titles, "Who holds device 0 (exit.pickle)") {
		t.Errorf("the run's tables are\n%s", titles)
	}
}

func TestSnapshotOfAnOOM(t *testing.T) {
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.Process{ID: 1, PID: 10}, mem.Snapshot{Process: 1, Name: "oom.pickle", Format: "torch-pickle", Last: true},
		// its ring tells of the same shortage
		mem.Snapshot{Process: 1, Name: "exit.pickle", Format: "torch-pickle", Last: true},
		mem.Event{Process: 1, Kind: "oom", Text: "CUDA out of memory", Facts: map[string]string{"source": "torch.cuda"}},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	r := Analyze(run, Options{Snapshots: map[string]*mem.AllocatorSnapshot{"oom.pickle": testkit.OutOfPieces(),
		"exit.pickle": testkit.OutOfPieces()}})
	found := map[string]report.Finding{}
	for _, f := range r.Findings {
		if _, twice := found[f.Kind]; twice {
			t.Errorf("two findings of kind %s", f.Kind)
		}
		found[f.Kind] = f
	}
	oom := found[report.KindOOM]
	if oom.File != "/home/me/model.py" || oom.Line != 12 || oom.SiteFile != "/home/me/train.py" || oom.SiteLine != 40 ||
		oom.Bytes.Or(0) != 768<<20 {
		t.Errorf("the finding names the wrong lines or bytes: %+v", oom)
	}
	for _, want := range []string{"torch.cuda could not get 768 MiB at train.py:40", "100 MiB free",
		"model.py:12: 1.00 GiB in 2 blocks", "the largest of 512 MiB"} {
		if !strings.Contains(oom.Text, want) {
			t.Errorf("%q is not in %q", want, oom.Text)
		}
	}
	if f := found[report.KindFragmentation]; f.Bytes.Or(0) != 1<<30 {
		t.Errorf("fragmentation: %+v", f)
	}
	if text := r.Markdown(); strings.Count(text, "Who holds device 0") != 1 ||
		!strings.Contains(text, "Who holds device 0 (oom.pickle, exit.pickle)") {
		t.Errorf("what held the device at both moments is not told once: %s", text)
	}
}

// TestLinesOfThePeakInSnapshots: what a snapshot of an imagined run holds stands beside the peak, each line once.
func TestLinesOfThePeakInSnapshots(t *testing.T) {
	row := func(line string, bytes int64) []report.Cell { return []report.Cell{line, "build", bytes, int64(2)} }
	columns := []report.Column{report.TextColumn("site", "Line"), report.TextColumn("function", "Function"),
		report.BytesColumn("bytes", "Holds", mem.Imagined), report.CountColumn("blocks", "Blocks")}
	device := func(file string, rows ...[]report.Cell) report.Table {
		return report.Table{Name: "device", Title: "Who holds device 0 (" + file + ")", Columns: columns, Rows: rows,
			Subject: report.Subject{File: file, Number: mem.Some(int64(0))}}
	}
	peak := report.Table{Name: "peak-lines", Columns: slices.Clone(columns),
		Rows: [][]report.Cell{row("a.py:3", 7), row("a.py:4", 5)}}
	in := newInput(mem.NewRun(), Options{})
	in.Verdict = &report.Imagined{Devices: make([]mem.ImaginedDevice, 1), Lines: make([]report.HeldLine, 2)}
	var held []heldIn
	for _, file := range []string{"oom.pickle", "exit.pickle"} {
		held = agreeing(held, device(file, row("a.py:3", 6), row("a.py:9", 1)))
	}
	if len(held) != 1 || !in.besidePeak(&held[0]) {
		t.Fatalf("%+v", held)
	}
	held[0].beside(&peak)
	want := [][]report.Cell{append(row("a.py:3", 7), int64(6)), append(row("a.py:4", 5), nil),
		{"a.py:9", "build", nil, nil, int64(1)}}
	if title := peak.Columns[4].Title; !slices.EqualFunc(peak.Rows, want, slices.Equal) ||
		title != "in oom.pickle, exit.pickle" {
		t.Errorf("%s: %v", title, peak.Rows)
	}
	in.Verdict.Devices = make([]mem.ImaginedDevice, 2)
	if in.besidePeak(&held[0]) {
		t.Error("the lines of two devices are told as one's")
	}
}
