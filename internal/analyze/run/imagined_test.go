package run

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// imagineRun is a training imagined on an A10: frames as agent, device table and engine write them.
func imagineRun(code int64, frames ...mem.Frame) *mem.Run {
	run := mem.NewRun()
	all := []mem.Frame{
		mem.RunInfo{ID: "01k8h2m4xq7v", Verb: "imagine", Label: mem.Imagined,
			Command: []string{"python", "train.py", "--batch-size", "32"}, Version: "1", StartMono: 1, StartWall: 1},
		mem.ImaginedSetup{GPU: "a10", Name: "NVIDIA A10", Compute: "8.6", SMs: 72, Count: 1, Total: 23609475072,
			Context: 360185856, Tight: 1180473753, Price: 1.29,
			AllocConf: "default", Sizes: "upper", Steps: "auto"},
		mem.Process{ID: 1, PID: 41, Role: "main", Python: "3.13.1", Frameworks: map[string]string{"torch": "2.15.0"},
			Facts: map[string]string{"torch.cuda": "13.0"}, Start: 1},
		mem.SeriesDef{ID: 1, Process: 1, Device: "cuda:0", Name: mem.SeriesReserved, Unit: mem.UnitBytes,
			Label: mem.Imagined},
		mem.Samples{Series: 1, Times: []int64{1e9, 2e9}, Values: []int64{2 << 30, 5 << 30}},
		mem.DevicePeak{Time: 2e9, Process: 1, Device: "cuda:0", Allocated: mem.Some(5000000000),
			Reserved: mem.Some(5600000000), Phase: mem.PhaseBackward, Step: mem.Some(1)},
		mem.DataSize{Process: 1, Location: mem.Location{File: "/home/me/train.py", Line: 31}, Op: "nonzero",
			Policy: "upper", Count: 2},
		mem.DataSize{Process: 1, Location: mem.Location{File: "/home/me/train.py", Line: 31}, Op: "nonzero",
			Policy: "upper", Count: 6},
		mem.PeakParts{Process: 1, Device: "cuda:0", Parameters: mem.Some(1000000000), Gradients: mem.Some(1000000000),
			Optimizer: mem.Some(2000000000), Activations: mem.Some(1000000000)},
		mem.Unreached{Process: 1, What: "evaluation", Text: "no call of eval() was seen"},
		mem.Condition{Process: 1, Name: "attention", Value: "flash"},
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

// atTheEnd are the engine's frames at the end.
func atTheEnd(used int64, more ...mem.Frame) []mem.Frame {
	return append([]mem.Frame{
		mem.ImaginedDevice{GPU: "a10", Total: 23609475072, Used: mem.Bytes(used), Context: 360185856},
		mem.DeviceUse{Process: 1, Device: "nvidia:0", Used: mem.Bytes(used),
			Parts: map[string]mem.Bytes{"allocated": mem.Bytes(used - 360185856), "context": 360185856}},
		mem.ReadBack{Process: 1, Location: mem.Location{File: "/home/me/train.py", Line: 40}, Count: 12, Bytes: 96},
		mem.LibraryCall{Name: "cusparseSpMM", Count: 3},
	}, more...)
}

func TestVerdicts(t *testing.T) {
	oom := mem.Event{Kind: "oom", Time: 3e9, Process: 1, Step: mem.Some(1), Bytes: mem.Some(1 << 30),
		Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}}
	for name, c := range map[string]struct {
		run  *mem.Run
		want mem.Verdict
		says string
	}{
		"fits":  {imagineRun(0, atTheEnd(6<<30)...), mem.VerdictFits, "Fits on NVIDIA A10: 6.00 GiB of 22.0 GiB"},
		"tight": {imagineRun(0, atTheEnd(23609475072-500<<20)...), mem.VerdictTight, "tightly"},
		"oom":   {imagineRun(1, atTheEnd(23609475072, oom)...), mem.VerdictOOM, "out of memory in step 2"},
		"by words": {imagineRun(1, atTheEnd(1<<30, mem.Event{Kind: "exception", Time: 3e9, Process: 1,
			Text: "CUDA out of memory. Tried"})...), mem.VerdictOOM, "Does not fit"},
		"caught": {imagineRun(0, atTheEnd(6<<30, oom)...), mem.VerdictFits, "Fits"},
		"failed": {imagineRun(1, atTheEnd(1<<30, mem.Event{Kind: "exception", Time: 3e9, Process: 1,
			Text: "no such file"})...), mem.VerdictFailed, "reason of its own"},
		"host": {imagineRun(1, atTheEnd(1<<30, mem.Event{Kind: "oom", Time: 3e9, Process: 1,
			Facts: map[string]string{"source": "torch.cpu", "device": "cpu"}})...), mem.VerdictFailed, "No verdict"},
		"malloc": {imagineRun(1, atTheEnd(1<<30, mem.Event{Kind: "oom", Time: 3e9, Process: 1,
			Facts: map[string]string{"source": "malloc"}})...), mem.VerdictFailed, "No verdict"},
		"unused": {imagineRun(0), mem.VerdictUnused, "touched no GPU"},
		"lost": {imagineRun(0, mem.Drop{Place: "disk", Records: 822}), mem.VerdictFailed,
			"No verdict on NVIDIA A10: what it used was not recorded: 822 records could not be written"},
	} {
		r := Analyze(c.run, Options{})
		if r.Imagined == nil || r.Imagined.Verdict != c.want || !strings.Contains(r.Headline.Verdict, c.says) {
			t.Errorf("%s: %+v %s", name, r.Imagined, r.Headline.Verdict)
		}
		if v := imagined.Judge(c.run); v.Verdict != c.want {
			t.Errorf("%s: judged %s", name, v.Verdict)
		}
	}
}

// TestConditionalVerdicts: a number that no kernel computed and that decides something makes a verdict conditional,
// which names its line. It does not where the other end of what it can be took the same.
func TestConditionalVerdicts(t *testing.T) {
	read := func(change func(*mem.ReadBack)) mem.Frame {
		r := mem.ReadBack{Process: 1, Agent: true, Location: mem.Location{File: "/home/me/train.py", Line: 12}, Count: 1,
			Use: "size", Number: "int", Value: "8192", Upper: mem.Some(8192)}
		if change != nil {
			change(&r)
		}
		return r
	}
	other := func(verdict mem.Verdict, used int64) mem.Frame {
		v := mem.GPUVerdict{GPU: "a10", Verdict: verdict, Total: 23609475072, Used: mem.Some(used),
			Allocated: mem.Some(5000000000), Reserved: mem.Some(5600000000), Label: mem.Imagined}
		return mem.Trial{Set: mem.TrialValues, Try: mem.Try{GPUVerdict: v}}
	}
	ones := func(verdict mem.Verdict, used int64) mem.Frame {
		trial := other(verdict, used).(mem.Trial)
		trial.Kind = mem.TryOnes
		return trial
	}
	zeros := mem.ReadBack{Process: 1, Location: mem.Location{File: "/home/me/train.py", Line: 12}, Count: 1, Bytes: 4}
	divided := mem.Event{Kind: "exception", Time: 4e9, Process: 1, Text: "division by zero",
		Facts: map[string]string{"class": "ZeroDivisionError"}, Where: &mem.Location{File: "/home/me/train.py", Line: 12}}
	oom := mem.Event{Kind: "oom", Time: 3e9, Process: 1, Facts: map[string]string{"source": "torch.cuda",
		"device": "cuda:0"}}
	for name, c := range map[string]struct {
		run  *mem.Run
		want mem.Verdict
		says string
	}{
		"alone": {imagineRun(0, atTheEnd(6<<30, read(nil))...), mem.VerdictConditional,
			"if the whole number read at train.py:12, which is a size, is 8192: 8192 takes 6.00 GiB of 22.0 GiB"},
		"same": {imagineRun(0, atTheEnd(6<<30, read(nil), other(mem.VerdictConditional, 6<<30))...), mem.VerdictFits,
			"Fits on NVIDIA A10: 6.00 GiB"},
		"differs": {imagineRun(0, atTheEnd(6<<30, read(nil), other(mem.VerdictConditional, 2<<30))...),
			mem.VerdictConditional,
			"takes no more between its ends than at them: 8192 takes 6.00 GiB of 22.0 GiB, 0 takes 2.00 GiB"},
		"only less": {imagineRun(1, atTheEnd(23<<30, oom, read(nil), other(mem.VerdictConditional, 2<<30))...),
			mem.VerdictConditional, "is less: 8192 runs out of memory, 0 takes 2.00 GiB"},
		"neither": {imagineRun(1, atTheEnd(23<<30, oom, read(nil), other(mem.VerdictOOM, 2<<30))...), mem.VerdictOOM,
			"Does not fit"},
		"more": {imagineRun(0, atTheEnd(6<<30,
			read(func(r *mem.ReadBack) { r.Number, r.Value, r.Use = "bool", "false", "branch" }),
			other(mem.VerdictOOM, 0))...), mem.VerdictConditional, "the truth value read at train.py:12, which decides a branch, is false: false takes 6.00 GiB of 22.0 GiB, true runs out of memory"},
		"unbounded": {imagineRun(0, atTheEnd(6<<30, read(func(r *mem.ReadBack) { r.Upper = mem.Optional{} }),
			other(mem.VerdictConditional, 6<<30))...), mem.VerdictConditional, "train.py:12"},
		"untrained": {imagineRun(0, atTheEnd(6<<30, mem.Unreached{Process: 1, What: "training",
			Text: "an optimizer was built and took no step"})...), mem.VerdictFailed, "No verdict on NVIDIA A10: its training never began"},
		"swallowed": {imagineRun(0, atTheEnd(6<<30, oom, mem.Unreached{Process: 1, What: "training",
			Text: "an optimizer was built and took no step"})...), mem.VerdictOOM, "the program caught it and took no step"},
		"halved": {imagineRun(0, atTheEnd(6<<30, oom, oom)...), mem.VerdictFits,
			"after 2 out-of-memory errors that it caught"},
		"otherwise": {imagineRun(1, atTheEnd(6<<30, oom, mem.Event{Kind: "exception", Time: 4e9, Process: 1,
			Text: "no such key\nin the table", Facts: map[string]string{"class": "KeyError"}})...), mem.VerdictFailed, "a reason of its own, KeyError: no such key …"},
		"wrapped": {imagineRun(1, atTheEnd(6<<30, oom, mem.Event{Kind: "exception", Time: 4e9, Process: 1,
			Text: "no batch fits", Facts: map[string]string{"class": "ValueError",
				"from": "OutOfMemoryError: CUDA out of memory"}})...), mem.VerdictOOM, "Does not fit"},
		"boolean": {imagineRun(1, atTheEnd(23<<30, oom,
			read(func(r *mem.ReadBack) { r.Number, r.Value, r.Use = "bool", "false", "branch" }),
			other(mem.VerdictConditional, 2<<30))...), mem.VerdictConditional, "which decides a branch, is true: false runs out of memory, true takes 2.00 GiB"},
		"steps": {imagineRun(0, atTheEnd(6<<30, mem.StepTotal{Process: 1, Steps: 4})...), mem.VerdictFits,
			"judged over 4 steps, without its evaluation"},
		"caught": {imagineRun(0, atTheEnd(6<<30,
			read(func(r *mem.ReadBack) { r.Number, r.Value, r.Use = "bool", "true", report.UseCaught }),
			other(mem.VerdictConditional, 2<<30))...), mem.VerdictFits, "Fits on NVIDIA A10: 6.00 GiB"},
		"catches": {imagineRun(0, atTheEnd(6<<30,
			read(func(r *mem.ReadBack) { r.Number, r.Value, r.Use = "bool", "true", report.UseCaught }),
			other(mem.VerdictOOM, 0))...), mem.VerdictConditional, "which decides whether an exception is raised that the program catches, is true: true takes 6.00 GiB of 22.0 GiB, false runs out of memory"},
		"zeros": {imagineRun(1, atTheEnd(1<<30, zeros, divided, ones(mem.VerdictFits, 6<<30))...),
			mem.VerdictConditional, "Fits on NVIDIA A10 if the numbers read at train.py:40 and 1 line more are not zero: " +
				"with ones (rows that sum to one) it takes 6.00 GiB of 22.0 GiB, with zeros it fails, ZeroDivisionError: " +
				"division by zero at train.py:12 (imagined)"},
		"ones too": {imagineRun(1, atTheEnd(1<<30, zeros, divided, ones(mem.VerdictFailed, 1<<30))...), mem.VerdictFailed,
			"No verdict on NVIDIA A10: the program failed, ZeroDivisionError: division by zero at train.py:12; it fails with " +
				"zeros as with ones (rows that sum to one) in place of the numbers that it read and no kernel computed, at " +
				"train.py:40 and 1 line more: --read-value train.py:40=VALUE answers it"},
		"a check": {imagineRun(1, atTheEnd(1<<30, zeros, divided, ones(mem.VerdictFailed, 1<<30),
			read(func(r *mem.ReadBack) { r.Number, r.Value, r.Use, r.UseLine = "float", "0", mem.UseCheck, 14 }))...), mem.VerdictFailed, "at train.py:12 and 1 line more: --read-value train.py:12=VALUE answers it"},
		"ones more": {imagineRun(1, atTheEnd(1<<30, zeros, divided, ones(mem.VerdictOOM, 1<<30))...), mem.VerdictFailed,
			"it runs out of memory"},
		"answered": {imagineRun(0, atTheEnd(6<<30, read(func(r *mem.ReadBack) { r.Answered = true }))...), mem.VerdictFits,
			"Fits"},
		"printed": {imagineRun(0, atTheEnd(6<<30, read(func(r *mem.ReadBack) { r.Use = "nothing" }))...), mem.VerdictFits,
			"Fits"},
	} {
		r := Analyze(c.run, Options{})
		if r.Imagined.Verdict != c.want || !strings.Contains(r.Headline.Verdict, c.says) {
			t.Errorf("%s: %s %s", name, r.Imagined.Verdict, r.Headline.Verdict)
		}
		if text := r.Text(report.TextOptions{Width: 500}); c.want == mem.VerdictConditional && !strings.Contains(text, "--read-value train.py:12=VALUE") {
			t.Errorf("%s: no way to answer it in\n%s", name, text)
		}
	}
}

func TestImaginedFigures(t *testing.T) {
	v := Analyze(imagineRun(0, atTheEnd(6<<30)...), Options{}).Imagined
	if v.Allocated != mem.Some(5000000000) || v.Reserved != mem.Some(5600000000) ||
		v.Headroom != mem.Some(23609475072-6<<30) {
		t.Errorf("%+v", v.GPUVerdict)
	}
	if len(v.Policies) != 1 || v.Policies[0].Count != 6 || v.ReadBack != 96 || v.Calls["cusparseSpMM"] != 3 ||
		v.PeakPhase != mem.PhaseBackward || v.Conditions["torch"] != "2.15.0" {
		t.Errorf("%+v", v)
	}
	if r := Analyze(leakRun(), Options{}); r.Imagined != nil {
		t.Error("a real run was judged")
	}
}

// TestImaginedStepTime: no kernel ran, so the time between two steps is not told as that of a step; of a real run it
// is.
func TestImaginedStepTime(t *testing.T) {
	took := mem.Steps{{Process: 1, Number: 1, Time: 1e9, Duration: 7e8}, {Process: 1, Number: 2, Time: 2e9, Duration: 8e8}}
	run := imagineRun(0, append(atTheEnd(6<<30), took)...)
	if h := Analyze(run, Options{}).Headline; h.StepTime.Known() {
		t.Errorf("of an imagined run: %v", h.StepTime)
	}
	run.Info.Verb, run.Info.Label = "run", mem.Measured
	if h := Analyze(run, Options{}).Headline; h.StepTime != mem.Some(8e8) {
		t.Errorf("of a real run: %v", h.StepTime)
	}
}

// TestVariations: the run that was asked for heads the table, and what could not be taken changes no verdict.
func TestVariations(t *testing.T) {
	vary := func(what string, verdict mem.Verdict, used mem.Optional) mem.Frame {
		v := mem.GPUVerdict{GPU: "a10", Verdict: verdict, Total: 23609475072, Used: used, Label: mem.Imagined}
		return mem.Trial{Set: mem.TrialVariation, Try: mem.Try{What: what, GPUVerdict: v}}
	}
	run := imagineRun(0, atTheEnd(6<<30, vary("expandable segments", mem.VerdictFits, mem.Some(5<<30)),
		vary("math attention", mem.VerdictOOM, mem.Optional{}),
		vary("flash attention", mem.VerdictNone, mem.Optional{}))...)
	text := Analyze(run, Options{}).Text(report.TextOptions{Width: 100})
	for _, want := range []string{"as asked for", "flash attention not usable", "lies between 5.00 GiB and 6.00",
		"In 1 of 2 variations the verdict is another one"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := Analyze(imagineRun(0, atTheEnd(6<<30)...), Options{}).Text(report.TextOptions{}); strings.Contains(got, "With one condition changed") {
		t.Error("a run without variations shows a table of them")
	}
}

// TestTriedAdvice: no finding advises what was tried and is not enough; what fits is told with what it leaves.
func TestTriedAdvice(t *testing.T) {
	try := func(kind, what string, verdict mem.Verdict, room int64) mem.Try {
		v := mem.GPUVerdict{Verdict: verdict, Headroom: mem.Some(room)}
		return mem.Try{Kind: kind, What: what, GPUVerdict: v}
	}
	const setting = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
	for _, test := range []struct {
		tries       []mem.Try
		oom, pieces string
	}{
		{nil, "general", setting},
		{[]mem.Try{try("allocator", "expandable segments", mem.VerdictOOM, -1)},
			"Use a GPU with more memory, or a smaller model, batch or sequence. Tried, and not enough: expandable segments.", ""},
		{[]mem.Try{try("gpu", "on l4 ($0.80 an hour)", mem.VerdictFits, 2<<30), try("allocator", "expandable segments", mem.VerdictOOM, -1)},
			"Run it on l4 ($0.80 an hour; 2.00 GiB to spare): that was tried and fits. Tried, and not enough: expandable segments.", ""},
		{[]mem.Try{try("batch", "batch 4 instead of 8", mem.VerdictTight, 1<<20),
			try("allocator", "expandable segments", mem.VerdictFits, 1<<30)},
			"Run it with batch 4 instead of 8 (tight, 1.00 MiB to spare), or with expandable segments (1.00 GiB to spare): " +
				"each was tried and fits.",
			"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: that was tried and fits."},
	} {
		found := []report.Finding{{Kind: report.KindOOM, Label: mem.Imagined, Advice: "general"},
			{Kind: report.KindFragmentation, Label: mem.Imagined, Advice: setting}}
		imagined.Tried(&report.Imagined{Tries: test.tries}, found)
		if oom, pieces := found[0].Advice, found[1].Advice; oom != test.oom || pieces != test.pieces {
			t.Errorf("%v:\n%s\n%s", test.tries, oom, pieces)
		}
	}
}

// TestImaginedGolden: the report of a program that does not fit, with what was tried.
// TestTriedWithOwnLimit: the advice for a program that limits itself is to raise that, and no larger GPU.
func TestTriedWithOwnLimit(t *testing.T) {
	v := &report.Imagined{OwnLimit: mem.Some(6 << 30), Tries: []mem.Try{
		{Kind: mem.TryMemory, GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFits, Used: mem.Some(8 << 30)}},
		{Kind: "allocator", What: "expandable segments", GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictOOM}}}}
	v.Total = 24 << 30
	found := []report.Finding{{Kind: report.KindOOM, Label: mem.Imagined, Advice: "Raise that limit."}}
	imagined.Tried(v, found)
	if want := "Raise that limit. Without that limit it takes 8.00 GiB, as was tried; the device has 24.0 GiB."; found[0].Advice != want {
		t.Errorf("%s\nwant %s", found[0].Advice, want)
	}
	run := imagineRun(1, atTheEnd(6<<30, mem.Event{Kind: "oom", Time: 2e9, Process: 1, Bytes: mem.Some(64 << 20),
		Numbers: map[string]int64{mem.NumberOwnLimit: 6 << 30}, Facts: map[string]string{"device": "cuda:0", "source": "torch.cuda"}})...)
	if text := Analyze(run, Options{}).Headline.Verdict; !strings.Contains(text, "where the program limits itself to 6.00 GiB") {
		t.Error(text)
	}
}

func TestImaginedGolden(t *testing.T) {
	try := func(kind, what string, verdict mem.Verdict, used int64) mem.Frame {
		v := mem.GPUVerdict{GPU: "a10", GPUName: "NVIDIA A10", Verdict: verdict, Total: 23609475072, Used: mem.Some(used),
			Label: mem.Imagined}
		if verdict != mem.VerdictOOM {
			v.Headroom = mem.Some(23609475072 - used)
		}
		return mem.Trial{Set: mem.TrialTry, Try: mem.Try{Kind: kind, What: what, GPUVerdict: v}}
	}
	run := imagineRun(1, atTheEnd(23609475072-100<<20,
		mem.Event{Kind: "oom", Time: 3e9, Process: 1, Step: mem.Some(1), Bytes: mem.Some(1 << 30),
			Text:  "CUDA out of memory. Tried to allocate 1024.00 MiB.",
			Where: &mem.Location{File: "/home/me/train.py", Line: 52, Function: "step"},
			Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}},
		try("batch", "batch 16 instead of 32", mem.VerdictFits, 12<<30),
		try("allocator", "expandable segments", mem.VerdictTight, 21<<30),
		try("checkpointing", "activation checkpointing", mem.VerdictOOM, 21<<30),
		try(mem.TryMemory, "NVIDIA A10 with all the memory it wants", mem.VerdictFits, 26<<30))...)
	r := Analyze(run, Options{})
	golden(t, "imagine-oom.txt", r.Text(report.TextOptions{Width: 100}))
	text, err := json.MarshalIndent(r.Imagined, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "imagine-oom.json", string(text)+"\n")
	all := imagineRun(0, atTheEnd(6<<30)...)
	for _, g := range []mem.GPUVerdict{
		{GPU: "rtx3090", GPUName: "GeForce RTX 3090", Verdict: mem.VerdictFits, Total: 25447170048, Used: mem.Some(6 << 30),
			Headroom: mem.Some(19 << 30), Price: 0.22, Label: mem.Imagined},
		{GPU: "t4", GPUName: "Tesla T4", Verdict: mem.VerdictTight, Total: 15642329088, Used: mem.Some(14 << 30),
			Headroom: mem.Some(600 << 20), Price: 0.53, Label: mem.Imagined},
		{GPU: "rtx3080", GPUName: "GeForce RTX 3080 10GB", Verdict: mem.VerdictOOM, Total: 10495197184, Label: mem.Imagined,
			Note: "in step 1"},
		{GPU: "mi300x", GPUName: "AMD Instinct MI300X", Verdict: mem.VerdictNone, Total: 206141652992, Price: 2.59,
			Note: "not with a CUDA build"},
	} {
		if err := all.Add(mem.Trial{Set: mem.TrialCatalogue, Try: mem.Try{GPUVerdict: g}}); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "imagine-all.txt", Analyze(all, Options{}).Text(report.TextOptions{Width: 100}))
}

// FuzzImagined: no recording, however it was made, breaks the verdict.
func FuzzImagined(f *testing.F) {
	f.Add(int64(-1), int64(math.MinInt64), "cuda:0", "fits")
	f.Add(int64(math.MaxInt64), int64(1), "", "oom")
	f.Add(int64(1), int64(math.MaxInt64), "nvidia:0", "")
	f.Fuzz(func(t *testing.T, a, b int64, text, verdict string) {
		run := imagineRun(0, atTheEnd(6<<30,
			mem.ImaginedSetup{GPU: text, Name: text, Count: int(a), Total: mem.Bytes(a), Context: mem.Bytes(b),
				Tight: mem.Bytes(b), Price: float64(a)},
			mem.ImaginedDevice{Index: int(b), GPU: text, Total: mem.Bytes(a), Used: mem.Bytes(b)},
			mem.DeviceUse{Process: uint32(a), Device: text, Index: int(b), Used: mem.Bytes(a),
				Parts: map[string]mem.Bytes{text: mem.Bytes(b)}},
			mem.PeakParts{Process: 1, Device: text, Parameters: mem.Some(a), Other: mem.Some(b), ByStack: mem.Bytes(b)},
			mem.DevicePeak{Process: 1, Device: text, Allocated: mem.Some(a), Reserved: mem.Some(b), Phase: mem.Phase(text),
				Step: mem.Some(a)},
			mem.DataSize{Op: text, Count: a, Elements: b}, mem.ReadBack{Location: mem.Location{File: text, Line: int(a)},
				Count: a, Bytes: mem.Bytes(b)},
			mem.Trial{Set: mem.TrialSet(text), Try: mem.Try{What: text,
				GPUVerdict: mem.GPUVerdict{Verdict: mem.Verdict(verdict), Used: mem.Some(a), Total: mem.Bytes(b)}}},
			mem.Trial{Set: mem.TrialCatalogue, Try: mem.Try{GPUVerdict: mem.GPUVerdict{GPU: text,
				Verdict: mem.Verdict(verdict), Headroom: mem.Some(b), Price: float64(b)}}})...)
		r := Analyze(run, Options{})
		_ = r.Text(report.TextOptions{Width: 60})
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

// What the process itself knows of its peak stands in the table of devices, where readings missed it; each curve has
// its own label.
func TestPeaksBetweenReadings(t *testing.T) {
	var times, values []int64
	for i := range int64(60) {
		times, values = append(times, i*5e7), append(values, min(1+i/20, 2)<<30)
	}
	r := Analyze(imagineRun(0, atTheEnd(6<<30,
		mem.SeriesDef{ID: 2, Process: 1, Device: "cuda:0", Framework: "torch", Name: mem.SeriesAllocated,
			Unit: mem.UnitBytes, Label: mem.Imagined},
		mem.Samples{Series: 2, Times: times, Values: values},
		mem.SeriesDef{ID: 3, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.Samples{Series: 3, Times: times, Values: values})...), Options{})
	tables := map[string]*report.Table{}
	for i := range r.Tables {
		tables[r.Tables[i].Name] = &r.Tables[i]
	}
	var allocated []report.Cell
	for _, row := range tables["devices"].Rows {
		allocated = append(allocated, tables["devices"].Cell(row, "allocated"))
	}
	if !slices.Contains(allocated, report.Cell(int64(5000000000))) ||
		slices.Contains(allocated, report.Cell(int64(2<<30))) {
		t.Errorf("peak allocated: %v, want what the process told, not the highest reading", allocated)
	}
	curves := tables["shapes"]
	if curves == nil || len(curves.Rows) == 0 {
		t.Fatal("no curves")
	}
	for _, row := range curves.Rows {
		if want := map[bool]string{true: "measured", false: "imagined"}[strings.HasPrefix(row[0].(string), "RSS")]; curves.Cell(row, "label") != want {
			t.Errorf("%v is labelled %v, want %s", row[0], curves.Cell(row, "label"), want)
		}
	}
}
