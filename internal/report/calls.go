package report

import (
	"cmp"
	"slices"
)

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
