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
	stacksShown    = 300  // of one process
	leastOfStacks  = 2000 // one in so many of the total is too thin to see
	deepestOfStack = 96   // frames; of a deeper one the middle is left out
)

// stacks gives each process's heap at its highest by whole stack.
func stacks(in *Input, r *report.Report) {
	var all []report.StackSet
	for _, p := range in.Run.Processes {
		if h := in.histories[p.ID]; h != nil && h.Peak.Bytes > 0 {
			all = append(all, in.stackSet(p.ID, h))
		}
	}
	slices.SortStableFunc(all, func(a, b report.StackSet) int { return cmp.Compare(b.Total, a.Total) })
	r.Stacks = append(r.Stacks, all[:min(len(all), stackSets)]...)
}

func (in *Input) stackSet(process uint32, h *usage.History) report.StackSet {
	tree := newStackTree(in.names, report.StackSet{Name: "heap", Subject: report.Subject{Process: process, Of: in.processName(process)}, Title: "Heap at its highest, by stack",
		Time: mem.Some(in.since(h.Peak.Time)), Step: mem.Some(int64(h.Peak.Step)), Label: h.Label})
	set := &tree.set
	uses := slices.Clone(h.AtPeak())
	slices.SortStableFunc(uses, func(a, b usage.Use) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stack, b.Stack))
	})
	var variance float64
	for i, u := range uses {
		set.Total += u.Bytes
		variance += u.Variance
		if i >= stacksShown || u.Bytes <= 0 || u.Bytes < h.Peak.Bytes/leastOfStacks {
			set.Rest += u.Bytes
			continue
		}
		set.Stacks = append(set.Stacks, report.StackUse{
			Node: tree.add(h.Stacks.Frames(u.Stack)), Bytes: u.Bytes, Error: usage.Half95(u.Variance, u.Bytes), Count: u.Blocks, Phase: u.Phase,
		})
	}
	set.Error = usage.Half95(variance, set.Total)
	return *set
}

// stackTree grows a StackSet's tree.
type stackTree struct {
	names  *usage.Names
	set    report.StackSet
	frames map[mem.Location]int
	nodes  map[[2]int]int // (parent, frame)
}

func newStackTree(names *usage.Names, set report.StackSet) *stackTree {
	set.Frames, set.Parents, set.Places, set.Stacks = []report.FramePlace{}, []int{}, []int{}, []report.StackUse{}
	return &stackTree{names: names, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, set: set}
}

// add puts a stack into the tree and returns its innermost node. Frames of our own are left out.
func (t *stackTree) add(stack []mem.Location) int {
	node, depth := -1, 0
	for _, l := range slices.Backward(stack) {
		if !l.Native && t.names.Kind(l.File) == usage.OwnFile {
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
		t.set.Frames = append(t.set.Frames, report.FramePlace{Location: l, User: !l.Native && t.names.Kind(l.File) == usage.UserFile})
	}
	return n
}
