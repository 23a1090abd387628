package imagined

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// preallocated is a run whose framework takes memory ahead of need: 15 GiB of 20 on a device of 24 GiB.
func preallocated(allocated, limit int64, framework string) *mem.Run {
	run := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.ImaginedSetup{GPU: "x", Name: "GPU", Count: 1, Total: 24 << 30, Tight: 512 << 20, Steps: "auto"},
		mem.Process{ID: 1, PID: 1, Role: "main", Frameworks: map[string]string{framework: "1"}},
		mem.ImaginedDevice{Total: 24 << 30, Used: 16 << 30},
		mem.DeviceUse{Process: 1, Device: "0", Index: 0, Used: 16 << 30},
		mem.DevicePeak{Process: 1, Device: "cuda:0", Allocated: mem.Some(allocated), Reserved: mem.Some(int64(15 << 30)),
			Limit: mem.Some(limit), Framework: framework},
		mem.End{Reason: "exit", ExitCode: mem.Some(int64(0))},
	} {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
	return run
}

// TestWhatTheAllocatorDoesNotTell: an allocator that says what is in use of its memory, and not what it took, took what
// the device says it was given.
func TestWhatTheAllocatorDoesNotTell(t *testing.T) {
	run := preallocated(2<<30, 15<<30, "tensorflow")
	run.Imagined.Peaks[0].Reserved = mem.Optional{}
	if v := Judge(run); v.Reserved.Known() || v.Allocated != mem.Some(int64(2<<30)) {
		t.Errorf("reserved %v of nothing that is known, allocated %v", v.Reserved, v.Allocated)
	}
	run.Imagined.Uses[0].Parts = map[string]mem.Bytes{"allocated": 15 << 30, "context": 1 << 30}
	v := Judge(run)
	if text := untoldText(v); !strings.Contains(text, "is not known: TensorFlow told nothing") {
		t.Error(text)
	}
	if err := run.Add(mem.PeakParts{Process: 1, Device: "cuda:0", Other: mem.Some(int64(2 << 30))}); err != nil {
		t.Fatal(err)
	}
	told := Judge(run)
	if text := untoldText(told); text != "Which lines held the peak is not known: TensorFlow told nothing of it." {
		t.Error(text)
	}
	told.Lines, told.LinesHeld = []report.HeldLine{{Line: 9, Bytes: 1 << 30}}, 1<<30
	if text := untoldText(told); !strings.Contains(text, "of a moment with 1.00 GiB in use") {
		t.Error(text)
	}
	told.LinesHeld, told.LinesAsked = 2<<30, 1<<30
	if text := unaskedText(told); !strings.HasPrefix(text, "1.00 GiB of 2.00 GiB was not asked for: TensorFlow's") {
		t.Error(text)
	}
	if told.LinesAsked = 2 << 30; unaskedText(told) != "" {
		t.Error(unaskedText(told))
	}
	if text := untoldText(told); text != "" {
		t.Error(text)
	}
	if v.Reserved != mem.Some(int64(15<<30)) || v.Needed != mem.Some(int64(3<<30)) || v.LimitBy != "TensorFlow" {
		t.Errorf("reserved %v, needed %v of what %s may take", v.Reserved, v.Needed, v.LimitBy)
	}
}

// TestShortOfTheLimit: what was in use is told beside what the framework may take, both without the context.
func TestShortOfTheLimit(t *testing.T) {
	run := preallocated(14<<30, 15<<30, "tensorflow")
	run.End.ExitCode = mem.Some(int64(1))
	for _, f := range []mem.Frame{
		mem.Event{Kind: "oom", Process: 1, Bytes: mem.Some(int64(2 << 30)), Facts: map[string]string{"device": "gpu:0"}},
		mem.Event{Kind: "exception", Process: 1, Facts: map[string]string{"class": "ResourceExhaustedError"},
			Text: "Graph execution error:"},
	} {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	const want = "it used 14.0 GiB at most and asked for 2.00 GiB more, of the 15.0 GiB that TensorFlow may take"
	if v := Judge(run); v.Verdict != mem.VerdictOOM || !strings.Contains(sentence(v)[0], want) {
		t.Errorf("%s: %s", v.Verdict, sentence(v)[0])
	}
	run.Events[1].Text = "OOM when allocating tensor with shape[9] and type float on /job:localhost/replica:0/task:0/device:CPU:0"
	run.Events[0].Facts["device"] = "cpu"
	if v := Judge(run); v.Verdict != mem.VerdictFailed {
		t.Errorf("short of the host's memory: %s", v.Verdict)
	}
}

// TestNeedAndTakenAreTwoFigures: what a program needs is not what its framework took as it started, and what is to
// spare is what the framework's own limit leaves.
func TestNeedAndTakenAreTwoFigures(t *testing.T) {
	for _, c := range []struct {
		allocated, limit, needed, headroom int64
		verdict                            mem.Verdict
	}{
		{2 << 30, 15 << 30, 3 << 30, 13 << 30, mem.VerdictFits}, // 1 GiB is beside the allocator
		{15<<30 - 100, 15 << 30, 16<<30 - 100, 100, mem.VerdictTight},
		{2 << 30, 24 << 30, 3 << 30, 21 << 30, mem.VerdictFits}, // a limit that the device does not have
	} {
		v := Judge(preallocated(c.allocated, c.limit, "jax"))
		if v.Needed != mem.Some(c.needed) || v.Headroom != mem.Some(c.headroom) || v.Verdict != c.verdict {
			t.Errorf("%+v: needed %v, headroom %v, %s", c, v.Needed, v.Headroom, v.Verdict)
		}
		text := strings.Join(sentence(v), "; ")
		if !strings.Contains(text, "it needs "+mem.Bytes(c.needed).String()+" of 24.0 GiB") ||
			!strings.Contains(text, "of the "+mem.Bytes(c.limit).String()+" that JAX may take") {
			t.Error(text)
		}
	}
}
