package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// outOfPieces is a device with two segments of 1 GiB, each half cached, where 768 MiB were asked for.
func outOfPieces() *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Label: mem.Measured}
	stack := func(file string, line int) uint32 {
		inner := s.Stacks.Location(mem.Location{File: "/env/lib/python3.11/site-packages/torch/nn/functional.py", Line: 7})
		return s.Stacks.Add([]uint32{inner, s.Stacks.Location(mem.Location{File: file, Line: line, Function: "forward"})})
	}
	keep, ask := stack("/home/me/model.py", 12), stack("/home/me/train.py", 40)
	for i := range uint64(2) {
		at := i << 32
		s.Segments = append(s.Segments, mem.Segment{Address: at, Size: mem.GiB, Large: true, Blocks: []mem.Block{
			{Address: at, Size: 512 * mem.MiB, Requested: 500 * mem.MiB, State: mem.BlockAllocated, Stack: keep},
			{Address: at + 512<<20, Size: 512 * mem.MiB}}})
	}
	s.Traces = []mem.Trace{{Action: []mem.Action{mem.ActionOOM}, Address: []uint64{100 << 20}, Size: []mem.Bytes{768 * mem.MiB}, Stream: []uint64{0}, Stack: []uint32{ask}}}
	return s
}

func TestSnapshotOfAnOOM(t *testing.T) {
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.Process{ID: 1, PID: 10}, mem.Snapshot{Process: 1, Name: "oom.pickle", Format: "torch-pickle", Last: true},
		mem.Event{Process: 1, Kind: "oom", Text: "CUDA out of memory", Facts: map[string]string{"source": "torch.cuda"}},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	r := Analyze(run, Options{Snapshots: map[string]*mem.AllocatorSnapshot{"oom.pickle": outOfPieces()}})
	found := map[string]report.Finding{}
	for _, f := range r.Findings {
		if _, twice := found[f.Kind]; twice {
			t.Errorf("two findings of kind %s", f.Kind)
		}
		found[f.Kind] = f
	}
	oom := found[report.KindOOM]
	if oom.File != "/home/me/model.py" || oom.Line != 12 || oom.SiteFile != "/home/me/train.py" || oom.SiteLine != 40 || oom.Bytes.Or(0) != 768<<20 {
		t.Errorf("the finding names the wrong lines or bytes: %+v", oom)
	}
	for _, want := range []string{"torch.cuda could not get 768 MiB at train.py:40", "100 MiB free", "model.py:12: 1.00 GiB in 2 blocks", "the largest of 512 MiB"} {
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
