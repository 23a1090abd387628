package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestPeakOfThoseAlive: a peak is of the processes that there were then, and the RSS beside it may be of another
// moment.
func TestPeakOfThoseAlive(t *testing.T) {
	run := mem.NewRun()
	for _, p := range []mem.Process{{ID: 1}, {ID: 2, Start: 1e9, End: mem.Some(int64(2e9))}} {
		if err := run.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	in := newInput(run, Options{})
	for at, want := range map[int64]string{
		15e8: "Peak 800 MiB PSS of 2 processes (estimated; 1.50 GiB RSS, where shared pages count in each), 1.5 s after",
		30e8: "Peak 800 MiB PSS of 1 process (estimated; the highest RSS of the run is 1.50 GiB, where pages that other " +
			"processes use too count in full), 3 s after",
	} {
		in.Figure = mem.Figure{Bytes: 800 << 20, What: "PSS", Source: mem.SeriesTreePSS}
		in.Peak = report.Peak{HostRSS: mem.Some(1536 << 20), Time: mem.Some(at)}
		var b strings.Builder
		if in.verdictPeak(&b); !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s\nwant %s", b.String(), want)
		}
	}
}
