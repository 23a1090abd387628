package matrix

import (
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// recorded makes a run of frames.
func recorded(t *testing.T, frames ...mem.Frame) *mem.Run {
	t.Helper()
	run := mem.NewRun()
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// TestMeasure: of two processes, the second of which lives for a part of the time.
func TestMeasure(t *testing.T) {
	series := func(id, process uint32, name mem.Quantity, times, values []int64) []mem.Frame {
		return []mem.Frame{mem.SeriesDef{ID: id, Process: process, Name: name, Label: mem.Measured},
			mem.Samples{Series: id, Times: times, Values: values}}
	}
	frames := []mem.Frame{
		mem.RunInfo{ID: "r", Label: mem.Measured, StartMono: 1000},
		mem.Process{ID: 1, Numbers: map[string]int64{mem.NumberParameters: 62006}, MaxRSS: mem.Some(900)},
		mem.Process{ID: 2, Parent: 1, Start: 1000, End: mem.Some(2500)},
		mem.StepTotal{Process: 1, Steps: 5}, mem.StepTotal{Process: 2, Steps: 1},
		mem.Steps{{Process: 1, Number: 1}, {Process: 1, Number: 2, Duration: 900}, {Process: 1, Number: 3, Duration: 30},
			{Process: 1, Number: 4, Duration: 20},
			{Process: 1, Number: 5, Duration: 10}, {Process: 2, Number: 1, Duration: 7000}},
	}
	times := []int64{2000, 3000, 4000}
	for _, more := range [][]mem.Frame{
		series(1, 0, mem.SeriesTreeRSS, times, []int64{100, 400, 100}),
		series(2, 0, mem.SeriesTreePSS, times, []int64{90, 300, 90}),
		series(3, 1, mem.SeriesVMS, times, []int64{1000, 2000, 2000}),
		series(4, 2, mem.SeriesVMS, []int64{2000}, []int64{500}),
		series(5, 1, mem.SeriesMinorFaults, times, []int64{10, 20, 30}),
		series(6, 2, mem.SeriesMinorFaults, []int64{2000}, []int64{5}),
		series(7, 1, mem.SeriesCPU, times, []int64{500, 2500, 3500}),
		series(8, 2, mem.SeriesCPU, []int64{2000}, []int64{500}),
	} {
		frames = append(frames, more...)
	}
	r := &report.Report{Headline: report.Headline{Peak: report.Peak{HostRSS: mem.Some(450), HostPSS: mem.Some(310),
		PSSError: mem.Some(12)}}}
	got := Measure(recorded(t, frames...), r, 2)
	want := map[Figure]Summary{
		// the kernel's mark
		RSS: {Max: 900, Min: 100, Mean: 200, Median: 100, StdDev: 173.20508075688772, Count: 3, Label: mem.Measured},
		PSS: {Max: 310, Min: 90, Mean: 160, Median: 90, StdDev: 121.24355652982141, Count: 3, Label: mem.Measured,
			Error: 12},
		VMS: {Max: 2000, Min: 1500, Mean: 5500. / 3, Median: 2000, StdDev: 288.6751345948129, Count: 3,
			Label: mem.Measured},
		MinorFaults: {Max: 35, Min: 35, Mean: 35, Median: 35, Count: 1, Label: mem.Measured},
		CPU: {Max: 2000, Min: 1000, Mean: 4000. / 3, Median: 1000, StdDev: 577.3502691896258, Count: 3,
			Label: mem.Measured},
		StepTime:   {Max: 30, Min: 10, Mean: 20, Median: 20, StdDev: 10, Count: 3, Label: mem.Measured},
		Parameters: {Max: 62006, Min: 62006, Mean: 62006, Median: 62006, Count: 1, Label: mem.Measured},
	}
	for figure, w := range want {
		g, ok := got[figure]
		near := func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
		if !ok || g.Max != w.Max || g.Min != w.Min || !near(g.Mean, w.Mean) || g.Median != w.Median ||
			!near(g.StdDev, w.StdDev) ||
			g.Count != w.Count || g.Label != w.Label || g.Error != w.Error {
			t.Errorf("%s\ngot  %+v\nwant %+v", figure, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d figures, want %d: %v", len(got), len(want), got)
	}
}

// TestMeasureImagined: the device's peaks are the verdict's, and no time is measured.
func TestMeasureImagined(t *testing.T) {
	run := recorded(t, mem.RunInfo{ID: "r", Label: mem.Imagined, StartMono: 1}, mem.Process{ID: 1},
		mem.StepTotal{Process: 1, Steps: 3},
		mem.Steps{{Process: 1, Number: 3, Duration: 5}})
	r := report.New()
	r.Imagined = &report.Imagined{GPUVerdict: mem.GPUVerdict{Allocated: mem.Some(50), Reserved: mem.Some(60),
		Used: mem.Some(70)}}
	got := Measure(run, r, 0)
	if len(got) != 3 || got[Allocated].Max != 50 || got[Reserved].Max != 60 || got[DeviceUsed].Max != 70 ||
		got[DeviceUsed].Label != mem.Imagined {
		t.Errorf("%+v", got)
	}
}

// TestMeasureNothing: what was not recorded is absent.
func TestMeasureNothing(t *testing.T) {
	if got := Measure(mem.NewRun(), nil, 0); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestBecame: what a trial came to, and why.
func TestBecame(t *testing.T) {
	plain, code := mem.NewRun(), func(n int64) mem.Optional { return mem.Some(n) }
	with := func(e mem.Event) *mem.Run { return recorded(t, e) }
	verdict := func(v mem.Verdict, note string) *report.Imagined {
		return &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: v, GPUName: "Tesla T4", Note: note}}
	}
	for name, test := range map[string]struct {
		ended Ended
		state State
		why   string
	}{
		"fine":   {Ended{ExitCode: code(0), Run: plain}, Done, ""},
		"code":   {Ended{ExitCode: code(7), Run: plain, Said: "no luck"}, Failed, "exit code 7: no luck"},
		"silent": {Ended{ExitCode: code(7), Run: plain}, Failed, "exit code 7"},
		"signal": {Ended{Signal: mem.Some(11), Run: plain}, Failed, "ended by SIGSEGV"},
		"cannot": {Ended{ExitCode: code(3), Run: plain, Said: "hightide: no CUDA here"}, Unavailable,
			"no CUDA here"},
		"three by itself": {Ended{ExitCode: code(3), Run: plain, Said: "bye"}, Failed, "exit code 3: bye"},
		"timeout": {Ended{ExitCode: code(0), Run: plain, Stopped: true, Timeout: time.Minute}, TimedOut,
			"stopped after 1m0s"},
		"unreadable": {Ended{ExitCode: code(0)}, Failed, "its recording cannot be read"},
		"kernel": {Ended{Signal: mem.Some(9), Run: with(mem.Event{Kind: "kill", Text: "killed by the kernel"})},
			OutOfMemory, "killed by the kernel"},
		"device": {Ended{ExitCode: code(1), Run: with(mem.Event{Kind: "oom", Text: "CUDA out of memory"})},
			OutOfMemory, "CUDA out of memory"},
		"caught": {Ended{ExitCode: code(0), Run: with(mem.Event{Kind: "oom", Text: "CUDA out of memory"})},
			Done, ""},
		"malloc": {Ended{ExitCode: code(1),
			Run: with(mem.Event{Kind: "oom", Facts: map[string]string{"source": "malloc"}}), Said: "no file"}, Failed, "exit code 1: no file"},
		"Python":             {Ended{ExitCode: code(1), Run: plain, Said: "MemoryError"}, OutOfMemory, "MemoryError"},
		"fits":               {Ended{ExitCode: code(0), Run: plain, Imagined: verdict(mem.VerdictTight, "")}, Done, ""},
		"stopped once known": {Ended{Signal: mem.Some(15), Run: plain, Imagined: verdict(mem.VerdictFits, "")}, Done, ""},
		"imagined shortage": {Ended{ExitCode: code(1), Run: plain, Imagined: verdict(mem.VerdictOOM, "")}, OutOfMemory,
			"out of memory on Tesla T4"},
		"unused": {Ended{ExitCode: code(0), Run: plain, Imagined: verdict(mem.VerdictUnused, "")}, Unavailable,
			"the program used no GPU"},
		"imagined failure": {Ended{ExitCode: code(2), Run: plain, Imagined: verdict(mem.VerdictFailed, "")}, Failed,
			"exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if state, why := test.ended.Became(); state != test.state || why != test.why {
				t.Errorf("%s %q, want %s %q", state, why, test.state, test.why)
			}
		})
	}
}
