package analyze

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// A holder is the container that keeps growing, a line is where the bytes were allocated; the two
// are seen apart and joined here. A join must be likely to be true, for a person will change that
// line. A container of graphs keeps whatever a forward pass leaves behind. One whose items' bytes
// are known must keep about as much as the line grows. Any other must be the only candidate, or
// stand in the function that allocates.

// holdersOf is the containers of a process that kept growing, each as it was seen last, at the pace of its clock. One that was
// seen to shrink is none of them, nor one that was at rest well before the end. One that is at rest at the end may just be idle.
func (in *Input) holdersOf(process uint32) []mem.Holder {
	c := in.clockOf(process)
	from, to := c.window(in.Run.Process(process), in.end)
	late := from + int64(stillGrows*float64(to-from))
	type key struct {
		kind, name, file string
		line             int
	}
	index := map[key]int{}
	var out []mem.Holder
	for _, h := range in.Run.Holders {
		if h.Process != process {
			continue
		}
		k := key{h.Kind, h.Name, h.Where.File, h.Where.Line}
		i, known := index[k]
		if h.PerStep <= 0 && h.PerMin <= 0 {
			if known && (h.Items < out[i].Items || h.Time < late) {
				out[i].PerStep, out[i].Items = 0, 0
			}
			continue
		}
		c.pace(&h)
		if known {
			h.Graph = h.Graph || out[i].Graph
			out[i] = h
			continue
		}
		index[k] = len(out)
		out = append(out, h)
	}
	out = slices.DeleteFunc(out, func(h mem.Holder) bool {
		return h.PerStep <= 0 || h.PerMin > 0 && h.Time < late // by the clock they are looked at to the end
	})
	slices.SortStableFunc(out, func(a, b mem.Holder) int {
		return cmp.Or(cmp.Compare(holderRate(b), holderRate(a)), cmp.Compare(b.PerStep, a.PerStep))
	})
	return out
}

// pace brings the rate of a holder to the unit of the clock.
func (c *clock) pace(h *mem.Holder) {
	n := len(c.times)
	switch {
	case c.minutes && h.PerMin > 0:
		h.PerStep = h.PerMin
	case !c.minutes && h.PerStep <= 0 && c.times[n-1] > c.times[0]:
		h.PerStep = h.PerMin * float64(c.times[n-1]-c.times[0]) / float64(time.Minute) / (c.steps[n-1] - c.steps[0])
	}
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
	loose := in.clockOf(process).minutes
	var free, larger []growingLine
	for _, l := range lines {
		if l.Larger {
			larger = append(larger, l)
		} else {
			free = append(free, l)
		}
	}
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
	for i := range holders {
		if h := &holders[i]; h.Kind == kindArray {
			larger = in.joinArray(h, larger, loose, &causes)
		}
	}
	in.larger = append(in.larger, larger...)
	holders = slices.DeleteFunc(slices.Clone(holders), func(h mem.Holder) bool { return h.Kind == kindArray })
	for i := range holders {
		h := &holders[i]
		if through := cacheOf[h.Kind]; through != nil {
			cause(h, take(func(l growingLine) bool { return in.passes(l, through) }))
		}
	}
	graph := firstHolder(holders, func(h mem.Holder) bool { return h.Graph })
	for i := range holders {
		h := &holders[i]
		if h.Graph || holderRate(*h) == 0 {
			continue
		}
		if best := in.closest(free, *h, loose); best != nil {
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
	return slices.ContainsFunc(causes, func(g growing) bool { return g.holder != nil && g.holder.Name == h.Name && g.holder.Where == h.Where })
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

// bySize makes causes of the containers of a process that no line shows to grow, by the sizes they were seen with. They are of tensors that
// lie in an arena of the framework's own. Others are of an array that is replaced so often by a larger one that what its line holds
// is seldom seen whole. What lines were joined with is among known.
func (in *Input) bySize(p *mem.Process, known []growing) (causes []growing) {
	arena := p.Facts["tensorflow_arena"] != ""
	for _, h := range in.holdersOf(p.ID) {
		bytes := float64(h.Tensors.Or(0))
		if !(arena && h.Contains == eagerTensor || h.Kind == kindArray) || bytes < leastHeap || used(known, h) || !in.growsToTheEnd(p, h) {
			continue
		}
		causes = append(causes, growing{holder: &h, slope: holderRate(h), kept: bytes, points: scansThatAgree})
	}
	return causes
}

// growsToTheEnd says whether the last that was seen of a container is that it is larger than before, and that late enough.
func (in *Input) growsToTheEnd(p *mem.Process, h mem.Holder) bool {
	from, to := in.clockOf(p.ID).window(p, in.end)
	var before, last mem.Holder
	for _, seen := range in.Run.Holders {
		if seen.Process == p.ID && seen.Kind == h.Kind && seen.Name == h.Name && seen.Where == h.Where {
			before, last = last, seen
		}
	}
	return (last.PerStep > 0 || last.PerMin > 0) && last.Items > before.Items && last.Time >= from+int64(toTheEnd*float64(to-from))
}

const (
	eagerTensor    = "EagerTensor"
	stillGrows     = 0.6  // of the time, before which a container that rests has stopped
	toTheEnd       = 0.75 // of the time, after which one that no line shows must have been seen to grow: scans are this far apart at most
	scansThatAgree = 4
)

// kindArray is a variable whose array is replaced by a larger one that is made of it.
const kindArray = "array"

// cacheOf says by which library's code the memory of a cache is allocated, where that is not the program's own.
var cacheOf = map[string][]string{
	"traced graphs":     {"/tensorflow/", "libtensorflow"},
	"compiled programs": {"/jax/", "libjax", "_jax.so", "_xla.so", "libstdc++"}, // compiled on threads without Python
	"compiled graphs":   {"/torch/_", "/torch/fx/"},
	"open figures":      {"/matplotlib/"},
}

// joinArray makes a cause of an array that grows and the line that makes it anew; it returns the other lines.
func (in *Input) joinArray(h *mem.Holder, larger []growingLine, loose bool, causes *[]growing) []growingLine {
	at := slices.IndexFunc(larger, func(l growingLine) bool { return l.Site.File == h.Where.File && l.Site.Line == h.Where.Line })
	if best := in.closest(larger, *h, loose); at < 0 && best != nil {
		at = slices.IndexFunc(larger, func(l growingLine) bool { return l.Site == best.Site })
	}
	if at < 0 {
		return larger
	}
	*causes = append(*causes, growing{holder: h, lines: []growingLine{larger[at]}})
	return slices.Delete(slices.Clone(larger), at, at+1)
}

// passes says whether the line's largest stack goes through the code of a library.
func (in *Input) passes(l growingLine, library []string) bool {
	return slices.ContainsFunc(in.Run.Stacks.Frames(l.Stack), func(at mem.Location) bool {
		return slices.ContainsFunc(library, func(part string) bool { return strings.Contains(at.File, part) })
	})
}

// closest is the line whose growth fits the rate of a holder. That is within a third, or within its own error, and within twice that
// where there are no steps, since the two were seen over other stretches of time. Of lines that fit, one in the holder's own
// function comes first.
func (in *Input) closest(lines []growingLine, h mem.Holder, loose bool) *growingLine {
	rate := holderRate(h)
	var best *growingLine
	fits := func(l *growingLine) float64 {
		off := math.Abs(l.Slope - rate)
		if near := in.sameFunction(*l, h.Where); near {
			off /= 3
		}
		return off
	}
	for i := range lines {
		l := &lines[i]
		allowed := max(rate/3, 1.5*l.Half)
		if loose {
			allowed *= 2
		}
		if fits(l) <= allowed && (best == nil || fits(l) < fits(best)) {
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
			return in.names.Kind(frame.File) == usage.UserFile || strings.HasPrefix(frame.File, "<") // the agent names these where they are the program's
		}
	}
	return false
}

// holderOfTotal is the container behind the growth of a whole process where lines are not known: a
// container of graphs, or one whose tensors account for the growth.
func (in *Input) holderOfTotal(t total) *mem.Holder {
	holders := slices.DeleteFunc(in.holdersOf(t.process), func(h mem.Holder) bool { return h.Kind == kindArray })
	if h := firstHolder(holders, func(h mem.Holder) bool {
		rate := holderRate(h)
		return !h.Graph && rate > t.Slope/2 && rate < t.Slope*1.5
	}); h != nil {
		return h
	}
	return firstHolder(holders, func(h mem.Holder) bool { return h.Graph })
}
