package imagine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/replay"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

// TestRefusals: what cannot be imagined is said in one line, with what to do, before anything runs.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"no torch":   {`{"version":"3.12.1","frameworks":{}}`, "has none of PyTorch, TensorFlow, JAX and CuPy"},
		"tensorflow": {`{"version":"3.12.1","frameworks":{"tensorflow":"2.20"}}`, "tensorflow 2.20"},
		"cpu":        {`{"version":"3.12.1","frameworks":{"torch":"2.15.0+cpu"}}`, "built for the CPU alone"},
		"rocm":       {`{"version":"3.12.1","frameworks":{"torch":"2.15.0"},"torch_rocm":"7.0"}`, "built for ROCm"},
		"inside": {`{"version":"3.10.13","frameworks":{"torch":"1.13.1"},"torch_cuda":"11.7","torch_runtime_inside":true}`,
			"CUDA's runtime inside its own library"},
		"cuda": {`{"version":"3.12.1","frameworks":{"torch":"2.15.0"},"torch_cuda":"13.0"}`, ""},
	} {
		python := filepath.Join(t.TempDir(), "python3")
		if err := os.WriteFile(python, []byte("#!/bin/sh\necho '"+c.answer+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := &Session{Base: observe.Options{Command: []string{python, "train.py"}}}
		err := s.findPython(context.Background())
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var typed *fail.Error
		if !errors.As(err, &typed) || typed.Code != fail.ExitEnvironment || typed.Hint == "" ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongWordsComeFirst: what is wrong in what the user typed is said before what this machine lacks: here the
// program itself is not there.
func TestWrongWordsComeFirst(t *testing.T) {
	missing := []string{"torchrun", "train.py"}
	for want, c := range map[string]struct {
		o       Options
		command []string
	}{
		`no GPU "nosuch" in the catalogue`: {o: Options{GPU: "nosuch"}},
		"there is no file /nowhere":        {o: Options{GPU: "a10", Catalogue: []string{"/nowhere/gpus.toml"}}},
		"--memory 1.00 MiB is less":        {o: Options{GPU: "a10", Memory: mem.MiB}},
		"--steps some":                     {o: Options{Until: "some"}},
		"--until tea":                      {o: Options{Reach: []string{"tea"}}},
		"--data-sizes much":                {o: Options{Sizes: "much"}},
		"--read-value one":                 {o: Options{ReadValues: []string{"one"}}},
		"--gpus 17":                        {o: Options{GPUs: 17}},
		"--world-size -1":                  {o: Options{World: -1}},
		"--play 0 without":                 {o: Options{PlayList: "0"}},
		"--play 9":                         {o: Options{World: 8, PlayList: "9"}},
		"--gpu all imagines":               {o: Options{GPU: AllGPUs, World: 8}},
		"no script in torchrun":            {o: Options{World: 8}, command: []string{"torchrun"}},
		"so does mpirun":                   {o: Options{World: 8}, command: []string{"mpirun", "python", "train.py"}},
		"torchrun: command not found":      {},
		"./train.sh: no such file":         {command: []string{"./train.sh"}},
		"python3.99: command not found":    {o: Options{World: 8}, command: []string{"python3.99", "train.py"}},
	} {
		if c.command == nil {
			c.command = missing
		}
		_, err := New(context.Background(), c.o, observe.Options{Command: c.command, Env: []string{"PATH=/nowhere"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %q: %v; want %q", c.o, c.command, err, want)
		}
	}
}

func TestImaginable(t *testing.T) {
	for _, c := range []struct{ torch, tensorflow, jax, cuda, rocm, plugin, tfCUDA, tfCUDNN, note, fails string }{
		{torch: "2.15.0+cu130", cuda: "13.0"},
		{torch: "2.4.0", cuda: "12.1"},
		{torch: "2.3.1", cuda: "12.1", note: "cuDNN 8"},
		{torch: "2.0.1+cu117", cuda: "11.7", note: "cuDNN 8"},
		{torch: "1.13.1", cuda: "11.7", note: "cuDNN 8"},
		{torch: "nightly", cuda: "13.0"},
		{torch: "2.6.0+cpu", fails: "built for the CPU alone"},
		{torch: "2.6.0", rocm: "6.2", fails: "built for ROCm"},
		{tensorflow: "2.20.0", fails: "tensorflow 2.20.0 of python is built for the CPU alone"},
		{tensorflow: "2.21.0", tfCUDA: "12.5.1"},
		{tensorflow: "2.21.0", tfCUDA: "12.5.1", tfCUDNN: "9"},
		{tensorflow: "2.15.1", tfCUDA: "12.2", tfCUDNN: "8", fails: "tensorflow 2.15.1 of python brings cuDNN 8"},
		{jax: "0.7.2", fails: "jax 0.7.2 of python has no plugin for CUDA"},
		{jax: "0.7.2", plugin: "12"},
		{jax: "0.7.2", plugin: "13", torch: "2.6.0+cpu"},
		{jax: "0.7.2", torch: "2.6.0+cpu", fails: "built for the CPU alone"},
		{tensorflow: "2.20.0", jax: "0.7.2", torch: "2.15.0", cuda: "13.0"},
		{fails: "has none of PyTorch, TensorFlow, JAX and CuPy"},
	} {
		p := &pythons.Interpreter{Path: "python", Version: "3.11.7", Frameworks: map[string]string{},
			Build: frameworks.Build{CUDA: c.cuda, ROCm: c.rocm, JAXCUDA: c.plugin, TFCUDA: c.tfCUDA, TFCUDNN: c.tfCUDNN}}
		for name, version := range map[string]string{"torch": c.torch, "tensorflow": c.tensorflow, "jax": c.jax} {
			if version != "" {
				p.Frameworks[name] = version
			}
		}
		note, err := imaginable(p)
		if (note == "") != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%+v: note %q", c, note)
		}
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if note, err := imaginable(&pythons.Interpreter{Path: "python"}); note != "" || err != nil {
		t.Errorf("one that does not answer: %q, %v", note, err)
	}
}

// TestFollows: a smaller GPU of the same kind needs no run where the larger one never came near its
// memory, or ran out itself. Between those only a run can tell.
func TestFollows(t *testing.T) {
	c := gpus.Builtin()
	h200, _ := c.Find("h200")
	h100, _ := c.Find("h100-sxm")
	larger := func(verdict mem.Verdict, used mem.Bytes, failed uint64) *Result {
		v := &report.Imagined{GPUVerdict: mem.GPUVerdict{GPU: "h200", Verdict: verdict, Total: h200.Total,
			Context: h200.Overhead, Used: mem.Some(int64(used)), Label: mem.Imagined},
			Devices: []mem.ImaginedDevice{{Used: used, Total: h200.Total, Failed: failed}}}
		return &Result{Imagined: v, run: mem.NewRun()}
	}
	v, ok := follows(larger(mem.VerdictFits, 40*mem.GiB, 0), h100)
	if !ok || v.Verdict != mem.VerdictFits || v.Used != mem.Some(int64(40*mem.GiB-h200.Overhead+h100.Overhead)) ||
		v.Label != mem.Imagined || v.GPU != "h100-sxm" {
		t.Errorf("%+v %v", v, ok)
	}
	if v, ok = follows(larger(mem.VerdictFits, 78*mem.GiB, 0), h100); !ok || v.Verdict != mem.VerdictTight {
		t.Errorf("%+v %v", v, ok)
	}
	if _, ok = follows(larger(mem.VerdictFits, 90*mem.GiB, 0), h100); ok {
		t.Error("a GPU that is too small was judged without a run")
	}
	if _, ok = follows(larger(mem.VerdictFits, 40*mem.GiB, 1), h100); ok {
		t.Error("a run that was short of memory stands for another GPU")
	}
	if v, ok = follows(larger(mem.VerdictOOM, 139*mem.GiB, 1), h100); !ok || v.Verdict != mem.VerdictOOM ||
		v.Label != mem.Estimated || v.Used.Known() {
		t.Errorf("%+v %v", v, ok)
	}
	if _, ok = follows(larger(mem.VerdictFailed, 0, 0), h100); ok {
		t.Error("a failure was passed on")
	}
	share := larger(mem.VerdictFits, 40*mem.GiB, 0)
	share.Limit = mem.Some(int64(100 * mem.GiB))
	if _, ok = follows(share, h100); ok {
		t.Error("what takes a share of its GPU was judged for another by that share")
	}
}

// TestOthers: what is estimated of other GPUs carries its label, names those that run nothing of this build, and says
// nothing where only the allocator's cache lacks room: it would be emptied.
func TestOthers(t *testing.T) {
	known, built := gpus.Builtin(), Built{Architectures: "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"}
	l4, _ := known.Find("l4")
	own := mem.GPUVerdict{GPU: "l4", Verdict: mem.VerdictFits, Context: l4.Overhead,
		Allocated: mem.Some(int64(12 * mem.GiB)), Reserved: mem.Some(int64(18 * mem.GiB)),
		Used: mem.Some(int64(18*mem.GiB + l4.Overhead + 64*mem.MiB))}
	of := func(own mem.GPUVerdict) map[string]mem.GPUVerdict {
		found := map[string]mem.GPUVerdict{}
		for _, v := range Others(known.GPUs, built, &own, 1) {
			if v.Label != mem.Estimated {
				t.Errorf("%s is labelled %s", v.GPU, v.Label)
			}
			found[v.GPU] = v
		}
		return found
	}
	found := of(own)
	h100, _ := known.Find("h100-sxm")
	if v := found["h100-sxm"]; v.Verdict != mem.VerdictFits ||
		v.Headroom != mem.Some(int64(h100.Total-h100.Overhead-18*mem.GiB-64*mem.MiB)) {
		t.Errorf("what libraries take comes along: %+v", v)
	}
	for gpu, want := range map[string]string{"v100-32g": "no kernels for 7.0", "mi300x": "not with a CUDA build",
		"rtx4080": "only a run can tell"} {
		if v := found[gpu]; v.Verdict != mem.VerdictNone || !strings.Contains(v.Note, want) || v.Headroom.Known() {
			t.Errorf("%s: %+v", gpu, v)
		}
	}
	if v := found["rtx2080ti"]; v.Verdict != mem.VerdictOOM {
		t.Errorf("tensors alone are more than it has: %+v", v)
	}
	if _, there := found["l4"]; there {
		t.Error("the GPU itself was tried")
	}
	own.Verdict = mem.VerdictFailed
	if v, there := of(own)["h100-sxm"]; there {
		t.Errorf("estimated from a failure: %+v", v)
	}
}

// TestFollowsByReplay: where the smaller GPU is short of memory, the larger one's history tells what
// its allocator would have done: emptied its cache in time, or not.
func TestFollowsByReplay(t *testing.T) {
	data, err := os.ReadFile("../../testdata/real/h100-lm-ctx128-train-step.pickle")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gpus.Builtin().Find("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	fit, exact, err := replay.NewFit(testkit.Snapshot(t, "real/h100-lm-ctx128-train-step.pickle"), -1)
	if err != nil || !exact {
		t.Fatal(exact, err)
	}
	roomy, err := fit.Verdict(g.Total, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	const libraries = 10 * mem.MiB
	used := g.Overhead + libraries + roomy.Reserved
	larger := func(data []byte) *Result {
		run := mem.NewRun()
		run.Snapshots = []*mem.SnapshotFile{{Name: "exit.pickle", Format: "torch-pickle", Data: data, Complete: true}}
		return &Result{run: run, Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{GPU: g.Slug,
			Verdict: mem.VerdictFits, Total: g.Total,
			Context: g.Overhead, Used: mem.Some(int64(used)), Allocated: mem.Some(int64(roomy.Allocated)),
			Reserved: mem.Some(int64(roomy.Reserved)), Label: mem.Imagined},
			Devices: []mem.ImaginedDevice{{Used: used, Total: g.Total}}}}
	}
	small, least, enough := *g, fit.Least(), mem.Bytes(0)
	for enough = least; ; enough += 64 * mem.MiB {
		if v, err := fit.Verdict(g.Total, enough, ""); err != nil || v.Fits {
			break
		}
	}
	if enough >= roomy.Reserved {
		t.Fatal("this trace has nothing to give back")
	}
	small.Total = g.Overhead + libraries + enough
	v, ok := follows(larger(data), &small)
	if !ok || v.Verdict != mem.VerdictTight || v.Label != mem.Replayed || v.Used.Or(0) > int64(small.Total) ||
		v.Reserved.Or(0) > int64(enough) {
		t.Errorf("just enough: %+v %v", v, ok)
	}
	small.Total = g.Overhead + libraries + (least+roomy.Allocated)/2
	if v, ok = follows(larger(data), &small); !ok || v.Verdict != mem.VerdictOOM || v.Label != mem.Replayed ||
		v.Used.Known() {
		t.Errorf("too little: %+v %v", v, ok)
	}
	if v, ok = follows(larger(data[:len(data)/2]), &small); ok {
		t.Errorf("a broken history gave a verdict: %+v", v)
	}
}

func TestOrder(t *testing.T) {
	v := func(gpu string, verdict mem.Verdict, total mem.Bytes, price float64) mem.GPUVerdict {
		return mem.GPUVerdict{GPU: gpu, Verdict: verdict, Total: total, Price: price}
	}
	list := []mem.GPUVerdict{v("amd", mem.VerdictNone, 192, 2), v("small", mem.VerdictOOM, 8, 0.1),
		v("larger", mem.VerdictOOM, 12, 0.1),
		v("tight", mem.VerdictTight, 16, 0.1), v("unpriced", mem.VerdictFits, 24, 0), v("dear", mem.VerdictFits, 80, 4),
		v("cheap", mem.VerdictFits, 48, 0.5)}
	slices.SortStableFunc(list, compareVerdicts)
	var names []string
	for _, v := range list {
		names = append(names, v.GPU)
	}
	if got := strings.Join(names, " "); got != "cheap dear unpriced tight larger small amd" {
		t.Error(got)
	}
}

func TestPlay(t *testing.T) {
	for list, want := range map[string][]int{"": {0, 1, 64, 127}, "5": {5}, "0, 3,3": {0, 3},
		"0-3,127": {0, 1, 2, 3, 127}, "0-127/50,1": {0, 50, 100, 1}} {
		if got, err := parsePlay(list, 128); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v", list, got, err)
		}
	}
	if got, err := parsePlay("", 8); err != nil || !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("of eight stages none can be left out: %v %v", got, err)
	}
	for _, list := range []string{"128", "-1", "a", "0,,1", "3-1", "0-128", "0-8/0", "-3-4", "1/2", "0-"} {
		if got, err := parsePlay(list, 128); err == nil ||
			!strings.Contains(err.Error(), "--play "+list+": a world of 128 has no rank") {
			t.Errorf("%q: %v %v", list, got, err)
		}
	}
	if got, err := parsePlay("all", 64); err != nil || len(got) != 64 || got[63] != 63 {
		t.Errorf("all: %v %v", got, err)
	}
	if _, err := parsePlay("all", 128); err == nil || !strings.Contains(err.Error(), "128 ranks to play") {
		t.Errorf("more than are played: %v", err)
	}
	s := &Session{Options: Options{World: 128}, play: []int{0, 9, 127}}
	tr := trial{command: []string{"python", "it's.py"}, count: 8}
	command, states := s.played(&tr, "/dev/shm/x y")
	if len(states) != 3 || states[1].device(7) != "rank 9 nvidia:7" || command[0] != "/bin/sh" ||
		command[len(command)-1] != "it's.py" {
		t.Errorf("%q %+v", command, states)
	}
	for _, want := range []string{"RANK=9 LOCAL_RANK=1 GROUP_RANK=1",
		"HIGHTIDE_IMAGINE_PLAY=127/128 HIGHTIDE_DEVICE_TABLE='/dev/shm/x y/device-table-rank127'", "wait $p2 ||"} {
		if !strings.Contains(command[2], want) {
			t.Errorf("no %q in\n%s", want, command[2])
		}
	}
	if tr.env["WORLD_SIZE"] != "128" || tr.env["LOCAL_WORLD_SIZE"] != "8" {
		t.Errorf("%v", tr.env)
	}
}

func TestDeviceSpec(t *testing.T) {
	g := gpus.GPU{Slug: "x", Name: "A|B; C=\nD", Total: 5 << 30, Overhead: 7, Compute: "8.6", SMs: 72}
	want := "count=2;name=AB CD;slug=x;memory=5368709120;context=7;graph_node=10240;cc=8.6;sms=72"
	if got := DeviceSpec(&g, 2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	g.Compute, g.L2, g.Clock, g.Bandwidth = "8.0", 40<<20, 1410, 2039
	got, want := DeviceSpec(&g, 1), "cc=8.0;sms=72;l2=41943040;clock_khz=1410000;bus_bits=5120;memory_khz=1592969"
	if !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s at its end", got, want)
	}
}

// TestReadValue: LAPACK on the host faults on what is not, and no GPU would have computed it there.
func TestReadValue(t *testing.T) {
	for value, good := range map[string]bool{"0": true, "31=4096": true, "train.py:31=[3,5]": true, "12=True": true,
		"x=1": false, "3=[": false, "3=\"a\"": false, "-1.5": true, "1e38": true, "nan": false, "inf": false, "-Inf": false,
		"1e39": false, "one": false} {
		o := &Options{ReadValues: []string{value}}
		if err := o.Check(); good != (err == nil) {
			t.Errorf("--read-value %s: %v", value, err)
		}
	}
}

// TestKernelsOf: where the framework sets a limit, XLA compiles for the card's own cache and speed; PyTorch's kernels follow
// from the capability and the multiprocessors.
func TestKernelsOf(t *testing.T) {
	one := gpus.GPU{Compute: "8.0", SMs: 108, L2: 40 << 20, Clock: 1410, Bandwidth: 2039}
	other := one
	other.Bandwidth = 1555
	torch, jax := &Result{}, &Result{}
	torch.Imagined, jax.Imagined = &report.Imagined{}, &report.Imagined{Limit: mem.Some(1 << 30)}
	if kernelsOf(&one, torch) != kernelsOf(&other, torch) || kernelsOf(&one, jax) == kernelsOf(&other, jax) {
		t.Errorf("%q, %q", kernelsOf(&one, jax), kernelsOf(&other, jax))
	}
}
