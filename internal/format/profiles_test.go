package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hightide/internal/format/stacks"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
)

// TestProfilerTrace reads a trace that PyTorch 2.15 exported on a CPU and compares its sums with the
// trace's own running totals.
func TestProfilerTrace(t *testing.T) {
	data, err := os.ReadFile("testdata/profiler-cpu.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Decode(bytes.NewReader(data), "trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	s := d.Snapshot
	if d.Format != "profiler-trace" || len(s.Traces) != 1 || s.DeviceNames[s.Traces[0].Device] != "cpu" ||
		s.Traces[0].Len() != 87 {
		t.Fatalf("%s, %d traces of %d events on %v", d.Format, len(s.Traces), s.Traces[0].Len(), s.DeviceNames)
	}
	held, peak := mem.Bytes(0), mem.Bytes(0)
	for i, a := range s.Traces[0].Action {
		if a == mem.ActionAlloc {
			held += s.Traces[0].Size[i]
		} else {
			held -= s.Traces[0].Size[i]
		}
		peak = max(peak, held)
	}
	wantHeld, wantPeak := chromeTotals(t, data)
	if held != wantHeld || peak != wantPeak {
		t.Errorf("holds %v of at most %v, want %v of %v", held, peak, wantHeld, wantPeak)
	}
	found := slices.ContainsFunc(s.Traces[0].Stack, func(id uint32) bool {
		frames := s.Stacks.Frames(id)
		return len(frames) > 3 && frames[0].Native && slices.ContainsFunc(frames, func(l mem.Location) bool {
			return strings.HasSuffix(l.File, "kineto.py") && l.Line > 0
		})
	})
	if !found || len(s.Annotations) < 8 {
		t.Errorf("no stack from the operator to the script, or %d annotations", len(s.Annotations))
	}
}

// TestProfilerCountsOnlyItsOwn: on the host the profiler's totals begin with 0, whatever was there; devices of other
// processes in a merged trace are others. A memory timeline is told from a log.
func TestProfilerCountsOnlyItsOwn(t *testing.T) {
	event := func(pid int, at, bytes, address int64) string {
		return fmt.Sprintf(`{"ph":"i","name":"[memory]","pid":%d,"tid":1,"ts":%d,"args":{"Total Reserved":0,"Total Allocated":%d,"Bytes":%d,"Addr":%d,"Device Id":-1,"Device Type":0}}`, pid, at, bytes, bytes, address)
	}
	d, err := Decode(strings.NewReader(`{"traceEvents":[`+event(7, 1, 1000, 16)+","+event(8, 2, 5000, 16)+","+event(7, 3,
		-1000, 16)+"]}"), "merged.json")
	if err != nil {
		t.Fatal(err)
	}
	s := d.Snapshot
	if len(s.Traces) != 2 || s.Traces[0].Len() != 2 || s.DeviceNames[1] != "cpu of process 8" ||
		!strings.Contains(s.CountsOnly[0], "while the profiler recorded memory") {
		t.Errorf("%+v, %v, %v", s.Traces, s.DeviceNames, s.CountsOnly)
	}
	for _, text := range []string{"[[1795465100128304, 1795465100128782], [[0, 1], [0, 2]]]",
		`[[-1, 1, 524288, 0], [-1, 1, 2048, 0]]`} {
		if _, err := Decode(strings.NewReader(text), "timeline.json"); !errors.Is(err, torch.ErrTimeline) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestXSpace reads a profile that TensorFlow 2.21 wrote on a CPU: its events add up to what its allocator said of
// itself.
func TestXSpace(t *testing.T) {
	data, err := os.ReadFile("testdata/tf-profile.xplane.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Decode(bytes.NewReader(data), "vm.xplane.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	s := d.Snapshot
	if d.Format != "xspace" || len(s.Traces) != 1 || s.Traces[0].Len() != 36 ||
		s.DeviceNames[s.Traces[0].Device] != "cpu" {
		t.Fatalf("%s, %d traces, %v", d.Format, len(s.Traces), s.DeviceNames)
	}
	trace := &s.Traces[0]
	held, peak, by := mem.Bytes(0), mem.Bytes(0), map[string]mem.Bytes{}
	for i, a := range trace.Action {
		size := trace.Size[i]
		if a == mem.ActionAlloc {
			held += size
			by[s.Stacks.Frames(trace.Stack[i])[0].Function+" "+s.Text(mem.At(trace.Metadata, i))] += size
		} else {
			held -= size
		}
		peak = max(peak, held)
	}
	if held != 12*mem.MiB || peak != 16*mem.MiB { // bytes_allocated of its last event, peak_bytes_in_use
		t.Errorf("holds %v of at most %v", held, peak)
	}
	if by["AddV2 output [512,1024]"] < 5*2*mem.MiB || by["MatMul output [512,512]"] != mem.MiB {
		t.Error(by)
	}
	if len(s.Annotations) != 10 || s.Annotations[0].Name != "train 0" || !s.Annotations[9].End {
		t.Error(s.Annotations)
	}
}

// chromeTotals are the trace's own Total Allocated, at the end and the highest.
func chromeTotals(t *testing.T, data []byte) (last, peak mem.Bytes) {
	plain, err := open(bytes.NewReader(data), true)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.close()
	var trace struct {
		TraceEvents []struct {
			Name string
			Args map[string]any
		}
	}
	if err := json.NewDecoder(plain).Decode(&trace); err != nil {
		t.Fatal(err)
	}
	for _, e := range trace.TraceEvents {
		if e.Name == "[memory]" {
			last = mem.Bytes(e.Args["Total Allocated"].(float64))
			peak = max(peak, last)
		}
	}
	return last, peak
}

func TestMemrayTable(t *testing.T) {
	text := stacks.MemrayHeader + "\nMALLOC,3,3145728,1,0x1,leak;/home/a/t.py;2|main;/home/a/t.py;4\nMMAP,1,5,1,0x1,malloc;arena.c;7|main;/home/a/t.py;4\n"
	d, err := Decode(strings.NewReader(text), "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	p := d.Profile
	frames := p.Stacks.Frames(p.Samples[0].Stack)
	if len(p.Samples) != 2 || p.Samples[0].Values[p.Default] != 3145728 || p.Kinds[p.Default].Unit != mem.UnitBytes ||
		len(frames) != 2 || frames[0] != (mem.Location{File: "/home/a/t.py", Line: 2, Function: "leak"}) ||
		p.Samples[1].Labels["allocator"] != "MMAP" {
		t.Errorf("%+v, %v", p.Samples, frames)
	}
	if _, err := Decode(strings.NewReader(stacks.MemrayHeader+"\nMALLOC,x,1,1,0x1,a;b;1\n"), "x.csv"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a count that is none: %v", err)
	}
}

// TestJAX reads a profile that JAX wrote: three arrays of 1 MiB from make() and a product of 4 MiB.
func TestJAX(t *testing.T) {
	data, err := os.ReadFile("testdata/jax-device-memory.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Decode(bytes.NewReader(data), "memory.prof")
	if err != nil {
		t.Fatal(err)
	}
	p := d.Profile
	bySite := map[string]int64{}
	for _, s := range p.Samples {
		for _, l := range p.Stacks.Frames(s.Stack) {
			if strings.HasSuffix(l.File, "/jp.py") {
				bySite[l.Function] += s.Values[p.Default]
			}
		}
		if kind := s.Labels["kind"]; kind != "buffer" && kind != "executable" {
			t.Errorf("labels %v", s.Labels)
		}
	}
	if bySite["make"] != 3<<20 || bySite["<module>"] != 7<<20 {
		t.Errorf("bytes by function %v, want make 3 MiB of 7", bySite)
	}
	if p.Kinds[p.Default] != (mem.ProfileKind{Name: "space", Unit: mem.UnitBytes}) || p.Kinds[0].Name != "allocations" {
		t.Errorf("kinds %+v, shown first %d", p.Kinds, p.Default)
	}
}

// TestONNXRuntime reads profiles that two releases wrote: that of 1.32 says what the arena held, that of 1.20 does not.
func TestONNXRuntime(t *testing.T) {
	for name, test := range map[string]struct {
		nodes, outputs int
		arenas         []mem.Arena
		raised         mem.Bytes
	}{
		// in use after each node's run, and the peak, as the profile has them
		"onnxruntime-profile.json.gz": {5, 1146912, []mem.Arena{{Provider: "CPUExecutionProvider", Peak: 1048832,
			Held: 3 * mem.MiB, Y: []int64{524288, 1048576, 589824, 98304, 33024, 1048576, 1048576, 1048576, 1048576, 1048832,
				1048576, 1048576, 1048576, 1048576, 1048832}}}, 1048832},
		"onnxruntime-profile-1.20.json.gz": {7, 2195488, nil, 0},
	} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decode(bytes.NewReader(data), name)
		if err != nil {
			t.Fatal(err)
		}
		outputs, raised := int64(0), int64(0)
		for _, n := range d.Nodes.Nodes {
			outputs, raised = outputs+n.Output.Or(0), raised+n.Raised.Or(0)
			if n.Runs != 3 || n.Time <= 0 || n.Operator == "" || n.Raised.Known() != (test.arenas != nil) {
				t.Errorf("%s: %+v", name, n)
			}
		}
		if len(d.Nodes.Nodes) != test.nodes || outputs != int64(test.outputs) || raised != int64(test.raised) {
			t.Errorf("%s: %d nodes make %d bytes, and raised the peak by %d", name, len(d.Nodes.Nodes), outputs, raised)
		}
		got := d.Nodes.Arenas
		for i := range got {
			if !slices.IsSorted(got[i].X) || got[i].X[0] != 4670_000 { // µs: ts and dur of the first node's run
				t.Errorf("%s: times %v", name, got[i].X)
			}
			got[i].X = nil
		}
		if !reflect.DeepEqual(got, test.arenas) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for text, want := range map[string]string{
		`[{"cat" : "Session","name" :"model_run","ts" :1,"dur" :1,"args" : {}}]`: "no node ran",
		`[{"cat" : "Node","name" :"a_kernel_time","ts" :1,"du`:                   "unexpected EOF",
		`[{"cat" : "Node","name" :"a_kernel_time","ts" :1}, 5`:                   "EOF",
	} {
		if _, err := Decode(strings.NewReader(text), "profile.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
