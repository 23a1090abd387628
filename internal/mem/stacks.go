package mem

// StackTable keeps every distinct call stack once, as a tree that grows from the outermost call:
// stacks that share their callers share the nodes. Stack 0 is the empty stack.
type StackTable struct {
	Locations []Location // distinct
	nodes     []stackNode
	children  map[stackNode]uint32
	known     map[Location]uint32
}

type stackNode struct {
	parent   uint32 // the caller
	location uint32
}

// Location returns the number of a location, adding it at first sight.
func (t *StackTable) Location(l Location) uint32 {
	if id, ok := t.known[l]; ok {
		return id
	}
	if t.known == nil {
		t.known = map[Location]uint32{}
	}
	id := uint32(len(t.Locations))
	t.Locations = append(t.Locations, l)
	t.known[l] = id
	return id
}

// Add returns the number of a stack given by location numbers, innermost first.
func (t *StackTable) Add(innermostFirst []uint32) uint32 {
	if t.nodes == nil {
		t.nodes = []stackNode{{}}
		t.children = map[stackNode]uint32{}
	}
	at := uint32(0)
	for i := len(innermostFirst) - 1; i >= 0; i-- {
		node := stackNode{at, innermostFirst[i]}
		next, ok := t.children[node]
		if !ok {
			next = uint32(len(t.nodes))
			t.nodes = append(t.nodes, node)
			t.children[node] = next
		}
		at = next
	}
	return at
}

// Len is the number of nodes; every stack's number is below it.
func (t *StackTable) Len() int { return len(t.nodes) }

// Is says whether stack id consists of exactly these location numbers.
func (t *StackTable) Is(id uint32, innermostFirst []uint32) bool {
	for _, location := range innermostFirst {
		if id == 0 || t.nodes[id].location != location {
			return false
		}
		id = t.nodes[id].parent
	}
	return id == 0
}

// Frames returns a stack, innermost first.
func (t *StackTable) Frames(id uint32) []Location {
	var frames []Location
	for id != 0 {
		frames = append(frames, t.Locations[t.nodes[id].location])
		id = t.nodes[id].parent
	}
	return frames
}

// Numbers returns a stack as numbers of Locations, innermost first.
func (t *StackTable) Numbers(id uint32) []uint32 {
	var numbers []uint32
	for id != 0 {
		numbers = append(numbers, t.nodes[id].location)
		id = t.nodes[id].parent
	}
	return numbers
}
