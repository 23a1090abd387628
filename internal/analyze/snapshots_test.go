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
	s.Traces = []mem.Trace{{Action: []mem.Action{mem.ActionOOM}, Address: []uint64{100 << 20},
		Size: []mem.Bytes{768 * mem.MiB}, Stream: []uint64{0}, Stack: []uint32{ask}}}
	return s
}

// withPinned is outOfPieces whose program also holds 3 GiB of pinned host memory, more than of the device.
func withPinned() *mem.AllocatorSnapshot {
	s := outOfPieces()
	line := s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/data.py", Line: 5, Function: "load"})})
	s.HostSegments = []mem.Segment{{Device: mem.HostDevice, Address: 1 << 40, Size: 3 * mem.GiB, Stack: line,
		Blocks: []mem.Block{
			{Address: 1 << 40, Size: 3 * mem.GiB, Requested: 3 * mem.GiB, State: mem.BlockAllocated, Stack: line}}}}
	return s
}

// TestPinnedHostMemoryIsADeviceOfItsOwn: by line, measured also beside an imaginary GPU, and never the headline where
// there is a device.
func TestPinnedHostMemoryIsADeviceOfItsOwn(t *testing.T) {
	s := withPinned()
	s.Label = mem.Imagined
	r := reported(t, s, "a.pickle", ExplainOptions{})
	if len(r.Allocators) != 2 || r.Allocators[0].Label != mem.Imagined || r.Allocators[1].Label != mem.Measured ||
		r.Allocators[1].Name != "host (pinned)" {
		t.Fatalf("the parts are %+v", r.Allocators)
	}
	if blame := r.Allocators[1].Blame; len(blame) != 1 || blame[0].Name != "data.py:5" || blame[0].Bytes != 3*mem.GiB {
		t.Errorf("pinned memory is of %+v", blame)
	}
	if !strings.HasPrefix(r.Headline.Verdict, "Device 0 of a.pickle") {
		t.Errorf("the headline is %q", r.Headline.Verdict)
	}
	alone := reported(t, s, "a.pickle", ExplainOptions{Device: mem.Some(int64(mem.HostDevice))})
	if len(alone.Allocators) != 1 || !strings.HasPrefix(alone.Headline.Verdict,
		"Host (pinned) of a.pickle holds 3.00 GiB") {
		t.Errorf("alone it reads %q", alone.Headline.Verdict)
	}
	x := Explaining{Report: report.New(), Options: ExplainOptions{Device: mem.Some(int64(mem.HostDevice))}}
	if err := x.Add(outOfPieces(), "b.pickle", nil); err == nil || !strings.Contains(err.Error(), "says nothing about pinned host memory") {
		t.Errorf("a file without it: %v", err)
	}
	run := mem.NewRun()
	for _, f := range []mem.Frame{mem.Process{ID: 1, PID: 10},
		mem.Snapshot{Process: 1, Name: "exit.pickle", Format: "torch-pickle", Last: true}} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	of := Analyze(run, Options{Snapshots: map[string]*mem.AllocatorSnapshot{"exit.pickle": withPinned()}})
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
	r := Analyze(run, Options{Snapshots: map[string]*mem.AllocatorSnapshot{"oom.pickle": outOfPieces(),
		"exit.pickle": outOfPieces()}})
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
