package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
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
		if h := in.Run.Heap[p.ID]; h != nil && h.Peak != nil && h.Peak.Live > 0 {
			all = append(all, in.stackSet(h.Peak))
		}
	}
	slices.SortStableFunc(all, func(a, b report.StackSet) int { return cmp.Compare(b.Total, a.Total) })
	r.Stacks = append(r.Stacks, all[:min(len(all), stackSets)]...)
}

func (in *Input) stackSet(peak *mem.HeapUse) report.StackSet {
	s := in.samplingOf(peak.Process)
	tree := stackTree{in: in, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, set: report.StackSet{
		Name: "heap", Subject: report.Subject{Process: peak.Process, Of: in.processName(peak.Process)}, Title: "Heap at its highest, by stack",
		Time: mem.Some(in.since(peak.Time)), Step: mem.Some(int64(peak.Step)),
		Label: mem.Sampled, Frames: []report.FramePlace{}, Parents: []int{}, Places: []int{}, Stacks: []report.StackUse{},
	}}
	set := &tree.set
	uses := slices.Clone(peak.Sites)
	slices.SortStableFunc(uses, func(a, b mem.SiteUse) int {
		return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(a.Stack, b.Stack))
	})
	var variance float64
	for i, u := range uses {
		set.Total += u.Live
		variance += s.variance(u.Live, u.Count)
		if i >= stacksShown || u.Live <= 0 || u.Live < peak.Live/leastOfStacks {
			set.Rest += u.Live
			continue
		}
		set.Stacks = append(set.Stacks, report.StackUse{
			Node: tree.add(in.Run.Stacks.Frames(u.Stack)), Bytes: u.Live, Error: half95(s.variance(u.Live, u.Count), u.Live), Count: u.Count, Phase: u.Phase,
		})
	}
	set.Error = half95(variance, set.Total)
	return *set
}

// stackTree grows a StackSet's tree.
type stackTree struct {
	in     *Input
	set    report.StackSet
	frames map[mem.Location]int
	nodes  map[[2]int]int // (parent, frame)
}

// add puts a stack into the tree and returns its innermost node. Frames of our own are left out.
func (t *stackTree) add(stack []mem.Location) int {
	node, depth := -1, 0
	for _, l := range slices.Backward(stack) {
		if !l.Native && t.in.places.kind(l.File) == ownFile {
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
		t.set.Frames = append(t.set.Frames, report.FramePlace{Location: l, User: !l.Native && t.in.places.kind(l.File) == userFile})
	}
	return n
}
