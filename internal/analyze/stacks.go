package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// StackSet is memory at one moment by call stack: what a flame graph draws. A stack that is not
// listed for want of room is in Rest, so that bytes and Rest add up to Total.
type StackSet struct {
	Name    string       `json:"name"`  // "heap"
	Title   string       `json:"title"` // for people
	Process uint32       `json:"process"`
	Device  string       `json:"device,omitempty"`
	Time    int64        `json:"time_ns"` // since the run began
	Step    uint64       `json:"step"`    // steps completed before
	Label   mem.Label    `json:"label"`
	Total   mem.Bytes    `json:"total_bytes"`
	Error   mem.Bytes    `json:"error_bytes,omitempty"` // half the 95 % interval of the total
	Rest    mem.Bytes    `json:"rest_bytes,omitempty"`
	Frames  []FramePlace `json:"frames"` // each place once

	// The stacks as a tree: node i lies at place Places[i] of Frames and was called from node
	// Parents[i], which comes before it; -1: from nowhere, it is an outermost one.
	Parents []int      `json:"parents"`
	Places  []int      `json:"places"`
	Stacks  []StackUse `json:"stacks"` // most bytes first

	Measures []FlameMeasure `json:"measures,omitempty"` // of devices: what the flame graph can show
}

// FlameMeasure is one figure of each stack: Bytes, Average, Allocations or Churn of StackUse.
type FlameMeasure struct {
	Name  string   `json:"name"` // bytes, bytes-time, count, churn
	Title string   `json:"title"`
	Unit  mem.Unit `json:"unit"`
	Total int64    `json:"total"`
	Rest  int64    `json:"rest,omitempty"` // of stacks that are not listed
}

// FramePlace is one place that stacks pass through.
type FramePlace struct {
	mem.Location
	User bool `json:"user,omitempty"` // the program's own, not an installed package
}

// StackUse is what one stack held.
type StackUse struct {
	Node  int       `json:"node"` // its innermost frame in the tree; -1: no frame is known
	Bytes mem.Bytes `json:"bytes"`
	Error mem.Bytes `json:"error_bytes,omitempty"`
	Count uint64    `json:"count"`
	Phase mem.Phase `json:"phase,omitempty"`

	Average     mem.Bytes `json:"average_bytes,omitempty"` // of devices: held, over time
	Allocations uint64    `json:"allocations,omitempty"`
	Churn       mem.Bytes `json:"churn_bytes,omitempty"` // allocated and freed again
}

const (
	stackSets      = 4    // processes that get one: those that held most
	stacksShown    = 300  // of one process
	leastOfStacks  = 2000 // one in so many of the total is too thin to see
	deepestOfStack = 96   // frames; of a deeper one the middle is left out
)

// stacks gives each process's heap at its highest by whole stack.
func stacks(in *Input, r *Report) {
	var all []StackSet
	for _, p := range in.Run.Processes {
		if h := in.Run.Heap[p.ID]; h != nil && h.Peak != nil && h.Peak.Live > 0 {
			all = append(all, in.stackSet(h.Peak))
		}
	}
	slices.SortStableFunc(all, func(a, b StackSet) int { return cmp.Compare(b.Total, a.Total) })
	r.Stacks = append(r.Stacks, all[:min(len(all), stackSets)]...)
}

func (in *Input) stackSet(peak *mem.HeapUse) StackSet {
	s := in.samplingOf(peak.Process)
	tree := stackTree{in: in, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, set: StackSet{
		Name: "heap", Title: "Heap at its highest, by stack", Process: peak.Process, Time: in.since(peak.Time), Step: peak.Step,
		Label: mem.Sampled, Frames: []FramePlace{}, Parents: []int{}, Places: []int{}, Stacks: []StackUse{},
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
		set.Stacks = append(set.Stacks, StackUse{
			Node: tree.add(in.Run.Stacks.Frames(u.Stack)), Bytes: u.Live, Error: half95(s.variance(u.Live, u.Count), u.Live), Count: u.Count, Phase: u.Phase,
		})
	}
	set.Error = half95(variance, set.Total)
	return *set
}

// stackTree grows a StackSet's tree.
type stackTree struct {
	in     *Input
	set    StackSet
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
		t.set.Frames = append(t.set.Frames, FramePlace{l, !l.Native && t.in.places.kind(l.File) == userFile})
	}
	return n
}
