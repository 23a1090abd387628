package run

import (
	"testing"

	"hightide/internal/mem"
)

// TestSpanLinesAreResident: within a span a line took 75 MiB, of which 60 were seen later never to have been touched.
// It is given what was resident.
func TestSpanLinesAreResident(t *testing.T) {
	run := training(1).run()
	stack := run.Stacks.Add([]uint32{run.Stacks.Location(userLine(leakLine)[0])})
	at := run.Steps[100].Time
	span := mem.Span{Process: 1, Phase: mem.PhaseUser, Name: "build", Start: at, End: at + 1e9}
	run.Heap = map[uint32]*mem.Heap{}
	use := func(after int64, live, absent mem.Bytes) mem.HeapUse {
		return mem.HeapUse{Process: 1, Time: at + after, Live: live, Variance: 1 << 40, Absent: absent,
			Sites: []mem.SiteUse{{Stack: stack, Live: live, Count: 1, Absent: absent}}}
	}
	peak := use(6e8, 15<<20, 60<<20)
	peak.Peak = true
	for _, f := range []mem.Frame{use(-1e6, 0, 0), use(1e8, 75<<20, 0), use(6e8, 15<<20, 60<<20), peak, mem.Spans{span},
		mem.PhaseStats{Process: 1, Phase: mem.PhaseUser, Name: "build", Count: 1, Total: 1e9}} {
		must(run, f)
	}
	r := Analyze(run, Options{})
	for _, table := range r.Tables {
		if table.Name == "span-lines" {
			if got := table.Rows[0][3]; got != int64(15<<20) {
				t.Errorf("the line took %v bytes in the span, want those of 15 MiB", got)
			}
			return
		}
	}
	t.Error("no lines of spans")
}

// TestSpanLinesOfAShortSpan: the heap was read as a span of 80 ms ended, RSS before it and after.
func TestSpanLinesOfAShortSpan(t *testing.T) {
	run := training(1).run()
	stack := run.Stacks.Add([]uint32{run.Stacks.Location(userLine(leakLine)[0])})
	s := run.Find(1, mem.SeriesRSS)
	at, rss := s.Times[len(s.Times)-1], s.Values[len(s.Values)-1]
	s.Times, s.Values = append(s.Times, at+1e8), append(s.Values, rss+2<<30)
	span := mem.Span{Process: 1, Phase: mem.PhaseUser, Name: "cell [2]", Start: at + 1e6, End: at + 8e7}
	run.Heap = map[uint32]*mem.Heap{}
	live := mem.Bytes(rss) + mem.GiB
	for _, f := range []mem.Frame{mem.HeapUse{Process: 1, Time: at},
		mem.HeapUse{Process: 1, Time: at + 7e7, Live: live, Variance: 1 << 40,
			Sites: []mem.SiteUse{{Stack: stack, Live: live, Count: 1}}}, mem.Spans{span},
		mem.PhaseStats{Process: 1, Phase: mem.PhaseUser, Name: "cell [2]", Count: 1, Total: 8e7}} {
		must(run, f)
	}
	for _, table := range Analyze(run, Options{}).Tables {
		if table.Name == "span-lines" && table.Rows[0][3] == int64(live) {
			return
		}
	}
	t.Error("no line of the span, or not what it held")
}
