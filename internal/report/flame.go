package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Flames are the measures by which a device's flame graph can be drawn, HeapFlames those of a process's heap.
var (
	Flames     = usage.Measures
	HeapFlames = []string{"bytes", "end", "churn"}
)

const (
	flameLeast = 100 // one in so many of the whole is drawn as a row
	flameRows  = 60
)

// flameTable draws the flame graph as a tree of rows: calls through which nothing branches off are left out,
// but for the innermost line of the program's own.
func (set *StackSet) FlameTable(measure, of string) Table {
	m := slices.Index(Flames, measure)
	if m < 0 {
		return Table{}
	}
	what := set.Measures[m]
	t := Table{Name: "flame", Title: "Flame graph of " + of + ": " + what.Title,
		Note: fmt.Sprintf("Calls of at least 1 in %d; the outermost call first.", flameLeast),
		Columns: []Column{TextColumn("call", "Call"), {"value", UpperFirst(what.Name), what.Unit, set.Label},
			{"share", "Share", mem.UnitMilli, set.Label}}}
	root := set.Calls(m)
	var walk func(n *Call, lead, branch string)
	walk = func(n *Call, lead, branch string) {
		for len(n.Children) == 1 && n.Children[0].Value == n.Value {
			n = n.Children[0]
		}
		if len(t.Rows) >= flameRows {
			return
		}
		name := "all stacks"
		if n.Place >= 0 {
			name = frameName(&set.Frames[n.Place])
		}
		t.Add(lead+branch+name, n.Value, Share(mem.Bytes(n.Value), mem.Bytes(root.Value)))
		switch branch {
		case "├ ":
			lead += "│ "
		case "└ ":
			lead += "  "
		}
		kept := slices.DeleteFunc(slices.Clone(n.Children), func(c *Call) bool { return c.Value*flameLeast < root.Value })
		for i, c := range kept {
			if i == len(kept)-1 {
				walk(c, lead, "└ ")
			} else {
				walk(c, lead, "├ ")
			}
		}
	}
	walk(root, "", "")
	return t
}

func frameName(f *FramePlace) string {
	if f.Native || f.File == "" {
		name, _, _ := strings.Cut(strings.ReplaceAll(f.Function, "(anonymous namespace)::", ""), "(")
		return cmp.Or(name, f.Function)
	}
	return fmt.Sprintf("%s %s:%d", f.Function, path.Base(f.File), f.Line)
}

// StackSet is memory at one moment by call stack: what a flame graph draws. A stack that is not
// listed for want of room is in Rest, so that bytes and Rest add up to Total.
type StackSet struct {
	Name string `json:"name" doc:"heap of a process, or device of a snapshot."`
	Subject
	Title  string       `json:"title" doc:"The same for people."`
	Time   mem.Optional `json:"time_ns,omitzero" doc:"The moment, in ns since the run began."`
	Step   mem.Optional `json:"step,omitzero" doc:"How many steps were completed before."`
	Event  mem.Optional `json:"event,omitzero" doc:"Of a trace: the number of the last event before."`
	Label  mem.Label    `json:"label" doc:"Where the figures come from."`
	Total  mem.Bytes    `json:"total_bytes" doc:"The sum over all stacks in bytes."`
	Error  mem.Bytes    `json:"error_bytes,omitempty" doc:"Half the 95 % interval of the total, in bytes."`
	Rest   mem.Bytes    `json:"rest_bytes,omitempty" doc:"Bytes of stacks that are too thin to list."`
	Frames []FramePlace `json:"frames" doc:"Places in code, each once."`

	// The stacks as a tree: node i lies at place Places[i] of Frames. It was called from node
	// Parents[i], which comes before it. With -1 it is an outermost one.
	Parents []int      `json:"parents" doc:"The stacks as a tree: by node, the node that called it, which comes before it; -1: it is an outermost one."`
	Places  []int      `json:"places" doc:"By node: the number of its place among the frames."`
	Stacks  []StackUse `json:"stacks" doc:"The stacks, most bytes first."`

	Measures []FlameMeasure `json:"measures,omitempty" doc:"What the flame graph can show."`
}

// FlameMeasure is one figure of each stack, as StackUse.Measure gives it.
type FlameMeasure struct {
	Name  string   `json:"name" doc:"Of a device bytes, bytes-time, count or churn; of a heap bytes, end or churn."`
	Title string   `json:"title" doc:"The same for people."`
	Unit  mem.Unit `json:"unit" doc:"Its unit."`
	Total int64    `json:"total" doc:"The sum over all stacks, in that unit."`
	Rest  int64    `json:"rest,omitempty" doc:"What stacks that are not listed have of it, in that unit."`
}

// FramePlace is one place that stacks pass through.
type FramePlace struct {
	mem.Location
	User   bool   `json:"user,omitempty" doc:"Whether it is the program's own, not an installed package's."`
	Source string `json:"source,omitempty" doc:"The text of its line, where the file is on this machine and did not change since the run began."`
}

// StackUse is what one stack held.
type StackUse struct {
	Node       int                  `json:"node" doc:"Its innermost frame in the tree; -1: no frame is known."`
	Bytes      mem.Bytes            `json:"bytes" doc:"What it holds at the moment, in bytes."`
	Error      mem.Bytes            `json:"error_bytes,omitempty" doc:"Half the 95 % interval of that, in bytes."`
	Count      uint64               `json:"count" doc:"How many blocks, or of a heap samples, that is."`
	Phase      mem.Phase            `json:"phase,omitempty" doc:"The phase in which most of it was allocated."`
	Categories map[string]mem.Bytes `json:"categories,omitempty" doc:"Of a device: the bytes by what the blocks are for."`
	First      int32                `json:"first,omitempty" doc:"Of a trace that is explored: how many events were before its first block."`

	Average     mem.Bytes `json:"average_bytes,omitempty" doc:"Of devices: what it held on average over time, in bytes."`
	Allocations uint64    `json:"allocations,omitempty" doc:"How often it allocated."`
	Churn       mem.Bytes `json:"churn_bytes,omitempty" doc:"What it allocated and freed again, in bytes."`

	End mem.Bytes `json:"end_bytes,omitempty" doc:"Of heaps: what it held when the program ended, or at the last reading, in bytes."`
}

// Call is a place that stacks pass through, with what they hold together.
type Call struct {
	Place    int // in Frames of the set; -1: of the root, and of what has no frame
	Value    int64
	Children []*Call // most first
}

// Calls sums one of the set's measures up along the calls, the outermost first.
func (s *StackSet) Calls(measure int) *Call {
	root := &Call{Place: -1}
	nodes := make([]*Call, len(s.Parents))
	for i := range nodes {
		nodes[i] = &Call{Place: s.Places[i]}
		parent := root
		if s.Parents[i] >= 0 {
			parent = nodes[s.Parents[i]]
		}
		parent.Children = append(parent.Children, nodes[i])
	}
	for _, use := range s.Stacks {
		value := use.Measure(s.measureName(measure))
		root.Value += value
		for n := use.Node; n >= 0; n = s.Parents[n] {
			nodes[n].Value += value
		}
	}
	root.sort()
	return root
}

// Callers is the same from the innermost place outwards: who allocates, and below it who called for that.
func (s *StackSet) Callers(measure int) *Call {
	root := &Call{Place: -1}
	for _, use := range s.Stacks {
		value := use.Measure(s.measureName(measure))
		root.Value += value
		for n, at := use.Node, root; n >= 0; n = s.Parents[n] {
			at = at.child(s.Places[n])
			at.Value += value
		}
	}
	root.sort()
	return root
}

// measureName is what one of the set's measures is called; a set without has the bytes alone.
func (s *StackSet) measureName(measure int) string {
	if measure < len(s.Measures) {
		return s.Measures[measure].Name
	}
	return ""
}

func (c *Call) child(place int) *Call {
	for _, child := range c.Children {
		if child.Place == place {
			return child
		}
	}
	child := &Call{Place: place}
	c.Children = append(c.Children, child)
	return child
}

func (c *Call) sort() {
	slices.SortStableFunc(c.Children, func(p, q *Call) int { return cmp.Compare(q.Value, p.Value) })
	for _, child := range c.Children {
		child.sort()
	}
}
