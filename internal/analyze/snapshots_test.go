package analyze

import (
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
	if !strings.Contains(r.Markdown(), "Who holds device 0") {
		t.Error("the report has no table of who holds the device")
	}
}
