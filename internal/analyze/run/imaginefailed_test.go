package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

func TestFailuresAreNamed(t *testing.T) {
	boom := mem.Event{Kind: "exception", Time: 3e9, Process: 1, Text: "no such file\nsecond line",
		Facts: map[string]string{"class": "OSError"}, Where: &mem.Location{File: "/home/me/train.py", Line: 9}}
	stopped := mem.Event{Kind: "exception", Time: 3e9, Process: 1, Facts: map[string]string{"class": "KeyboardInterrupt"}}
	alone := mem.Event{Kind: "exception", Time: 3e9, Process: 1,
		Text:  "hightide imagine: rank 0 waits at 127.0.0.1:29500 for 255 others, and not all of them were started here",
		Facts: map[string]string{"class": "RuntimeError"}, Where: &mem.Location{File: "/home/me/train.py", Line: 9}}
	for name, c := range map[string]struct {
		code, signal int64
		event        []mem.Frame
		want         string
	}{
		"exception": {1, 0, []mem.Frame{boom}, "for a reason of its own, OSError: no such file … at train.py:9"},
		"ours": {1, 0, []mem.Frame{alone},
			"No verdict on NVIDIA A10: train.py:9: rank 0 waits at 127.0.0.1:29500 for 255 others, and not all of them were " +
				"started here"},
		"exit code":   {3, 0, nil, "for a reason of its own, exit code 3"},
		"interrupted": {1, 0, []mem.Frame{stopped}, "the program was interrupted"},
		"child's signal": {137, 0, nil,
			"exit code 137, as shells say of a child that a signal ended, SIGKILL: most often the kernel"},
		"killed":   {0, 9, nil, "a signal ended the program, SIGKILL: most often the kernel, for lack of host memory"},
		"fault":    {0, 11, nil, "SIGSEGV: compiled code went to memory that is not its own"},
		"nameless": {0, 40, nil, "a signal ended the program, signal 40"},
	} {
		run := imagineRun(c.code, atTheEnd(1<<30, c.event...)...)
		if c.signal != 0 {
			run.End.ExitCode, run.End.Signal = mem.Optional{}, mem.Some(c.signal)
		}
		r := Analyze(run, Options{})
		if r.Imagined.Verdict != mem.VerdictFailed || !strings.Contains(r.Headline.Verdict, c.want) {
			t.Errorf("%s: %s: %q, wanted %q", name, r.Imagined.Verdict, r.Headline.Verdict, c.want)
		}
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "--read-value 1") {
			t.Errorf("%s: values were read that nothing computed, and the way out is not told: %s", name, notes)
		}
	}
}

// TestRanksThatFail: of a launcher's exception, which tells only of its children, the first child's is told.
func TestRanksThatFail(t *testing.T) {
	fail := func(process uint32, class, text, file string) mem.Event {
		return mem.Event{Kind: "exception", Time: 3e9, Process: process, Text: text,
			Facts: map[string]string{"class": class}, Where: &mem.Location{File: file, Line: 12}}
	}
	frames := atTheEnd(1<<30,
		mem.Process{ID: 2, PID: 42, Parent: 1, Role: "rank", Rank: mem.Some(int64(0)), LocalRank: mem.Some(int64(0)),
			WorldSize: mem.Some(int64(2))},
		mem.Process{ID: 3, PID: 43, Parent: 1, Role: "rank", Rank: mem.Some(int64(1)), LocalRank: mem.Some(int64(1)),
			WorldSize: mem.Some(int64(2))},
		fail(3, "IndexError", "list index out of range", "/home/me/train.py"),
		fail(2, "RuntimeError", "connection closed by peer", "/home/me/train.py"),
		fail(1, "ChildFailedError", "\n====\ntrain.py FAILED", "/env/bin/torchrun"))
	r := Analyze(imagineRun(1, frames...), Options{})
	if want := "IndexError: list index out of range at train.py:12 in rank 1"; !strings.Contains(r.Headline.Verdict, want) {
		t.Errorf("%q, wanted %q", r.Headline.Verdict, want)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "2 ranks had 1 GPU: --gpus 2") {
		t.Errorf("the GPUs that lack are not told: %s", notes)
	}
}

func TestWhatDurationEndedIsJudged(t *testing.T) {
	run := imagineRun(0, atTheEnd(6<<30)...)
	run.End.ExitCode, run.End.Signal, run.End.Reason = mem.Optional{}, mem.Some(15), "stopped"
	r := Analyze(run, Options{})
	if r.Imagined.Verdict != mem.VerdictFits || r.Imagined.StoppedFor != report.StoppedForDuration ||
		!strings.Contains(strings.Join(r.Notes, " "), "time of --duration") {
		t.Errorf("%+v %v", r.Imagined, r.Notes)
	}
	run = imagineRun(0)
	run.End.ExitCode, run.End.Signal, run.End.Reason = mem.Optional{}, mem.Some(15), "stopped"
	if r := Analyze(run, Options{}); r.Imagined.Verdict != mem.VerdictUnused ||
		!strings.Contains(r.Headline.Verdict, "stopped by --duration before it touched") {
		t.Errorf("%+v %s", r.Imagined, r.Headline.Verdict)
	}
}

// TestRequestsThatNobodyTook: what is no server that we know gets no requests of --load, and its verdict says so.
func TestRequestsThatNobodyTook(t *testing.T) {
	for want, run := range map[string]*mem.Run{
		"the requests of --load, as no server was seen": imagineRun(0, atTheEnd(6<<30)...),
		"no requests of --load were played: no server":  imagineRun(0),
	} {
		run.Imagined.Setup.Load, run.End.Reason = "2x64+8", "stopped"
		run.End.ExitCode, run.End.Signal = mem.Optional{}, mem.Some(15)
		if r := Analyze(run, Options{}); !strings.Contains(r.Headline.Verdict+" "+r.Imagined.Basis, want) {
			t.Errorf("%q is not in %q, %q", want, r.Headline.Verdict, r.Imagined.Basis)
		}
	}
}

func TestCallsThatFailedAreNotCalledAnswered(t *testing.T) {
	call := func(name string, refused bool) mem.Frame {
		return mem.LibraryCall{Name: name, Count: 2, Refused: refused}
	}
	notes := strings.Join(Analyze(imagineRun(0, atTheEnd(1<<30, call("cuptiGetVersion", true),
		call("cublasNoted", false))...), Options{}).Notes, "\n")
	for _, want := range []string{"answered without being modelled: cublasNoted (2 times), cusparseSpMM",
		"not modelled: cuptiGetVersion (2 times)."} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
}

// TestWhatWasCancelledHasNoVerdict: a training that somebody stopped may have had its peak to come, also where it
// ended in good order.
func TestWhatWasCancelledHasNoVerdict(t *testing.T) {
	for _, exit := range []mem.Optional{{}, mem.Some(0)} {
		run := imagineRun(0, atTheEnd(6<<30, mem.Event{Kind: "stop", Time: 3e9, Text: mem.StopCancelled},
			mem.Event{Kind: "stop", Time: 3e9, Process: 1, Text: "asked"})...)
		run.End.ExitCode, run.End.Reason = exit, "stopped"
		r := Analyze(run, Options{})
		if r.Imagined.Verdict != mem.VerdictFailed || r.Imagined.Headroom.Known() ||
			!strings.Contains(r.Headline.Verdict, "it was cancelled") ||
			!strings.Contains(r.Headline.Verdict, "6.00 GiB in use at most by then") ||
			strings.Contains(strings.Join(r.Notes, " "), "--duration") {
			t.Errorf("exit %v: %+v %s %v", exit, r.Imagined, r.Headline.Verdict, r.Notes)
		}
	}
}

// TestFailureBeforeTheEndThatWasAskedFor: a program that had failed when --duration was over has no verdict; one whose
// exception came of being ended fits.
func TestFailureBeforeTheEndThatWasAskedFor(t *testing.T) {
	for at, want := range map[int64]mem.Verdict{2e9: mem.VerdictFailed, 4e9: mem.VerdictFits} {
		run := imagineRun(1, atTheEnd(6<<30, mem.Event{Kind: "stop", Time: 3e9, Text: mem.StopDuration},
			mem.Event{Kind: "exception", Time: at, Process: 1, Text: "no such layer",
				Facts: map[string]string{"class": "ValueError"}})...)
		run.End.Reason = "stopped"
		r := Analyze(run, Options{})
		if r.Imagined.Verdict != want || strings.Contains(r.Headline.Verdict, "no such layer") != (want == mem.VerdictFailed) {
			t.Errorf("failed at %d: %s, %s", at, r.Imagined.Verdict, r.Headline.Verdict)
		}
	}
}

// TestNoKernelsNoFit: no kernel runs on an imaginary GPU, so one that the build has none for seems to do.
func TestNoKernelsNoFit(t *testing.T) {
	run := imagineRun(0, atTheEnd(6<<30)...)
	run.Processes[0].Facts["torch.arch_list"] = "sm_50 sm_60"
	r := Analyze(run, Options{})
	if r.Imagined.Verdict != mem.VerdictFailed ||
		!strings.Contains(r.Headline.Verdict, "no kernels for "+r.Imagined.Compute+" (it has sm_50, sm_60)") {
		t.Errorf("%+v %s", r.Imagined, r.Headline.Verdict)
	}
	run.Processes[0].Facts["torch.arch_list"] = "sm_50 compute_60"
	if r := Analyze(run, Options{}); r.Imagined.Verdict != mem.VerdictFits {
		t.Errorf("code that a driver compiles runs: %s", r.Headline.Verdict)
	}
}

// TestNoKernelsIsNoFaultOfTheProgram: where the build has no kernels for the GPU, a program that fails after it
// touched it did not fail for a reason of its own alone. One that fails before it did.
func TestNoKernelsIsNoFaultOfTheProgram(t *testing.T) {
	none := mem.Event{Kind: "exception", Time: 3e9, Process: 1, Text: "No available kernel.",
		Facts: map[string]string{"class": "RuntimeError"}}
	for _, test := range []struct {
		run      *mem.Run
		says, no string
	}{
		{imagineRun(1, atTheEnd(1<<30, none)...),
			"(it has sm_50), so the first kernel fails on a real one; here the program failed, which may follow from it: " +
				"RuntimeError: No available kernel.", "reason of its own"},
		{imagineRun(1, none), "the program failed for a reason of its own, RuntimeError: No available kernel.", "no kernels"},
	} {
		test.run.Processes[0].Facts["torch.arch_list"] = "sm_50"
		if said := Analyze(test.run, Options{}).Headline.Verdict; !strings.Contains(said, test.says) || strings.Contains(said, test.no) {
			t.Errorf("%q, want %q and not %q", said, test.says, test.no)
		}
	}
}

// TestModelThatIsNotHere: what a program needs of a model that cannot be downloaded is said; of another error nothing.
func TestModelThatIsNotHere(t *testing.T) {
	for text, missing := range map[string]bool{
		"We couldn't connect to 'https://hub.example' to load the files, and couldn't find them in the cached files.\nCheck": true,
		"org/model is not a local folder and is not a valid model identifier listed on 'https://hub.example/models'":         true,
		"We couldn't connect to the database": false,
	} {
		failed := mem.Event{Kind: "exception", Time: 3e9, Process: 1, Text: text, Facts: map[string]string{"class": "OSError"}}
		said := Analyze(imagineRun(1, failed), Options{}).Headline.Verdict
		if strings.Contains(said, "a folder with its config.json") != missing {
			t.Errorf("%s: %s", text, said)
		}
	}
}

// TestNoContextOfNothing: what a process takes beside the allocator is told where one took it.
func TestNoContextOfNothing(t *testing.T) {
	run := imagineRun(1)
	run.Imagined.Setup.Contexts = mem.Range{Low: 1 << 20, High: 2 << 20}
	if notes := strings.Join(Analyze(run, Options{}).Notes, " "); strings.Contains(notes, "Of the context") {
		t.Error(notes)
	}
}
