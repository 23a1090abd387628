package trace

import (
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

// What torch's own message said when it ran out (testdata/imagined/oom-a10-pieces.py prints it): 603.81 MiB
// free, 1.56 GiB reserved and unallocated, in eight pieces of 200 MiB. The final state holds nothing.
func TestOOMIsExplainedAtItsOwnMoment(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle")
	if end := s.Totals(0); end.Allocated != 0 || end.Reserved != 0 {
		t.Fatalf("the trace is to end empty, and has %+v", end)
	}
	a := explained(t, s, Options{})
	o := a.OOM
	if o == nil {
		t.Fatal("no out-of-memory was found")
	}
	if o.Asked != mem.GiB || o.DeviceFree != mem.Some(633143296) || o.Cached != mem.Some(1677721600) ||
		o.Pieces != mem.Some(8) ||
		o.LargestFree != mem.Some(int64(200*mem.MiB)) || int64(o.Allocated)+o.Cached.Or(0) != o.Reserved.Or(0) {
		t.Errorf("%+v", *o)
	}
	if !*o.WouldFit || *o.Contiguous {
		t.Errorf("fits %v, contiguous %v", *o.WouldFit, *o.Contiguous)
	}
	if len(o.Blame) == 0 || !strings.Contains(o.Blame[0].Name, "oom-a10-pieces.py") {
		t.Errorf("blames %+v", o.Blame)
	}
	if text := said(a); !strings.Contains(text, "8 pieces, the largest of 200 MiB") {
		t.Error(text)
	}
}

func said(a *explanation) string {
	return recorded(Shortage{Record: a.OOM, Held: a.failed, By: a.By}, a.Label, a.Name, a.Title).Tell().Text
}

// Of a program that starts an LLM server, lines of its engine asked for memory and hold it, not the program's own.
func TestOOMOfAServer(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle")
	for i := range s.Stacks.Locations {
		if l := &s.Stacks.Locations[i]; l.Function == "tensor" {
			l.File = "/env/lib/python3.11/site-packages/vllm/v1/worker/gpu_model_runner.py"
		}
	}
	for server, want := range map[bool]string{false: "oom-a10-pieces.py:25", true: "vllm/v1/worker/gpu_model_runner.py:14"} {
		d := usage.FromTrace(s, 0, usage.Whole)
		failed := lastFailed(d, server)
		f := failed.Tell()
		for _, said := range []string{want + " asked for 1.00 GiB", "The largest part was held by " + want} {
			if !strings.Contains(f.Text, said) {
				t.Errorf("%q has not %q", f.Text, said)
			}
		}
		if f.Line != failed.At.Line || !strings.Contains(want, fmt.Sprint(f.Line)) {
			t.Errorf("it points at %s:%d", f.File, f.Line)
		}
	}
}

// Where the device had room, or one cached piece was large enough, that says what stood in the way.
func TestOOMThatIsNoLackOfMemory(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle")
	trace := &s.Traces[0]
	event := slices.Index(trace.Action, mem.ActionOOM)
	trace.Address[event] = uint64(2 * mem.GiB)
	if text := said(explained(t, s, Options{})); !strings.Contains(text, "one cause") || !strings.Contains(text, "the file does not say") {
		t.Error(text)
	}
	before := s.Settings
	s.Settings = map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.9"}
	if text := said(explained(t, s, Options{})); !strings.Contains(text, "the limit of per_process_memory_fraction was reached") {
		t.Error(text)
	}
	s.Settings = before
	trace.Address[event], trace.Size[event] = 0, 100*mem.MiB
	if text := said(explained(t, s, Options{})); !strings.Contains(text, "it belonged to another pool or stream") {
		t.Error(text)
	}
	// 6 MiB are taken from the device as a segment of 20 MiB, and no piece of the cache is free.
	o := &report.TraceOOM{Asked: 6 * mem.MiB, DeviceFree: mem.Some(int64(15 * mem.MiB)), Segment: 20 * mem.MiB,
		WouldFit: new(true), Contiguous: new(false)}
	if why, _ := cause(o); !strings.Contains(why, "less than the segment of 20.0 MiB") {
		t.Error(why)
	}
}

// What torch's own message said of the same failures: 21.01 GiB allocated, 12.00 MiB cached, 3.00 GiB asked for. A
// trace of the profiler does not say what was free, but that of 22.05 GiB.
func TestOOMOfTheProfiler(t *testing.T) {
	file, err := os.Open("../../format/testdata/profiler-oom.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := torch.ReadTrace(plain)
	if err != nil {
		t.Fatal(err)
	}
	r := reported(t, snapshot, "trace.json", Options{})
	o := r.Allocators[0].OOM
	if o == nil || o.Asked != 3*mem.GiB || o.Allocated != 22556966912 || o.Reserved != mem.Some(22569549824) ||
		o.Cached != mem.Some(int64(12*mem.MiB)) ||
		o.DeviceTotal != mem.Some(23676649472) || o.WouldFit == nil || *o.WouldFit || o.DeviceFree.Known() ||
		o.Contiguous != nil || o.Pieces.Known() {
		t.Errorf("GPU: %+v", o)
	}
	if f := r.Findings[0]; f.File != "profiler_oom.py" || f.SiteFunction != "fill" ||
		!strings.Contains(f.Text,
			"The largest part was held by profiler_oom.py:12: 21.0 GiB in 7 blocks. All of it together was not enough.") {
		t.Errorf("%+v", f)
	}
	o = r.Allocators[1].OOM
	if o == nil || o.Asked != 1<<50 || o.Allocated != 0 || o.Reserved.Known() || o.Cached.Known() || o.WouldFit != nil {
		t.Errorf("CPU: %+v", o)
	}
	if f := r.Findings[1]; f.SiteFunction != "ask_the_host" || !strings.Contains(f.Title, "The CPU (device 1) ran out") {
		t.Errorf("%+v", f)
	}
}
