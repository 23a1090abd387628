package run

import (
	"cmp"
	"slices"

	"hightide/internal/analyze/facts"
	"hightide/internal/analyze/graph"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	stackSets    = 4  // processes that get one: those that held most
	stacksBeside = 60 // of one process, by each measure but what it held at the peak
)

// stacks gives each process's heap by whole stack: at its highest, when the program ended, and what was freed before.
func stacks(in *Input) (r report.Part) {
	var all []report.StackSet
	for _, p := range in.Run.Processes {
		if h := in.Histories[p.ID]; h != nil && h.Peak.Bytes > 0 {
			all = append(all, in.stackSet(p, h))
		}
	}
	slices.SortStableFunc(all, func(a, b report.StackSet) int { return cmp.Compare(b.Total, a.Total) })
	r.Stacks = append(r.Stacks, all[:min(len(all), stackSets)]...)
	return r
}

func (in *Input) stackSet(p *mem.Process, h *usage.History) report.StackSet {
	tree := graph.New(in.Names, report.StackSet{Name: "heap",
		Subject: report.Subject{Process: p.ID, Of: in.ProcessName(p.ID)}, Title: "Heap by call stack",
		Time: mem.Some(in.Since(h.Peak.Time)), Step: mem.Some(int64(h.Peak.Step)), Label: h.Label})
	tree.Source = in.Source
	var all mem.Tally[uint32, report.StackUse]
	variance := 0.0
	for _, u := range h.AtPeak() {
		variance += u.Variance
		*all.At(u.Stack) = report.StackUse{Node: int(u.Stack), Bytes: u.Bytes, Error: usage.Half95(u.Variance, u.Bytes),
			Count: u.Blocks, Phase: u.Phase}
	}
	measures, reading := report.HeapFlames[:1], "at the last reading"
	if p.Bye.Known() { // what it frees after that, it kept to its end
		reading += " before the program ended"
	}
	if end := h.MomentAt(p.Bye.Or(p.End.Or(in.End))); end > usage.Beginning {
		measures = report.HeapFlames
		for _, u := range h.Held(end) {
			use := all.At(u.Stack)
			use.Node, use.End = int(u.Stack), u.Bytes
		}
		if in.HeapTraced() { // what comes and goes between two looks is seen by none
			measures = measures[:2]
		} else {
			for stack, bytes := range h.Freed(end) {
				use := all.At(stack)
				use.Node, use.Churn = int(stack), bytes
			}
		}
	}
	uses, set := all.All, &tree.Set
	slices.SortFunc(uses, func(a, b report.StackUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Node, b.Node))
	})
	set.Measures = tree.Fill(uses, measures, stacksBeside, int64(h.Peak.Bytes/graph.LeastOfStacks),
		func(i int) []mem.Location { return h.Stacks.Frames(uint32(uses[i].Node)) })
	for m, title := range []string{"bytes held at the peak", "bytes held " + reading,
		"bytes allocated and freed again"}[:len(measures)] {
		set.Measures[m].Title, set.Measures[m].Unit = title, mem.UnitBytes
	}
	set.Total, set.Rest = mem.Bytes(set.Measures[0].Total), mem.Bytes(set.Measures[0].Rest)
	set.Error = usage.Half95(variance, set.Total)
	return *set
}

// HeapAt is what a process's heap held at a time by stack, as it was read last before; with from, only what it took
// after that. Times are in ns since the run began. nil: the heap of no such process was sampled.
func HeapAt(run *mem.Run, process uint32, at int64, from mem.Optional) *report.StackSet {
	h := usage.FromHeap(run, process)
	if h == nil {
		return nil
	}
	began := run.Start()
	moment := h.MomentAt(began + at)
	set := report.StackSet{Name: "heap", Subject: report.Subject{Process: process,
		Of: facts.ProcessName(run.Process(process))}, Title: "Heap at a moment, by call stack", Label: h.Label}
	if moment > usage.Beginning {
		set.Time = mem.Some(max(h.TimeOf(moment)-began, 0))
	}
	held, variance := h.Held(moment), 0.0
	if since, ok := from.Get(); ok {
		held = h.KeptSince(h.MomentAt(began+since), moment)
		set.Title = "Heap of a stretch, by call stack"
	}
	uses := make([]report.StackUse, len(held))
	for i, u := range held {
		variance += u.Variance
		uses[i] = report.StackUse{Node: int(u.Stack), Bytes: u.Bytes, Error: usage.Half95(u.Variance, u.Bytes),
			Count: u.Blocks, Phase: u.Phase}
	}
	set = graph.StackSetOf(usage.NewNames(&run.Stacks), set, uses)
	set.Error = usage.Half95(variance, set.Total)
	return &set
}
