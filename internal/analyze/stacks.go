package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	stackSets      = 4    // processes that get one: those that held most
	stacksShown    = 300  // of one process or device, by each measure
	stacksBeside   = 60   // of one process, by each measure but what it held at the peak
	leastOfStacks  = 2000 // one in so many of the total is too thin to see
	deepestOfStack = 96   // frames; of a deeper one the middle is left out
)

// stacks gives each process's heap by whole stack: at its highest, when the program ended, and what was freed before.
func stacks(in *Input, r *report.Report) {
	var all []report.StackSet
	for _, p := range in.Run.Processes {
		if h := in.histories[p.ID]; h != nil && h.Peak.Bytes > 0 {
			all = append(all, in.stackSet(p, h))
		}
	}
	slices.SortStableFunc(all, func(a, b report.StackSet) int { return cmp.Compare(b.Total, a.Total) })
	r.Stacks = append(r.Stacks, all[:min(len(all), stackSets)]...)
}

func (in *Input) stackSet(p *mem.Process, h *usage.History) report.StackSet {
	tree := newStackTree(in.names, report.StackSet{Name: "heap",
		Subject: report.Subject{Process: p.ID, Of: in.processName(p.ID)}, Title: "Heap by call stack",
		Time: mem.Some(in.since(h.Peak.Time)), Step: mem.Some(int64(h.Peak.Step)), Label: h.Label})
	tree.source = in.source
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
	if end := h.MomentAt(p.Bye.Or(p.End.Or(in.end))); end > usage.Beginning {
		measures = report.HeapFlames
		for _, u := range h.Held(end) {
			use := all.At(u.Stack)
			use.Node, use.End = int(u.Stack), u.Bytes
		}
		for stack, bytes := range h.Freed(end) {
			use := all.At(stack)
			use.Node, use.Churn = int(stack), bytes
		}
	}
	uses, set := all.All, &tree.set
	slices.SortFunc(uses, func(a, b report.StackUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Node, b.Node))
	})
	set.Measures = tree.fill(uses, measures, stacksBeside, int64(h.Peak.Bytes/leastOfStacks),
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
		Of: processName(run.Process(process))}, Title: "Heap at a moment, by call stack", Label: h.Label}
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
	set = StackSetOf(usage.NewNames(&run.Stacks), set, uses)
	set.Error = usage.Half95(variance, set.Total)
	return &set
}

// StackSetOf is what some stacks of a table held, as a tree without the frames that no one looks for. Node of a use
// is its stack's number.
func StackSetOf(names *usage.Names, set report.StackSet, uses []report.StackUse) report.StackSet {
	tree := newStackTree(names, set)
	slices.SortStableFunc(uses, func(a, b report.StackUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Node, b.Node))
	})
	var total mem.Bytes
	for _, u := range uses {
		total += u.Bytes
	}
	whole := tree.fill(uses, report.Flames[:1], stacksShown, int64(total/leastOfStacks), func(i int) []mem.Location {
		if frames := names.Pictured(uint32(uses[i].Node)); len(frames) > 0 {
			return frames
		}
		if uses[i].First == 0 {
			return []mem.Location{{Function: usage.BeforeTrace, Native: true}}
		}
		return []mem.Location{{Function: usage.NoFrames, Native: true}}
	})
	tree.set.Total, tree.set.Rest = mem.Bytes(whole[0].Total), mem.Bytes(whole[0].Rest)
	return tree.set
}

// StandsForNone says whether a frame stands for a stack that has none.
func StandsForNone(l mem.Location) bool {
	return l.File == "" && (l.Function == usage.BeforeTrace || l.Function == usage.NoFrames)
}

// stackTree grows a StackSet's tree.
type stackTree struct {
	names  *usage.Names
	source func(mem.Location) string // of the program's own lines; nil: not known
	set    report.StackSet
	frames map[mem.Location]int
	nodes  map[[2]int]int // (parent, frame)
}

func newStackTree(names *usage.Names, set report.StackSet) *stackTree {
	set.Frames, set.Parents, set.Places, set.Stacks = []report.FramePlace{}, []int{}, []int{}, []report.StackUse{}
	return &stackTree{names: names, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, set: set}
}

// fill puts the largest stacks by each measure into the tree, those of at least so much. It says what all of them and
// those left out come to. Parameter beside is how many by each measure but the first.
func (t *stackTree) fill(uses []report.StackUse, measures []string, beside int, least int64,
	frames func(use int) []mem.Location) []report.FlameMeasure {
	chosen, whole := make([]bool, len(uses)), make([]report.FlameMeasure, len(measures))
	order, shown := make([]int, len(uses)), stacksShown
	for m, name := range measures {
		if whole[m].Name = name; m > 0 {
			shown = beside
		}
		for i := range order {
			order[i] = i
			whole[m].Total += uses[i].Measure(name)
		}
		slices.SortStableFunc(order, func(p, q int) int { return cmp.Compare(uses[q].Measure(name), uses[p].Measure(name)) })
		for _, i := range order[:min(len(order), shown)] {
			chosen[i] = chosen[i] || uses[i].Measure(name) >= max(least, 1)
		}
	}
	for i, use := range uses {
		if !chosen[i] {
			for m, name := range measures {
				whole[m].Rest += use.Measure(name)
			}
			continue
		}
		use.Node = t.add(frames(i))
		t.set.Stacks = append(t.set.Stacks, use)
	}
	slices.SortStableFunc(t.set.Stacks, func(p, q report.StackUse) int { return cmp.Compare(q.Bytes, p.Bytes) })
	return whole
}

// add puts a stack into the tree and returns its innermost node. Frames of our own and those of Python's import are
// left out, so that what importing allocates is the line's that imports; what we allocate ourselves is one node.
func (t *stackTree) add(stack []mem.Location) int {
	if t.names.IsOwn(stack) {
		stack = []mem.Location{{Function: usage.OwnAgent, Native: true}}
	}
	node, depth := -1, 0
	for _, l := range slices.Backward(stack) {
		if !l.Native && t.names.Kind(l.File) == usage.OwnFile || node >= 0 && usage.IsImport(&l) {
			continue
		}
		depth++
		if depth > deepestOfStack/2 && len(stack)-depth >= deepestOfStack/2 {
			continue
		}
		key := [2]int{node, t.frame(l)}
		next, ok := t.nodes[key]
		if !ok {
			next = len(t.set.Parents)
			t.nodes[key] = next
			t.set.Parents, t.set.Places = append(t.set.Parents, key[0]), append(t.set.Places, key[1])
		}
		node = next
	}
	return node
}

// frame is the number of a place.
func (t *stackTree) frame(l mem.Location) int {
	n, ok := t.frames[l]
	if !ok {
		n = len(t.set.Frames)
		t.frames[l] = n
		place := report.FramePlace{Location: l, User: !l.Native && t.names.Kind(l.File) == usage.UserFile}
		if place.User && t.source != nil {
			place.Source = t.source(l)
		}
		t.set.Frames = append(t.set.Frames, place)
	}
	return n
}
