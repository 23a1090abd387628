package report

import "hightide/internal/mem"

// Limits of what a page of several devices gets to draw: it is to stay below a megabyte.
const (
	pageBlocks = 6000 // of all maps; smaller blocks are drawn as one with their neighbours
	pageStacks = 300  // of all flame graphs
)

// ForPage is the report without what the page does not draw. Maps join blocks that no one could tell
// apart; the JSON has all of them.
func (r *Report) ForPage() *Report {
	if len(r.Allocators) == 0 {
		return r
	}
	page, devices := *r, len(r.Allocators)
	slimmed := map[Subject]*Allocator{}
	page.Allocators, page.Stacks = nil, nil
	for _, a := range r.Allocators {
		slim := *a
		slim.Curve, slim.Blame, slim.Turnover, slim.Longest, slim.Growth, slim.Pins, slim.OOM = nil, nil, nil, nil, nil, nil, nil
		slim.Map = JoinedMap(a.Map, pageBlocks/devices)
		page.Allocators = append(page.Allocators, &slim)
		slimmed[a.Subject()] = &slim
	}
	for _, s := range r.Stacks {
		if a := slimmed[s.Subject]; a != nil {
			s = s.pruned(pageStacks/devices, a)
		}
		page.Stacks = append(page.Stacks, s)
	}
	return &page
}

// joinedMap joins neighbours of a segment that are smaller than what the blocks may be on average, and keeps
// of each row the category and stack of its largest block.
func JoinedMap(segments []SegmentMap, most int) []SegmentMap {
	var whole mem.Bytes
	blocks := 0
	for i := range segments {
		whole += segments[i].Size
		blocks += len(segments[i].Blocks)
	}
	if blocks <= most {
		return segments
	}
	least := int64(whole) / int64(max(most, 1))
	joined := make([]SegmentMap, len(segments))
	for i, s := range segments {
		joined[i] = s
		joined[i].Blocks = nil
		var largest int64
		for _, b := range s.Blocks {
			last := len(joined[i].Blocks) - 1
			if last < 0 || b[0] >= least || joined[i].Blocks[last][0] >= least {
				joined[i].Blocks, largest = append(joined[i].Blocks, b), b[0]
				continue
			}
			of := &joined[i].Blocks[last]
			size := of[0] + b[0]
			if b[0] > largest {
				*of, largest = b, b[0]
			}
			of[0] = size
		}
	}
	return joined
}

// pruned is a tree of the largest stacks by each measure alone, and of those that a map points at.
func (s StackSet) pruned(most int, a *Allocator) StackSet {
	keep := make([]bool, len(s.Parents))
	mark := func(node int) {
		for ; node >= 0 && !keep[node]; node = s.Parents[node] {
			keep[node] = true
		}
	}
	var stacks []StackUse
	rest := make([]int64, len(s.Measures))
	for m := range s.Measures {
		rest[m] = s.Measures[m].Rest
	}
	least := make([]int64, len(s.Measures))
	for m := range least {
		least[m] = s.Measures[m].Total / int64(max(8*most, 1))
	}
	for _, use := range s.Stacks {
		wanted := false
		for m := range s.Measures {
			wanted = wanted || use.Measure(m) > least[m]
		}
		if !wanted {
			for m := range rest {
				rest[m] += use.Measure(m)
			}
			continue
		}
		stacks = append(stacks, use)
		mark(use.Node)
	}
	for i := range a.Map {
		for _, b := range a.Map[i].Blocks {
			mark(int(b[3]))
		}
	}
	out := s
	out.Frames, out.Parents, out.Places, out.Stacks = []FramePlace{}, []int{}, []int{}, stacks
	out.Measures = append([]FlameMeasure{}, s.Measures...)
	for m := range rest {
		out.Measures[m].Rest = rest[m]
	}
	frames, nodes := map[int]int{}, make([]int, len(s.Parents))
	for n, kept := range keep {
		if nodes[n] = -1; !kept {
			continue
		}
		frame, ok := frames[s.Places[n]]
		if !ok {
			frame = len(out.Frames)
			frames[s.Places[n]] = frame
			out.Frames = append(out.Frames, s.Frames[s.Places[n]])
		}
		parent := -1
		if s.Parents[n] >= 0 {
			parent = nodes[s.Parents[n]]
		}
		nodes[n] = len(out.Parents)
		out.Parents, out.Places = append(out.Parents, parent), append(out.Places, frame)
	}
	for i := range out.Stacks {
		if n := out.Stacks[i].Node; n >= 0 {
			out.Stacks[i].Node = nodes[n]
		}
	}
	maps := make([]SegmentMap, len(a.Map))
	for i, segment := range a.Map {
		maps[i] = segment
		maps[i].Blocks = append([]MapBlock{}, segment.Blocks...)
		for j := range maps[i].Blocks {
			if n := maps[i].Blocks[j][3]; n >= 0 {
				maps[i].Blocks[j][3] = int64(nodes[n])
			}
		}
	}
	a.Map = maps
	return out
}

// measure is one of Flames.
func (u *StackUse) Measure(m int) int64 {
	return [...]int64{int64(u.Bytes), int64(u.Average), int64(u.Allocations), int64(u.Churn)}[m]
}
