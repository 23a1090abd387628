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

// Flames are the measures by which a flame graph can be drawn.
var Flames = usage.Measures

const (
	flameLeast = 100 // one in so many of the whole is drawn as a row
	flameRows  = 60
)

// flameNode is a call with the sum of what is below it.
type flameNode struct {
	place    int // -1: all stacks
	value    int64
	children []*flameNode
}

// flameTable draws the flame graph as a tree of rows: calls through which nothing branches off are left out,
// but for the innermost line of the program's own.
func (set *StackSet) FlameTable(measure, of string) Table {
	m := slices.Index(Flames, measure)
	if m < 0 {
		return Table{}
	}
	what := set.Measures[m]
	t := Table{Name: "flame", Title: "Flame graph of " + of + ": " + what.Title, Note: fmt.Sprintf("Calls of at least 1 in %d; the outermost call first.", flameLeast),
		Columns: []Column{TextColumn("call", "Call"), {"value", UpperFirst(what.Name), what.Unit, set.Label}, {"share", "Share", mem.UnitMilli, set.Label}}}
	root := set.grow(m)
	var walk func(n *flameNode, lead, branch string)
	walk = func(n *flameNode, lead, branch string) {
		for len(n.children) == 1 && n.children[0].value == n.value {
			n = n.children[0]
		}
		if len(t.Rows) >= flameRows {
			return
		}
		name := "all stacks"
		if n.place >= 0 {
			name = frameName(&set.Frames[n.place])
		}
		t.Add(lead+branch+name, n.value, Share(mem.Bytes(n.value), mem.Bytes(root.value)))
		switch branch {
		case "├ ":
			lead += "│ "
		case "└ ":
			lead += "  "
		}
		kept := slices.DeleteFunc(slices.Clone(n.children), func(c *flameNode) bool { return c.value*flameLeast < root.value })
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

// grow sums one measure up along the tree.
func (s *StackSet) grow(measure int) *flameNode {
	root := &flameNode{place: -1}
	nodes := make([]*flameNode, len(s.Parents))
	for i := range nodes {
		nodes[i] = &flameNode{place: s.Places[i]}
		parent := root
		if s.Parents[i] >= 0 {
			parent = nodes[s.Parents[i]]
		}
		parent.children = append(parent.children, nodes[i])
	}
	for _, use := range s.Stacks {
		value := use.Measure(measure)
		root.value += value
		for n := use.Node; n >= 0; n = s.Parents[n] {
			nodes[n].value += value
		}
	}
	for _, n := range append(nodes, root) {
		slices.SortStableFunc(n.children, func(p, q *flameNode) int { return cmp.Compare(q.value, p.value) })
	}
	return root
}
