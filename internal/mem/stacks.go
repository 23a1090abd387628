package mem

// StackTable keeps every distinct call stack once, as a tree that grows from the outermost call:
// stacks that share their callers share the nodes. Stack 0 is the empty stack.
type StackTable struct {
	Locations []Location // distinct
	nodes     []stackNode
	children  []uint32 // open addressing by parent and location: numbers of nodes, 0 is free
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
		t.children = make([]uint32, 64)
	}
	at := uint32(0)
	for i := len(innermostFirst) - 1; i >= 0; i-- {
		at = t.child(stackNode{at, innermostFirst[i]})
	}
	return at
}

// child finds a node, adding it at first sight.
func (t *StackTable) child(node stackNode) uint32 {
	mask := len(t.children) - 1
	i := node.hash() & mask
	for ; t.children[i] != 0; i = (i + 1) & mask {
		if t.nodes[t.children[i]] == node {
			return t.children[i]
		}
	}
	id := uint32(len(t.nodes))
	t.nodes = append(t.nodes, node)
	t.children[i] = id
	if len(t.nodes) > len(t.children)/4*3 {
		t.rehash()
	}
	return id
}

func (n stackNode) hash() int {
	h := (uint64(n.parent)<<32 | uint64(n.location)) * 0x9e3779b97f4a7c15
	return int(h >> 32)
}

func (t *StackTable) rehash() {
	t.children = make([]uint32, 2*len(t.children))
	mask := len(t.children) - 1
	for id := 1; id < len(t.nodes); id++ {
		i := t.nodes[id].hash() & mask
		for t.children[i] != 0 {
			i = (i + 1) & mask
		}
		t.children[i] = uint32(id)
	}
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
