package analyze

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestAllocatedBy: a process that uses its own GPU of several is given what it took there, and an imagined one the
// peak that it told, which no sample saw.
func TestAllocatedBy(t *testing.T) {
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.RunInfo{ID: "r", Label: mem.Imagined, StartMono: 1},
		mem.SeriesDef{ID: 1, Process: 2, Device: "cuda:0", Name: mem.SeriesAllocated, Unit: mem.UnitBytes, Label: mem.Imagined},
		mem.SeriesDef{ID: 2, Process: 2, Device: "cuda:1", Name: mem.SeriesAllocated, Unit: mem.UnitBytes, Label: mem.Imagined},
		mem.Samples{Series: 1, Times: []int64{5}, Values: []int64{0}},
		mem.Samples{Series: 2, Times: []int64{5}, Values: []int64{70}},
		mem.DevicePeak{Time: 9, Process: 2, Device: "cuda:1", Allocated: mem.Some(100)},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	in := newInput(run, Options{})
	if got := in.allocatedBy(2); got != mem.Some(100) {
		t.Errorf("process 2 allocated %v, want 100", got)
	}
	if got := in.allocatedBy(3); got.Known() {
		t.Errorf("process 3 used no device and allocated %v", got)
	}
}

// TestPassedOn: what the agent hands on to PyTorch belongs to who asked for it.
func TestPassedOn(t *testing.T) {
	redispatch := mem.Location{File: "/env/lib/python3.11/site-packages/torch/_ops.py", Line: 926, Function: "redispatch"}
	agent := mem.Location{File: "/x/hightide_agent/imagine/sizes.py", Line: 9, Function: "kernel"}
	library := mem.Location{File: "/env/lib/python3.11/site-packages/torch/autograd/graph.py", Line: 3, Function: "run"}
	var stacks mem.StackTable
	for id, stack := range [][]mem.Location{1: {redispatch, agent}, 2: {redispatch, agent, library}} {
		if err := stacks.Define(uint32(id), stack); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlaces(&stacks)
	if got := p.of(1).File; got != report.UnknownPlace {
		t.Errorf("nobody's stack is that of %s", got)
	}
	if got := p.of(2).Location; got != library {
		t.Errorf("got %v, want %v", got, library)
	}
}

// TestCompiledCodeIsNotTheUsersOwn: what torch.compile generated is told by its name, wherever its cache is.
func TestCompiledCodeIsNotTheUsersOwn(t *testing.T) {
	p := newPlaces(nil)
	for file, want := range map[string]fileKind{
		"/tmp/torchinductor_me/3h/c3hzbj64elk4unxirtoynpsva2izo7wk3bnj6jslf3uld5vv7pxb.py": libraryFile,
		"/scratch/xf/cxf3qk3laoswe4vv6uwp63em53frk5z7woin3qhp72adkvx6r4w2.py":              libraryFile,
		"/home/me/cxf3qk3laoswe4vv6uwp63em53.py":                                           userFile,
	} {
		if got := p.kind(file); got != want {
			t.Errorf("%s is of kind %d, want %d", file, got, want)
		}
	}
}
