package imagined

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestNothingFitsThatWasNotCounted: where a part of what the processes used could not be read there is no verdict,
// unless the rest alone did not fit.
func TestNothingFitsThatWasNotCounted(t *testing.T) {
	run := mem.NewRun()
	run.End = &mem.End{ExitCode: mem.Some(0)}
	for _, c := range []struct {
		broken string
		oom    bool
		want   mem.Verdict
	}{{"", false, mem.VerdictFits}, {"no room for 1 more", false, mem.VerdictFailed},
		{"no room for 1 more", true, mem.VerdictFailed}} {
		run.Events = nil
		if c.oom {
			run.End.ExitCode = mem.Some(1)
			run.Events = []mem.Event{{Kind: "oom", Facts: map[string]string{"device": "cuda:0"}}}
			c.want = mem.VerdictOOM
		}
		v := &report.Imagined{Broken: c.broken}
		v.Used, v.Total, v.Headroom = mem.Some(1<<30), 24<<30, mem.Some(23<<30)
		if judge(run, v); v.Verdict != c.want || v.Headroom.Known() != (c.want == mem.VerdictFits) {
			t.Errorf("%+v: %v, headroom %v", c, v.Verdict, v.Headroom)
		}
	}
}

// TestWhatAnExceptionSays: a first line that only says where is followed by what was wrong.
func TestWhatAnExceptionSays(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"no such file.", "no such file"},
		{"first\nsecond", "first …"},
		{"at 1:0:\ndef kernel(\n^\nValueError(\"type fp8e4nv not supported\")", `at 1:0: ValueError("type fp8e4nv not supported")`},
		{"Worker failed with error 'backend='inductor' raised:\nOSError: no space\n\nSet TORCH_LOGS",
			"Worker failed with error 'backend='inductor' raised: OSError: no space …"},
		{"Missing:\n  a.weight\n  b.weight", "Missing: a.weight …"},
		{"only a header:", "only a header:"},
	} {
		if got := begun(test.text, 160); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// TestWhoseExceptionARefusalIs: of a helper that ended by one, as a compiler that is tried, no request was refused.
func TestWhoseExceptionARefusalIs(t *testing.T) {
	for process, want := range map[uint32]string{
		1: "the program failed for a reason of its own, RuntimeError: Build failed, while it answered a request",
		2: "it started, and did not answer a request: 500 Internal Server Error",
	} {
		run := mem.NewRun()
		for _, f := range []mem.Frame{mem.ImaginedSetup{GPU: "a10", Count: 1, Total: 24 * mem.GiB, Load: "2x512+64"},
			mem.Process{ID: 1, PID: 10, Role: "child"}, mem.Process{ID: 2, PID: 11, Role: "child"},
			mem.Serving{Process: 1, Engine: "SGLang", Step: mem.ServingReady, Answers: true, ServingFigures: mem.ServingFigures{
				KVTokens: mem.Some(16000), LoadRefused: "500 Internal Server Error"}},
			mem.Event{Process: process, Kind: "exception", Text: "Build failed",
				Facts: map[string]string{"class": "RuntimeError"}},
			mem.ImaginedDevice{GPU: "a10", Total: 24 * mem.GiB, Used: mem.GiB},
			mem.DeviceUse{Process: 1, Device: "nvidia:0", Used: mem.GiB},
			mem.End{Time: 1, ExitCode: mem.Some(0), Reason: "exit"}} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		if v := Judge(run); v.Verdict != mem.VerdictFailed || v.How != want {
			t.Errorf("process %d: %s: %s", process, v.Verdict, v.How)
		}
	}
}

// TestSignalOfTheServersOwn: a server that kills itself as a process of its engine failed has that one's reason.
func TestSignalOfTheServersOwn(t *testing.T) {
	const killed = "a signal ended the program, SIGKILL: most often the kernel, for lack of host memory, or a batch system over " +
		"its limit, while it warmed up"
	for process, want := range map[uint32]string{
		1: killed,
		2: "the program failed for a reason of its own, AssertionError: too little host memory, while it warmed up",
	} {
		run := mem.NewRun()
		for _, f := range []mem.Frame{mem.ImaginedSetup{GPU: "a10", Count: 1, Total: 24 * mem.GiB},
			mem.Process{ID: 1, PID: 10, Role: "main"}, mem.Process{ID: 2, PID: 11, Role: "child"},
			mem.Serving{Process: 2, Engine: "SGLang", Step: mem.ServingWarmUp},
			mem.Event{Process: process, Kind: "exception", Text: "too little host memory",
				Facts: map[string]string{"class": "AssertionError"}},
			mem.ImaginedDevice{GPU: "a10", Total: 24 * mem.GiB, Used: mem.GiB},
			mem.DeviceUse{Process: 2, Device: "nvidia:0", Used: mem.GiB},
			mem.End{Time: 1, Signal: mem.Some(9), Reason: "exit"}} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		if v := Judge(run); v.Verdict != mem.VerdictFailed || v.How != want {
			t.Errorf("process %d: %s: %s", process, v.Verdict, v.How)
		}
	}
}

// TestRequestsThatWerePlayed: a server that starts and refuses a request has no verdict; what requests took is told.
func TestRequestsThatWerePlayed(t *testing.T) {
	for _, test := range []struct {
		refused, note string
		preempted     int64
		verdict       mem.Verdict
	}{
		{"", "2 sequences of 512 + 64 tokens at once had 72 of 1,000 blocks of the KV cache at most, 2 at a time; no " +
			"preemption.", 0, mem.VerdictFits},
		{"", "2 sequences of 512 + 64 tokens at once had 72 of 1,000 blocks of the KV cache at most, 2 at a time; 3 " +
			"preemptions: a sequence lost its blocks and was computed anew.", 3, mem.VerdictFits},
		{"400 Bad Request: too long", "", 0, mem.VerdictFailed},
	} {
		run := mem.NewRun()
		some := mem.Some
		for _, f := range []mem.Frame{mem.ImaginedSetup{GPU: "a10", Count: 1, Total: 24 * mem.GiB, Load: "2x512+64"},
			mem.Serving{Process: 1, Engine: "vLLM", Step: mem.ServingReady, Answers: true, ServingFigures: mem.ServingFigures{
				KVTokens: some(16000), KVBlocks: some(1000), LoadAnswered: some(2), LoadRunning: some(2), LoadBlocks: some(72),
				LoadPreempted: some(test.preempted), LoadRefused: test.refused}},
			mem.ImaginedDevice{GPU: "a10", Total: 24 * mem.GiB, Used: mem.GiB},
			mem.DeviceUse{Process: 1, Device: "nvidia:0", Used: mem.GiB},
			mem.End{Time: 1, ExitCode: some(0), Reason: "exit"}} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		v := Judge(run)
		if v.Verdict != test.verdict || test.refused != "" && v.How != "it started, and did not answer a request: "+test.refused {
			t.Errorf("%s: %s", v.Verdict, v.How)
		}
		if got := loadText(run, v); test.note != "" && got != test.note {
			t.Errorf("%q, want %q", got, test.note)
		}
	}
}

// TestWholeStart: of a start that fails after it had its KV cache it is said how much lacks in all, or that this is not
// known. The run with all the memory it wants is no change that serves.
func TestWholeStart(t *testing.T) {
	roomy := mem.Try{Kind: mem.TryMemory, What: "NVIDIA A10 with all the memory it wants, and the same KV cache"}
	roomy.Verdict, roomy.Note, roomy.KVTokens = mem.VerdictFits, "CUDA graphs took 960 MiB of it", mem.Some(4096)
	roomy.Used, roomy.Headroom = mem.Some(int64(7*mem.GiB)), mem.Some(int64(-mem.GiB))
	v := &report.Imagined{Serving: &report.Serving{Step: mem.ServingGraphs}}
	if got := wholeStart(v); got != "how much the rest of its start takes is not known" {
		t.Error(got)
	}
	v.Tries = []mem.Try{roomy}
	const want = "with this KV cache its whole start takes 7.00 GiB: 1.00 GiB are missing; " +
		"CUDA graphs took 960 MiB of it"
	if got := wholeStart(v); got != want || servesWith(v) != "" {
		t.Errorf("%q, %q", got, servesWith(v))
	}
	if v.Serving.Step = mem.ServingWeights; wholeStart(v) != "" {
		t.Error("weights that do not fit come before the KV cache")
	}
}

// TestServesWith: the smallest change by which a server starts: a setting on the GPU that was asked for, then two of it,
// then another GPU. Where that is tight, what has room to spare is told too.
func TestServesWith(t *testing.T) {
	tried := func(what, kind string, verdict mem.Verdict, tokens int64) mem.Try {
		try := mem.Try{Kind: kind, What: what}
		try.Verdict, try.KVTokens = verdict, mem.Some(tokens)
		return try
	}
	short := tried("--max-model-len 512", "engine:max_model_len=512", mem.VerdictOOM, 512)
	fewer := tried("--max-num-seqs 256", "engine:max_num_seqs=256", mem.VerdictTight, 2048)
	eager := tried("--enforce-eager", "engine:enforce_eager=true", mem.VerdictFits, 1024)
	tight := tried("--tensor-parallel-size 2 on 2 × a10", "engine:tensor_parallel_size=2", mem.VerdictTight, 4096)
	two := tried("--tensor-parallel-size 2 on 2 × a10", "engine:tensor_parallel_size=2", mem.VerdictFits, 4096)
	fits := tried("on a40", mem.TryGPU, mem.VerdictFits, 8192)
	const few = "it serves with --max-num-seqs 256, though it is tight: 2,048 tokens of KV cache"
	for want, tries := range map[string][]mem.Try{
		"": {short, {What: "--enforce-eager"}},
		"it serves with --tensor-parallel-size 2 on 2 × a10, though it is tight: 4,096 tokens of KV cache": {short, tight},
		"it serves with --tensor-parallel-size 2 on 2 × a10: 4,096 tokens of KV cache":                     {fits, short, two},
		"it serves on a40: 8,192 tokens of KV cache":                                                       {short, fits},
		few: {fewer, short, tight},
		few + "; with room to spare on a40: 8,192 tokens":                                   {short, fits, fewer},
		few + "; with room to spare with --tensor-parallel-size 2 on 2 × a10: 4,096 tokens": {fits, two, fewer},
		"it serves with --enforce-eager: 1,024 tokens of KV cache":                          {fits, fewer, eager, two},
	} {
		if got := servesWith(&report.Imagined{Tries: tries}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
