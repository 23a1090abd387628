package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestShortLived: a peak that processes of less than half a second, or that were hardly read, can have passed unseen
// is "at least". A few small ones beside a large program change nothing.
func TestShortLived(t *testing.T) {
	for _, test := range []struct {
		name  string
		count int
		mark  mem.Optional // MiB of each short-lived one
		life  int64
		every int64 // between two readings
		want  bool
	}{
		{"a bomb", 40, mem.Some(int64(15)), 3e8, 1e8, true},
		{"a bomb of which few were seen", 40, mem.Optional{}, 3e8, 1e8, true},
		{"a compiler now and then", 6, mem.Some(int64(15)), 3e8, 1e8, false},
		{"workers", 40, mem.Some(int64(15)), 5e9, 1e8, false},
		{"workers of a machine that is too busy to look", 40, mem.Some(int64(15)), 19e8, 2e9, true},
		{"none", 0, mem.Optional{}, 0, 1e8, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := mem.NewRun()
			frames := []mem.Frame{
				mem.RunInfo{ID: "x", StartMono: 1},
				mem.Process{ID: 1, PID: 10, Role: "main", Start: 1},
				mem.Process{ID: 2, PID: 11, Role: "child", Start: 1e9, End: mem.Some(int64(12e8)),
					MaxRSS: mem.Some(int64(15 << 20))},
				mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
			}
			for at := int64(1e9); at <= 9e9; at += test.every {
				frames = append(frames, mem.Samples{Series: 1, Times: []int64{at}, Values: []int64{max(10<<20, 1<<30-(at-1e9))}})
			}
			for i := range test.count {
				p := mem.Process{ID: uint32(i + 3), PID: 100 + i, Role: "child", Start: 2e9 + int64(i)*1e6}
				p.End = mem.Some(p.Start + test.life)
				if mark, ok := test.mark.Get(); ok {
					p.MaxRSS = mem.Some(mark << 20)
				}
				frames = append(frames, p)
			}
			for _, f := range append(frames, mem.End{Time: 10e9, ExitCode: mem.Some(int64(0))}) {
				if err := run.Add(f); err != nil {
					t.Fatal(err)
				}
			}
			r := Analyze(run, Options{})
			if got := strings.HasPrefix(r.Headline.Verdict, "Peak at least "); got != test.want || r.Headline.Peak.AtLeast != test.want {
				t.Errorf("%q, at least %v", r.Headline.Verdict, r.Headline.Peak.AtLeast)
			}
		})
	}
}
