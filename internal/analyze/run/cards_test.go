package run

import (
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// logged is a log of one device: its use at each second, in MiB.
func logged(seconds int, of func(second int) int64) *report.Report {
	run := mem.NewRun()
	add := func(f mem.Frame) { _ = run.Add(f) }
	start := int64(1_700_000_000e9)
	add(mem.RunInfo{Verb: "telemetry", Label: mem.Measured, StartMono: start, StartWall: start,
		Host: mem.Host{GPUs: []mem.GPU{{Index: 0, Name: "gpu:0", Memory: mem.Some(24564 << 20)}}}})
	s := mem.Samples{Series: 1}
	for i := range seconds {
		s.Times, s.Values = append(s.Times, start+int64(i)*int64(time.Second)), append(s.Values, of(i)<<20)
	}
	add(mem.SeriesDef{ID: 1, Device: "gpu:0", Name: mem.SeriesDeviceUsed, Unit: mem.UnitBytes, Label: mem.Measured})
	add(s)
	add(mem.End{Time: s.Times[len(s.Times)-1], Reason: "left"})
	return Analyze(run, Options{})
}

// TestCards: what grows on a device that only a log tells of, with the time until it is full; what does not grow, and
// what is too short to tell.
func TestCards(t *testing.T) {
	// 1200 MiB a minute, 21980 at the end: 2584 MiB, 129 s are left
	r := logged(900, func(i int) int64 { return 4000 + 20*int64(i) })
	if len(r.Findings) != 1 || r.Findings[0].Kind != report.KindGrowth ||
		!strings.Contains(r.Findings[0].Text, "1.17 GiB per minute") ||
		!strings.Contains(r.Findings[0].Text, "full 2 min 9 s after the last reading") || r.Headline.NotLooked != "" {
		t.Errorf("%+v, %q", r.Findings, r.Headline.NotLooked)
	}
	if said := r.Headline.Verdict; !strings.Contains(said, "of 24.0 GiB in use on gpu:0") ||
		!strings.Contains(said, "full in about 2 min 9 s") {
		t.Errorf("%q", said)
	}
	for name, of := range map[string]func(int) int64{
		"steady":    func(int) int64 { return 20000 },
		"saw-tooth": func(i int) int64 { return 4000 + 200*int64(i%30) },
		"filled":    func(i int) int64 { return 4000 + 200*min(int64(i), 60) },
		"a jump":    func(i int) int64 { return 4000 + 9000*int64(i/450) },
	} {
		if r := logged(900, of); len(r.Findings) > 0 || r.Headline.NotLooked != "" ||
			!strings.Contains(r.Headline.Looked, "gpu:0") {
			t.Errorf("%s: %+v, %q, %q", name, r.Findings, r.Headline.NotLooked, r.Headline.Looked)
		}
	}
	if r := logged(60, func(i int) int64 { return 4000 + 20*int64(i) }); len(r.Findings) > 0 || !strings.Contains(r.Headline.NotLooked, "60 readings over 59 s are too few") {
		t.Errorf("short: %+v, %q", r.Findings, r.Headline.NotLooked)
	}
}
