package run

import (
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestEndings: how a run ended is one of what it said last, not of what went wrong on the way.
func TestEndings(t *testing.T) {
	exit := func(code int64) mem.End { return mem.End{Time: 9, ExitCode: mem.Some(code), Reason: "exit"} }
	oom := mem.Event{Time: 2, Process: 1, Kind: "oom", Text: "could not get 2 GiB",
		Facts: map[string]string{"source": "torch.cuda", "device": "cuda:0"}}
	raised := func(class, text string) mem.Event {
		return mem.Event{Time: 3, Process: 1, Kind: "exception", Text: text, Facts: map[string]string{"class": class}}
	}
	imagined := mem.RunInfo{Verb: "imagine", Label: mem.Imagined}
	for name, test := range map[string]struct {
		frames []mem.Frame
		want   mem.Ending
	}{
		"in good order": {[]mem.Frame{exit(0)}, mem.Ending{Kind: mem.EndDone, Text: "done"}},
		"an error that it caught": {[]mem.Frame{oom, exit(0)},
			mem.Ending{Kind: mem.EndDone, Text: "done, after 1 out-of-memory error"}},
		"another error, after one of these": {[]mem.Frame{oom, raised("IndexError", "list index out of range"), exit(1)},
			mem.Ending{Kind: mem.EndFailed, Text: "exit 1, IndexError"}},
		"out of a device's memory": {[]mem.Frame{oom, raised("OutOfMemoryError", "CUDA out of memory"), exit(1)},
			mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
		"out of the host's memory": {[]mem.Frame{raised("MemoryError", ""), exit(1)},
			mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
		"as NumPy words it": {[]mem.Frame{raised("numpy._core._exceptions._ArrayMemoryError",
			"Unable to allocate 8 TiB"), exit(1)}, mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
		"as a framework words it": {[]mem.Frame{oom, raised("ResourceExhaustedError", oom.Text), exit(1)},
			mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
		"it caught it, and gave up": {[]mem.Frame{oom, exit(3)},
			mem.Ending{Kind: mem.EndOOM, Text: "exit 3 after out of memory"}},
		"a malloc that failed": {[]mem.Frame{mem.Event{Kind: "oom",
			Facts: map[string]string{"source": "malloc"}}, exit(0)}, mem.Ending{Kind: mem.EndDone, Text: "done"}},
		"killed by the kernel": {[]mem.Frame{mem.Event{Kind: "kill"},
			mem.End{Signal: mem.Some(9), Reason: "signal"}}, mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
		"killed by somebody": {[]mem.Frame{mem.End{Signal: mem.Some(9), Reason: "signal"}},
			mem.Ending{Kind: mem.EndFailed, Text: "SIGKILL"}},
		"as it was asked to": {[]mem.Frame{mem.End{Signal: mem.Some(15), Reason: "stopped"}},
			mem.Ending{Kind: mem.EndStopped, Text: "stopped as asked"}},
		"a stranger that went on": {[]mem.Frame{mem.End{Reason: "left"}},
			mem.Ending{Kind: mem.EndDone, Text: "went on after the recording"}},
		"a stranger that is gone": {[]mem.Frame{mem.End{Reason: "gone"}},
			mem.Ending{Kind: mem.EndUnknown, Text: "not known"}},
		"brought in later": {[]mem.Frame{mem.End{Reason: "recovered"}},
			mem.Ending{Kind: mem.EndUnknown, Text: "recovered"}},
		"not at all": {nil, mem.Ending{Kind: mem.EndCutOff, Text: "cut off"}},
		"imagined, for a reason of its own": {[]mem.Frame{imagined, oom, raised("IndexError", "list index out of range"),
			mem.DeviceUse{Process: 1, Used: 5},
			exit(1)}, mem.Ending{Kind: mem.EndNoVerdict, Text: "no verdict"}},
		"imagined, without a GPU": {[]mem.Frame{imagined, exit(0)}, mem.Ending{Kind: mem.EndNoVerdict, Text: "no verdict"}},
		"imagined, out of memory": {[]mem.Frame{imagined, oom, raised("OutOfMemoryError", "CUDA out of memory"), exit(1)},
			mem.Ending{Kind: mem.EndOOM, Text: "out of memory"}},
	} {
		run := mem.NewRun()
		for _, f := range append([]mem.Frame{mem.Process{ID: 1, Role: "main"}}, test.frames...) {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		if got := facts.Conclude(run).Ending; got != test.want {
			t.Errorf("%s: %+v, not %+v", name, got, test.want)
		}
		if got := Analyze(run, Options{}).Headline.Ended; got != test.want {
			t.Errorf("%s: the report says %+v, not %+v", name, got, test.want)
		}
	}
}
