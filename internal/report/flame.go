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
	t := Table{Name: "flame", Title: "Flame graph of " + of + ": " + what.Title, Note: fmt.Sprintf("Calls of at least 1 in %d; the outermost call first.", flameLeast),
		Columns: []Column{TextColumn("call", "Call"), {"value", UpperFirst(what.Name), what.Unit, set.Label}, {"share", "Share", mem.UnitMilli, set.Label}}}
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
