// Package growth finds what grows in a run, what keeps it, and when memory runs out by it.
//
//	facts.Facts ──▶ lines of the heap (heap.go) ⨯ containers (joining.go) ──┐
//	           └──▶ processes and devices as a whole (whole.go) ────────────┴──▶ Found ──▶ findings (text.go), clause.go
//
// What came to rest before the end is told apart (stopped.go), as is what fills up to a bound (bounded.go), is emptied
// again (emptied.go) or waits for Python's collector (cycles.go). Logs of whole devices have cards.go. Read found.go,
// then growth.go.
package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Find finds what grows steadily, joins it with the containers that keep it, and says what it will come to.
func Find(f *facts.Facts) *Found {
	in := &Found{Facts: f, tested: map[uint32][]string{}, leastTold: map[string]float64{},
		rateOff: map[string]float64{}}
	heaps := in.causes()
	tested := len(in.tested) > 0
	for i := range in.growing {
		in.Said.Findings = append(in.Said.Findings, in.growthFinding(&in.growing[i]))
	}
	for i := range in.stopped {
		in.Said.Findings = append(in.Said.Findings, in.stoppedFinding(&in.stopped[i]))
	}
	in.Said.Findings = append(in.Said.Findings, in.emptiedFindings()...)
	in.Said.AddTable(in.growthTable())
	in.wholeRate(tested)
	if heaps == 0 && !tested {
		in.NotLooked = in.whyNotLooked()
	} else {
		in.Looked = in.lookedFor(heaps > 0, tested)
		in.uneven()
		in.unsureLine()
	}
	in.largerNotes()
	in.largerStepNote()
	in.fileNotes()
	in.Said.Findings = append(in.Said.Findings, in.cycles(in.Said.Findings)...)
	if len(f.Run.Processes) == 0 {
		in.ofLog()
	}
	return in
}

// causes finds what grows and what came to rest; heaps is how many were looked at.
func (in *Found) causes() (heaps int) {
	for _, p := range in.Run.Processes {
		found, looked := in.heapCauses(p)
		in.growing = append(in.growing, found...)
		if looked {
			heaps++
		}
	}
	in.growing = in.merged(in.growing)
	in.stopped = slices.DeleteFunc(in.stoppedCauses(), in.goesOnUnseen)
	in.totals = in.largerSteps(in.goingOn(in.totalGrowth()), in.growing)
	in.growing = append(in.growing, in.unexplained(in.totals, in.growing)...)
	in.sizedGrowth()
	in.resting()
	slices.SortStableFunc(in.growing, func(a, b growing) int {
		if in.ends(&a) != in.ends(&b) { // what goes on comes first
			return map[bool]int{true: 1, false: -1}[in.ends(&a)]
		}
		return cmp.Compare(b.slope, a.slope)
	})
	return heaps
}

// leastSmall is how much must be kept in blocks that are sampled for it to be told from chance, in the process whose
// samples lay furthest apart.
func (in *Found) leastSmall() (bytes float64) {
	for process := range in.Histories {
		bytes = max(bytes, usage.SamplingOf(in.Run, process).Least())
	}
	return bytes
}

// lookedFor says what growth would have been told.
func (in *Found) lookedFor(heap, whole bool) string {
	var said []string
	if heap {
		lines := fmt.Sprintf("%v or more kept by lines of the %s", mem.Bytes(leastHeap), in.HeapName())
		if small := in.leastSmall(); small > leastHeap {
			lines += fmt.Sprintf(" (in blocks below %v: %v or more)", mem.Bytes(usage.WholeBlock), mem.Bytes(small))
		}
		said = append(said, lines)
	}
	if whole {
		of := fmt.Sprintf("%v or more of a process or device (%g %% of its peak where that is more", mem.Bytes(facts.LeastTotal),
			100*in.leastShareOf(in.Leader, "rss"))
		if p := in.Run.Process(in.Leader); p != nil && in.recordedHistory(p) > 0 {
			of += fmt.Sprintf("; of host memory %v more, which the recorded history of the device's allocator may take",
				mem.Bytes(in.recordedHistory(p)))
		}
		said = append(said, of+")")
	}
	looked := "Looked for steady growth: " + strings.Join(said, ", and ") + "."
	switch {
	case whole:
		return looked
	case in.ClockOf(in.Leader).Minutes:
		return looked + fmt.Sprintf(" Growth of a whole process, which alone shows memory that the sampler does not see, "+
			"was not looked for: without steps that takes %s.", report.Duration(int64(leastLifeRSS)))
	}
	return looked + " Growth of a whole process, which alone shows memory that the sampler does not see, was not " +
		"looked for: too few ends of steps were read."
}

// whyNotLooked says why nothing was looked at that could tell a leak.
func (in *Found) whyNotLooked() string {
	p := in.Run.Process(in.Leader)
	c := in.ClockOf(in.Leader)
	from, to := c.Window(p, in.End)
	life := report.Duration(max(to-from, 0))
	heap := in.Run.Heap[in.Leader] != nil
	switch {
	case !c.Minutes && c.Steps[len(c.Steps)-1] >= leastEnds:
		return fmt.Sprintf("Leaks were not looked for: memory was read at the ends of too few of the %s to tell a growth "+
			"from a warm-up.", report.Counted(int64(c.Steps[len(c.Steps)-1]), "step"))
	case in.Run.Serves():
		return "Leaks were not looked for: only the start of a server was imagined."
	case in.Label() == mem.Imagined:
		return "Leaks were not looked for: too few steps were imagined to tell a growth from a warm-up."
	case !c.Minutes:
		return "Leaks were not looked for: too few steps were observed to tell a growth from a warm-up."
	case heap && time.Duration(to-from) < LeastLifeHeap:
		return fmt.Sprintf("Leaks were not looked for: no steps were seen, and %s are too short to tell growth over time "+
			"(it takes %s).", life, report.Duration(int64(LeastLifeHeap)))
	case heap:
		return "Leaks were not looked for: no steps were seen, and the heap was read too seldom to tell growth over time."
	}
	return fmt.Sprintf("Leaks were not looked for: no steps were seen and the heap was not sampled, so it takes a run "+
		"of %s.", report.Duration(int64(leastLifeRSS)))
}

const objectsNote = "Steady growth after warm-up, from the sampled heap; ± is half the 95 % interval. Python's small " +
	"objects are told at the lines where Python asked for their memory: which lines make them is not known."

// growthTable has a row for each line of each cause.
func (in *Found) growthTable() report.Table {
	t := report.Table{
		Name: "growth", Title: "What grows, line by line",
		Note: "Steady growth after warm-up, from the " + in.HeapName() + "; ± is half the 95 % interval.",
		Columns: []report.Column{report.TextColumn("line", "line"), report.TextColumn("function", "function"),
			report.BytesColumn("per_step", "per step", in.HeapLabel()),
			report.BytesColumn("error", "±", in.HeapLabel()),
			report.BytesColumn("per_minute", "per minute", in.HeapLabel()),
			report.BytesColumn("kept", "kept at the end", in.HeapLabel()), report.TextColumn("phase", "phase"),
			report.TextColumn("holder", "kept by"), report.TextColumn("process", "process"), report.TextColumn("file", "file")},
	}
	for _, g := range in.growing {
		holder := ""
		if g.holder != nil {
			holder = strings.ReplaceAll(g.holderNames(), "`", "")
		}
		if g.objects() {
			t.Note = objectsNote
		}
		for _, l := range g.lines {
			if len(t.Rows) >= 60 {
				break
			}
			step, minute := any(bytesPer(l.Slope)), any(nil)
			if g.minutes {
				step, minute = nil, step
			}
			t.Add(l.Site.Name, l.Site.Function, step, bytesPer(l.Half), minute,
				l.Held, l.Phase, holder, in.ProcessName(l.process), l.Site.File)
		}
	}
	return t
}
