// Package graph puts stacks and what they did into a tree, for flame graphs: those of a sampled heap and those of a
// device's trace. The tree has no frames that nobody looks for.
package graph

import (
	"cmp"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
	"slices"
)

const (
	StacksShown    = 300  // of one process or device, by each measure
	LeastOfStacks  = 2000 // one in so many of the total is too thin to see
	deepestOfStack = 96   // frames; of a deeper one the middle is left out
)

// StackSetOf is what some stacks of a table held, as a tree without the frames that no one looks for. Node of a use
// is its stack's number.
func StackSetOf(names *usage.Names, set report.StackSet, uses []report.StackUse) report.StackSet {
	tree := New(names, set)
	slices.SortStableFunc(uses, func(a, b report.StackUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Node, b.Node))
	})
	var total mem.Bytes
	for _, u := range uses {
		total += u.Bytes
	}
	whole := tree.Fill(uses, report.Flames[:1], StacksShown, int64(total/LeastOfStacks), func(i int) []mem.Location {
		if frames := names.Pictured(uint32(uses[i].Node)); len(frames) > 0 {
			return frames
		}
		if uses[i].First == 0 {
			return []mem.Location{{Function: usage.BeforeTrace, Native: true}}
		}
		return []mem.Location{{Function: usage.NoFrames, Native: true}}
	})
	tree.Set.Total, tree.Set.Rest = mem.Bytes(whole[0].Total), mem.Bytes(whole[0].Rest)
	return tree.Set
}

// StandsForNone says whether a frame stands for a stack that has none.
func StandsForNone(l mem.Location) bool {
	return l.File == "" && (l.Function == usage.BeforeTrace || l.Function == usage.NoFrames)
}

// Tree grows a StackSet's tree.
type Tree struct {
	names  *usage.Names
	Source func(mem.Location) string // of the program's own lines; nil: not known
	Set    report.StackSet
	frames map[mem.Location]int
	nodes  map[[2]int]int // (parent, frame)
}

func New(names *usage.Names, set report.StackSet) *Tree {
	set.Frames, set.Parents, set.Places, set.Stacks = []report.FramePlace{}, []int{}, []int{}, []report.StackUse{}
	return &Tree{names: names, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, Set: set}
}

// Fill puts the largest stacks by each measure into the tree, those of at least so much. It says what all of them and
// those left out come to. Parameter beside is how many by each measure but the first.
func (t *Tree) Fill(uses []report.StackUse, measures []string, beside int, least int64,
	frames func(use int) []mem.Location) []report.FlameMeasure {
	chosen, whole := make([]bool, len(uses)), make([]report.FlameMeasure, len(measures))
	order, shown := make([]int, len(uses)), StacksShown
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
		use.Node = t.Add(frames(i))
		t.Set.Stacks = append(t.Set.Stacks, use)
	}
	slices.SortStableFunc(t.Set.Stacks, func(p, q report.StackUse) int { return cmp.Compare(q.Bytes, p.Bytes) })
	return whole
}

// Add puts a stack into the tree and returns its innermost node. Frames of our own and those of Python's import are
// left out, so that what importing allocates is the line's that imports; what we allocate ourselves is one node.
func (t *Tree) Add(stack []mem.Location) int {
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
			next = len(t.Set.Parents)
			t.nodes[key] = next
			t.Set.Parents, t.Set.Places = append(t.Set.Parents, key[0]), append(t.Set.Places, key[1])
		}
		node = next
	}
	return node
}

// frame is the number of a place.
func (t *Tree) frame(l mem.Location) int {
	n, ok := t.frames[l]
	if !ok {
		n = len(t.Set.Frames)
		t.frames[l] = n
		place := report.FramePlace{Location: l, User: !l.Native && t.names.Kind(l.File) == usage.UserFile}
		if place.User && t.Source != nil {
			place.Source = t.Source(l)
		}
		t.Set.Frames = append(t.Set.Frames, place)
	}
	return n
}
