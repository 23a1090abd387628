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
