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
