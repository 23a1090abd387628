package report

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestSayNothing: that nothing was found is good news only of a program that ended well and in which all was looked
// for.
func TestSayNothing(t *testing.T) {
	seen := []Series{{Name: mem.SeriesRSS}}
	for _, test := range []struct {
		name   string
		report Report
		says   string
		well   bool
	}{
		{"done", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndDone},
			Looked: "Looked for growth."}}, "Nothing to change was found. Looked for growth.", true},
		{"stopped as asked", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndStopped}}},
			"Nothing to change was found.", true},
		{"what a line needs gets larger", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndDone},
			Larger: "a.py:7"}}, "No leak was found, but what a.py:7 allocates gets larger", false},
		{"running", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.StillRunning}}, "so far", false},
		{"killed", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndFailed}}}, "The program failed",
			false},
		{"out of memory", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndOOM}}},
			"The program failed", false},
		{"cut off", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndCutOff}}}, "not known", false},
		{"not looked", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndDone},
			NotLooked: "Leaks were not looked for."}}, "not looked for. Of what", false},
		{"ended at once", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndFailed},
			ExitCode: mem.Some(2), Duration: 470e6, NotLooked: "Leaks were not looked for."}},
			"The program ended with exit code 2 after 470 ms. Why it did may stand in what it wrote to standard error, which " +
				"`hightide run --capture` keeps. Leaks were not looked for.", false},
		{"raised at once", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndFailed},
			ExitCode: mem.Some(1), Duration: 1e9, NotLooked: "Leaks were not looked for.", Exception: &Exception{}}},
			"The program ended with exit code 1 after 1 s. Leaks were not looked for.", false},
		{"killed at once", Report{Part: Part{Series: seen}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndFailed},
			Signal: mem.Some(11), Duration: 1e9, NotLooked: "Leaks were not looked for."}},
			"The program was ended by SIGSEGV after 1 s. Leaks were not looked for.", false},
		{"nothing seen", Report{Headline: Headline{Ended: mem.Ending{Kind: mem.EndDone}}}, "Nothing was observed", false},
		{"a file", Report{Allocators: []*Allocator{{}}}, "No leak, no out-of-memory", true},
		{"a file without a trace", Report{Allocators: []*Allocator{{}},
			Headline: Headline{NotLooked: "Growth was not looked for."}}, "Growth was not looked for.", false},
		{"a finding", Report{Part: Part{Series: seen, Findings: []Finding{{}}},
			Headline: Headline{Ended: mem.Ending{Kind: mem.EndDone}}}, "", false},
	} {
		test.report.SayNothing()
		h := test.report.Headline
		if h.Well != test.well || !strings.Contains(h.Nothing, test.says) || test.says == "" && h.Nothing != "" {
			t.Errorf("%s: %q, %v", test.name, h.Nothing, h.Well)
		}
	}
}

// TestHear: the last line of the output stands in the place of where to find it.
func TestHear(t *testing.T) {
	r := Report{Part: Part{Series: []Series{{}}}, Headline: Headline{Ended: mem.Ending{Kind: mem.EndFailed},
		ExitCode: mem.Some(2), Duration: 1e9, NotLooked: "Leaks were not looked for."}}
	r.SayNothing()
	if !r.Unheard() {
		t.Fatalf("%q", r.Headline.Nothing)
	}
	r.Hear("no such file")
	const want = `The program ended with exit code 2 after 1 s. The last line of its output: "no such file". Leaks were ` +
		"not looked for."
	if r.Headline.Nothing != want || r.Unheard() {
		t.Errorf("%q", r.Headline.Nothing)
	}
}
