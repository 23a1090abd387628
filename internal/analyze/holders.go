package analyze

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// A holder is the container that keeps growing, a line is where the bytes were allocated; the two
// are seen apart and joined here. A join must be likely to be true, for a person will change that
// line: a container of graphs keeps whatever a forward pass leaves behind; one whose items' bytes
// are known must keep about as much as the line grows; any other must be the only candidate, or
// stand in the function that allocates.

// holdersOf is the containers of a process that kept growing, each as it was seen last.
func (in *Input) holdersOf(process uint32) []mem.Holder {
	type key struct {
		kind, name, file string
		line             int
	}
	index := map[key]int{}
	var out []mem.Holder
	for _, h := range in.Run.Holders {
		if h.Process != process || h.PerStep <= 0 {
			continue
		}
		k := key{h.Kind, h.Name, h.Where.File, h.Where.Line}
		if i, ok := index[k]; ok {
			h.Graph = h.Graph || out[i].Graph
			out[i] = h
			continue
		}
		index[k] = len(out)
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b mem.Holder) int {
		return cmp.Or(cmp.Compare(holderRate(b), holderRate(a)), cmp.Compare(b.PerStep, a.PerStep))
	})
	return out
}

// holderRate is what a container's items add per step, as far as they are tensors.
func holderRate(h mem.Holder) float64 {
	bytes, ok := h.Tensors.Get()
	if !ok || h.Items <= 0 {
		return 0
	}
	return float64(bytes) / float64(h.Items) * h.PerStep
}

// join makes causes of a process's growing lines.
func (in *Input) join(process uint32, lines []growingLine) []growing {
	holders := in.holdersOf(process)
	free := slices.Clone(lines)
	take := func(pick func(growingLine) bool) (taken []growingLine) {
		rest := free[:0:0]
		for _, l := range free {
			if pick(l) {
				taken = append(taken, l)
			} else {
				rest = append(rest, l)
			}
		}
		free = rest
		return taken
	}
	var causes []growing
	cause := func(h *mem.Holder, taken []growingLine) {
		if len(taken) > 0 {
			causes = append(causes, growing{holder: h, graph: h != nil && h.Graph, lines: taken})
		}
	}
	graph := firstHolder(holders, func(h mem.Holder) bool { return h.Graph })
	for i := range holders {
		h := &holders[i]
		if h.Graph || holderRate(*h) == 0 {
			continue
		}
		if best := closest(free, holderRate(*h)); best != nil {
			cause(h, take(func(l growingLine) bool { return l.Site == best.Site }))
		}
	}
	if graph != nil {
		cause(graph, take(func(l growingLine) bool { return true }))
	}
	for i := range holders {
		h := &holders[i]
		if !h.Graph && holderRate(*h) == 0 && mayHoldMuch(*h) {
			cause(h, take(func(l growingLine) bool { return in.sameFunction(l, h.Where) }))
		}
	}
	open := slices.DeleteFunc(slices.Clone(holders), func(h mem.Holder) bool {
		return h.Graph || !mayHoldMuch(h) || used(causes, h)
	})
	if len(free) == 1 && len(open) == 1 && holderRate(open[0]) == 0 {
		cause(&open[0], take(func(growingLine) bool { return true }))
	}
	if activations := count(free, keptByGraph); activations >= 3 { // no container was seen, but this is what graphs look like
		causes = append(causes, growing{graph: true, lines: take(keptByGraph)})
	}
	for len(free) > 0 {
		first := free[0].Site
		cause(nil, take(func(l growingLine) bool { return l.Site == first }))
	}
	return causes
}

func firstHolder(holders []mem.Holder, want func(mem.Holder) bool) *mem.Holder {
	for i := range holders {
		if want(holders[i]) {
			return &holders[i]
		}
	}
	return nil
}

func used(causes []growing, h mem.Holder) bool {
	for _, g := range causes {
		if g.holder != nil && g.holder.Name == h.Name && g.holder.Where == h.Where {
			return true
		}
	}
	return false
}

func count(lines []growingLine, want func(growingLine) bool) (n int) {
	for _, l := range lines {
		if want(l) {
			n++
		}
	}
	return n
}

func keptByGraph(l growingLine) bool {
	return l.Phase == mem.PhaseForward || l.Phase == mem.PhaseModule
}

// closest is the line whose growth fits a rate: within a third, or within its own error.
func closest(lines []growingLine, rate float64) *growingLine {
	var best *growingLine
	for i := range lines {
		l := &lines[i]
		off := math.Abs(l.Slope - rate)
		if off > max(rate/3, 1.5*l.Half) {
			continue
		}
		if best == nil || off < math.Abs(best.Slope-rate) {
			best = l
		}
	}
	return best
}

// mayHoldMuch leaves out containers of plain numbers, which cannot hold much per item.
func mayHoldMuch(h mem.Holder) bool {
	switch strings.ToLower(h.Contains) {
	case "float", "int", "bool", "nonetype", "complex":
		return false
	}
	return true
}

// sameFunction says whether the line's largest stack goes through the function the holder stands in.
func (in *Input) sameFunction(l growingLine, where mem.Location) bool {
	for _, frame := range in.Run.Stacks.Frames(l.Stack) {
		if frame.File == where.File && (frame.Line == where.Line || where.Function != "" && frame.Function == where.Function) {
			return in.names.Kind(frame.File) == usage.UserFile
		}
	}
	return false
}

// holderOfTotal is the container behind the growth of a whole process where lines are not known: a
// container of graphs, or one whose tensors account for the growth.
func (in *Input) holderOfTotal(t total) *mem.Holder {
	holders := in.holdersOf(t.process)
	if h := firstHolder(holders, func(h mem.Holder) bool {
		rate := holderRate(h)
		return !h.Graph && rate > t.Slope/2 && rate < t.Slope*1.5
	}); h != nil {
		return h
	}
	return firstHolder(holders, func(h mem.Holder) bool { return h.Graph })
}
