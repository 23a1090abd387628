package analyze

import (
	"encoding/json"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// imagineRun is a training imagined on an A10: frames as agent, books and engine write them.
func imagineRun(code int64, frames ...mem.Frame) *mem.Run {
	run := mem.NewRun()
	all := []mem.Frame{
		mem.RunInfo{ID: "01k8h2m4xq7v", Verb: "imagine", Label: mem.Imagined, Command: []string{"python", "train.py", "--batch-size", "32"}, Version: "1", StartMono: 1, StartWall: 1,
			Options: map[string]string{"gpu": "a10", "gpu_name": "NVIDIA A10", "compute_capability": "8.6", "multiprocessors": "72", "gpus": "1", "total_bytes": "23609475072",
				"context_overhead_bytes": "360185856", "tight_below_bytes": "1180473753", "price_usd_per_hour": "1.29", "alloc_conf": "default", "sizes": "upper", "steps": "auto"}},
		mem.Process{ID: 1, PID: 41, Role: "main", Python: "3.13.1", Frameworks: map[string]string{"torch": "2.15.0"}, Facts: map[string]string{"torch.cuda": "13.0"}, Start: 1},
		mem.SeriesDef{ID: 1, Process: 1, Device: "cuda:0", Name: mem.SeriesReserved, Unit: mem.UnitBytes, Label: mem.Imagined},
		mem.Samples{Series: 1, Times: []int64{1e9, 2e9}, Values: []int64{2 << 30, 5 << 30}},
		mem.Event{Kind: "imagine.peak", Time: 2e9, Process: 1, Facts: map[string]string{"device": "cuda:0", "allocated_bytes": "5000000000", "reserved_bytes": "5600000000", "phase": "backward", "step": "1"}},
		mem.Event{Kind: "imagine.policy", Time: 2e9, Process: 1, Where: &mem.Location{File: "/home/me/train.py", Line: 31}, Facts: map[string]string{"op": "nonzero", "policy": "upper", "count": "2"}},
		mem.Event{Kind: "imagine.policy", Time: 3e9, Process: 1, Where: &mem.Location{File: "/home/me/train.py", Line: 31}, Facts: map[string]string{"op": "nonzero", "policy": "upper", "count": "6"}},
		mem.Event{Kind: "imagine.categories", Time: 3e9, Process: 1, Facts: map[string]string{"device": "cuda:0", "parameters": "1000000000", "gradients": "1000000000", "optimizer": "2000000000", "activations": "1000000000"}},
		mem.Event{Kind: "imagine.not_reached", Time: 3e9, Process: 1, Text: "no call of eval() was seen", Facts: map[string]string{"what": "evaluation"}},
		mem.Event{Kind: "imagine.condition", Time: 3e9, Process: 1, Facts: map[string]string{"name": "attention", "value": "flash"}},
	}
	for _, f := range append(all, frames...) {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
	if err := run.Add(mem.End{Time: 4e9, ExitCode: mem.Some(code), Reason: "exit"}); err != nil {
		panic(err)
	}
	return run
}

// books are the engine's events at the end.
func books(used int64, more ...mem.Frame) []mem.Frame {
	return append([]mem.Frame{
		EngineEvent(KindImaginedDevice, 4e9, 0, "", report.ImaginedDevice{GPU: "a10", Total: 23609475072, Used: mem.Bytes(used), Context: 360185856}),
		EngineEvent(KindDeviceProcess, 4e9, 1, "", DeviceProcessFacts{Device: "nvidia:0", Used: used, Parts: map[string]int64{"allocated": used - 360185856, "context": 360185856}}),
		EngineEvent(KindImaginedRead, 4e9, 1, "", report.ReadBack{File: "/home/me/train.py", Line: 40, Count: 12, Bytes: 96}),
		EngineEvent(KindImaginedCall, 4e9, 0, "", CallFacts{Name: "cusparseSpMM", Count: 3}),
	}, more...)
}

func TestVerdicts(t *testing.T) {
	oom := mem.Event{Kind: "oom", Time: 3e9, Process: 1, Step: mem.Some(1), Bytes: mem.Some(1 << 30), Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}}
	for name, c := range map[string]struct {
		run  *mem.Run
		want string
		says string
	}{
		"fits":     {imagineRun(0, books(6<<30)...), report.VerdictFits, "Fits on NVIDIA A10: 6.00 GiB of 22.0 GiB"},
		"tight":    {imagineRun(0, books(23609475072-500<<20)...), report.VerdictTight, "tightly"},
		"oom":      {imagineRun(1, books(23609475072, oom)...), report.VerdictOOM, "out of memory in step 2"},
		"by words": {imagineRun(1, books(1<<30, mem.Event{Kind: "exception", Time: 3e9, Process: 1, Text: "CUDA out of memory. Tried"})...), report.VerdictOOM, "Does not fit"},
		"caught":   {imagineRun(0, books(6<<30, oom)...), report.VerdictFits, "Fits"},
		"failed":   {imagineRun(1, books(1<<30, mem.Event{Kind: "exception", Time: 3e9, Process: 1, Text: "no such file"})...), report.VerdictFailed, "reason of its own"},
		"host":     {imagineRun(1, books(1<<30, mem.Event{Kind: "oom", Time: 3e9, Process: 1, Facts: map[string]string{"source": "torch.cpu", "device": "cpu"}})...), report.VerdictFailed, "No verdict"},
		"malloc":   {imagineRun(1, books(1<<30, mem.Event{Kind: "oom", Time: 3e9, Process: 1, Facts: map[string]string{"source": "malloc"}})...), report.VerdictFailed, "No verdict"},
		"unused":   {imagineRun(0), report.VerdictUnused, "touched no GPU"},
	} {
		r := Analyze(c.run, Options{})
		if r.Imagined == nil || r.Imagined.Verdict != c.want || !strings.Contains(r.Headline.Verdict, c.says) {
			t.Errorf("%s: %+v %s", name, r.Imagined, r.Headline.Verdict)
		}
		if v := Judge(c.run); v.Verdict != c.want {
			t.Errorf("%s: judged %s", name, v.Verdict)
		}
	}
}

func TestImaginedFigures(t *testing.T) {
	v := Analyze(imagineRun(0, books(6<<30)...), Options{}).Imagined
	if v.Allocated != mem.Some(5000000000) || v.Reserved != mem.Some(5600000000) || v.Headroom != mem.Some(23609475072-6<<30) {
		t.Errorf("%+v", v.GPUVerdict)
	}
	if len(v.Policies) != 1 || v.Policies[0].Count != 6 || v.ReadBack != 96 || v.Calls["cusparseSpMM"] != 3 || v.PeakPhase != mem.PhaseBackward || v.Conditions["torch"] != "2.15.0" {
		t.Errorf("%+v", v)
	}
	if r := Analyze(leakRun(), Options{}); r.Imagined != nil {
		t.Error("a real run was judged")
	}
}

// TestVariations: the run that was asked for heads the table, and what could not be taken changes no verdict.
func TestVariations(t *testing.T) {
	vary := func(what, verdict string, used mem.Optional) mem.Frame {
		v := report.GPUVerdict{GPU: "a10", Verdict: verdict, Total: 23609475072, Used: used, Label: mem.Imagined}
		return EngineEvent(KindImaginedVary, 4e9, 0, "", report.Try{What: what, GPUVerdict: v})
	}
	run := imagineRun(0, books(6<<30, vary("expandable segments", report.VerdictFits, mem.Some(5<<30)), vary("math attention", report.VerdictOOM, mem.Optional{}),
		vary("flash attention", report.VerdictNone, mem.Optional{}))...)
	text := Analyze(run, Options{}).Text(report.TextOptions{Width: 100})
	for _, want := range []string{"as asked for", "flash attention not usable", "lies between 5.00 GiB and 6.00", "In 1 of 2 variations the verdict is another one"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := Analyze(imagineRun(0, books(6<<30)...), Options{}).Text(report.TextOptions{}); strings.Contains(got, "With one condition changed") {
		t.Error("a run without variations shows a table of them")
	}
}

// TestImaginedGolden: the report of a program that does not fit, with what was tried.
func TestImaginedGolden(t *testing.T) {
	try := func(kind, what, verdict string, used int64) mem.Frame {
		v := report.GPUVerdict{GPU: "a10", GPUName: "NVIDIA A10", Verdict: verdict, Total: 23609475072, Used: mem.Some(used), Label: mem.Imagined}
		if verdict != report.VerdictOOM {
			v.Headroom = mem.Some(23609475072 - used)
		}
		return EngineEvent(KindImaginedTry, 4e9, 0, "", report.Try{Kind: kind, What: what, GPUVerdict: v})
	}
	run := imagineRun(1, books(23609475072-100<<20,
		mem.Event{Kind: "oom", Time: 3e9, Process: 1, Step: mem.Some(1), Bytes: mem.Some(1 << 30), Text: "CUDA out of memory. Tried to allocate 1024.00 MiB.",
			Where: &mem.Location{File: "/home/me/train.py", Line: 52, Function: "step"}, Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}},
		try("batch", "batch 16 instead of 32", report.VerdictFits, 12<<30), try("allocator", "expandable segments", report.VerdictTight, 21<<30),
		try("checkpointing", "activation checkpointing", report.VerdictOOM, 21<<30), try(report.TryMemory, "NVIDIA A10 with all the memory it wants", report.VerdictFits, 26<<30))...)
	r := Analyze(run, Options{})
	golden(t, "imagine-oom.txt", r.Text(report.TextOptions{Width: 100}))
	text, err := json.MarshalIndent(r.Imagined, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "imagine-oom.json", string(text)+"\n")
	all := imagineRun(0, books(6<<30)...)
	for i, g := range []report.GPUVerdict{
		{GPU: "rtx3090", GPUName: "GeForce RTX 3090", Verdict: report.VerdictFits, Total: 25447170048, Used: mem.Some(6 << 30), Headroom: mem.Some(19 << 30), Price: 0.22, Label: mem.Imagined},
		{GPU: "t4", GPUName: "Tesla T4", Verdict: report.VerdictTight, Total: 15642329088, Used: mem.Some(14 << 30), Headroom: mem.Some(600 << 20), Price: 0.53, Label: mem.Imagined},
		{GPU: "rtx3080", GPUName: "GeForce RTX 3080 10GB", Verdict: report.VerdictOOM, Total: 10495197184, Label: mem.Imagined, Note: "in step 1"},
		{GPU: "mi300x", GPUName: "AMD Instinct MI300X", Verdict: report.VerdictNone, Total: 206141652992, Price: 2.59, Note: "not with a CUDA build"},
	} {
		if err := all.Add(EngineEvent(KindImaginedGPU, int64(4e9)+int64(i), 0, "", g)); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "imagine-all.txt", Analyze(all, Options{}).Text(report.TextOptions{Width: 100}))
}

// FuzzImagined: no recording, however it was made, breaks the verdict.
func FuzzImagined(f *testing.F) {
	f.Add("imagine.gpu", "json", `{"gpu":"x","verdict":"fits","peak_device_used_bytes":-1}`)
	f.Add("imagine.categories", "parameters", "-9223372036854775808")
	f.Add(KindImaginedDevice, "json", `{"total_bytes":1,"peak_used_bytes":9223372036854775807}`)
	f.Add(KindDeviceProcess, "json", `{"device":"","peak_used_bytes":1}`)
	f.Fuzz(func(t *testing.T, kind, key, value string) {
		run := imagineRun(0, books(6<<30, mem.Event{Kind: kind, Time: 3e9, Process: 1, Facts: map[string]string{key: value}})...)
		r := Analyze(run, Options{})
		_ = r.Text(report.TextOptions{Width: 60})
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
