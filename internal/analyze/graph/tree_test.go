package graph

import (
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
	"testing"
)

// TestDeepStack: of a recursion the ends stay.
func TestDeepStack(t *testing.T) {
	tree := New(usage.NewNames(new(mem.StackTable)), report.StackSet{})
	var stack []mem.Location
	for i := range 500 {
		stack = append(stack, mem.Location{File: "deep.py", Line: i + 1})
	}
	node, lines := tree.Add(stack), []int{}
	for ; node >= 0; node = tree.Set.Parents[node] {
		lines = append(lines, tree.Set.Frames[tree.Set.Places[node]].Line)
	}
	if len(lines) != deepestOfStack || lines[0] != 1 || lines[len(lines)-1] != 500 {
		t.Errorf("%d frames, from line %d to %d", len(lines), lines[0], lines[len(lines)-1])
	}
}
