package growth

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/usage"
	"hightide/internal/words"
)

// A holder is the container that keeps growing, a line is where the bytes were allocated; the two
// are seen apart and joined here. A join must be likely to be true, for a person will change that
// line. A container of graphs keeps whatever a forward pass leaves behind. One whose items' bytes
// are known must keep about as much as the line grows. Any other must be the only candidate, or
// stand in the function that allocates.

// HoldersOf is the containers of a process that kept growing, each as it was seen last, at the pace of its clock. One
// that was seen to shrink is one of them as far as it has more than at first; one that was at rest well before the end
// is none. One that is at rest at the end may just be idle.
func (in *Found) HoldersOf(process uint32) []mem.Holder {
	c := in.ClockOf(process)
	from, to := c.Window(in.Run.Process(process), in.End)
	late := from + int64(stillGrows*float64(to-from))
	type key struct{ kind, name string } // the line may be known better the next time
	index := map[key]int{}
	var out, firsts []mem.Holder
	for _, h := range in.Run.Holders {
		if h.Process != process || h.Time > in.End {
			continue
		}
		k := key{h.Kind, h.Name}
		i, known := index[k]
		if h.PerStep <= 0 && h.PerMin <= 0 {
			switch {
			case known && h.Items < out[i].Items:
				out[i].PerStep, out[i].Items, out[i].Time = netRate(c, firsts[i], h), h.Items, h.Time
			case known && h.Time < late:
				out[i].PerStep = 0
			}
			continue
		}
		timed := pace(c, &h)
		if known {
			h.Graph = h.Graph || out[i].Graph
			firsts[i] = overAll(c, firsts[i], out[i].Items, &h, timed)
			out[i] = h
			continue
		}
		index[k] = len(out)
		out, firsts = append(out, h), append(firsts, h)
	}
	out = alike(slices.DeleteFunc(out, func(h mem.Holder) bool {
		return h.PerStep <= 0 || h.PerMin > 0 && h.Time < late // by the clock they are looked at to the end
	}))
	slices.SortStableFunc(out, func(a, b mem.Holder) int {
		return cmp.Or(cmp.Compare(holderRate(b), holderRate(a)), cmp.Compare(b.PerStep, a.PerStep))
	})
	return out
}

// alike puts containers together that one statement makes grow, as the lists of a dict: `by_class[0]` and
// `by_class[1]` are `by_class[…]`.
func alike(holders []mem.Holder) (out []mem.Holder) {
	type key struct {
		kind, name string
		where      mem.Location
	}
	index := map[key]int{}
	for _, h := range holders {
		k := key{h.Kind, inBrackets.Regexp().ReplaceAllString(h.Name, "[…]"), h.Where}
		i, known := index[k]
		if !known || h.Where.Line <= 0 {
			index[k] = len(out)
			out = append(out, h)
			continue
		}
		o := &out[i]
		o.Name, o.Items, o.PerStep, o.Graph, o.Bound = k.name, o.Items+h.Items, o.PerStep+h.PerStep, o.Graph ||
			h.Graph, mem.Optional{}
		if more, known := h.Tensors.Get(); known {
			o.Tensors = mem.Some(o.Tensors.Or(0) + more)
		}
	}
	return out
}

// inBrackets matches a key, as the agent writes it in names.
var inBrackets = words.Lazy(`\[[^\[\]]*\]`)

// pace brings the rate of a holder to the unit of the clock; timed says that it was seen per minute.
func pace(c *facts.Clock, h *mem.Holder) (timed bool) {
	n := len(c.Times)
	switch {
	case c.Minutes && h.PerMin > 0:
		h.PerStep = h.PerMin
		return true
	case !c.Minutes && h.PerStep <= 0 && c.Times[n-1] > c.Times[0]:
		h.PerStep = h.PerMin * float64(c.Times[n-1]-c.Times[0]) / float64(time.Minute) / (c.Steps[n-1] - c.Steps[0])
		return true
	}
	return false
}

// overAll takes the rate of a container that was seen per minute from all looks since the first: the last few may be of a time in
// which the program had no processor. It returns the first look, which is this one where it had more before.
func overAll(c *facts.Clock, first mem.Holder, before int64, h *mem.Holder, timed bool) mem.Holder {
	if h.Items < before {
		return *h
	}
	if rate := netRate(c, first, *h); timed && rate > 0 && c.At(h.Time)-c.At(first.Time) >= leastSince*c.At(h.Time) {
		h.PerStep = rate
	}
	return first
}

// netRate is what a container gained from one look to another, whatever it was emptied of between them; 0: nothing.
func netRate(c *facts.Clock, first, last mem.Holder) float64 {
	if passed := c.At(last.Time) - c.At(first.Time); passed > 0 && last.Items > first.Items {
		return float64(last.Items-first.Items) / passed
	}
	return 0
}

// holderRate is what a container's items add per step, as far as they are tensors.
func holderRate(h mem.Holder) float64 {
	bytes, ok := h.Tensors.Get()
	if !ok || h.Items <= 0 {
		return 0
	}
	return float64(bytes) / float64(h.Items) * h.PerStep
}

// joining is lines and containers of one process that are put together.
type joining struct {
	in           *Found
	loose        bool // there are no steps
	holders      []*mem.Holder
	free, larger []growingLine // that no container keeps so far
	unsure       []growingLine // likewise, too near the noise of their samples
	causes       []growing
}

// takeLines takes lines out of those that are free.
func (j *joining) takeLines(pick func(growingLine) bool) (taken []growingLine) {
	rest := j.free[:0:0]
	for _, l := range j.free {
		if pick(l) {
			taken = append(taken, l)
		} else {
			rest = append(rest, l)
		}
	}
	j.free = rest
	return taken
}

// cause adds one, unless there are no lines.
func (j *joining) cause(h *mem.Holder, taken []growingLine) {
	if len(taken) > 0 {
		j.causes = append(j.causes, growing{holder: j.in.settled(h, taken), graph: h != nil && keepsGraph(*h), lines: taken})
	}
}

// onlyOne joins the one line that is left with the one container that is, if that may hold as much: the sampler does
// not see all that a library allocates.
func (j *joining) onlyOne() {
	open := slices.DeleteFunc(slices.Clone(j.holders), func(h *mem.Holder) bool {
		return keepsGraph(*h) || !mayHoldMuch(*h) || used(j.causes, *h)
	})
	if len(j.free) != 1 || len(open) != 1 {
		return
	}
	if rate := holderRate(*open[0]); rate == 0 || j.free[0].Slope <= rate+allowed(rate, j.free[0].Half, j.loose) {
		j.cause(open[0], j.takeLines(func(growingLine) bool { return true }))
	}
}

// mostTogether is how many lines the bytes of one container's items come from.
const mostTogether = 6

// allowed is how far the growth of lines may be from the rate of a container: within a third, or within their own
// error, and twice that where there are no steps, since the two were seen over other stretches of time.
func allowed(rate, half float64, loose bool) float64 {
	off := max(rate/3, 1.5*half)
	if loose {
		off *= 2
	}
	return off
}

// settled is the container with the one statement that the lines it keeps went through, where several may be what
// makes it grow.
func (in *Found) settled(h *mem.Holder, lines []growingLine) *mem.Holder {
	if h == nil || len(h.Others) == 0 {
		return h
	}
	var through []mem.Location
	for _, at := range append([]mem.Location{h.Where}, h.Others...) {
		if slices.ContainsFunc(lines, func(l growingLine) bool { return in.through(l, at) }) {
			through = append(through, at)
		}
	}
	if len(through) != 1 {
		return h
	}
	one := *h
	one.Where, one.Others = through[0], nil
	return &one
}

// through says whether the line's largest stack goes through a statement.
func (in *Found) through(l growingLine, at mem.Location) bool {
	return slices.ContainsFunc(in.Run.Stacks.Frames(l.Stack), func(frame mem.Location) bool {
		return frame.File == at.File && frame.Line == at.Line
	})
}

// keepsGraph says whether items of a container keep what autograd saved for backward, or may.
func keepsGraph(h mem.Holder) bool { return h.Graph && h.Saved.Or(1) > 0 }

func firstHolder(holders []mem.Holder, want func(mem.Holder) bool) *mem.Holder {
	for i := range holders {
		if want(holders[i]) {
			return &holders[i]
		}
	}
	return nil
}

func used(causes []growing, h mem.Holder) bool {
	return slices.ContainsFunc(causes, func(g growing) bool {
		return g.holder != nil && (sameHolder(g.holder, &h) ||
			slices.ContainsFunc(g.beside, func(k keeper) bool { return sameHolder(k.Holder, &h) }))
	})
}

func sameHolder(a, b *mem.Holder) bool { return a.Name == b.Name && a.Kind == b.Kind }

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

// bySize makes causes of the containers of a process that no line shows to grow, by the sizes they were seen with.
// They are of tensors that lie in an arena of the framework's own. Others are of an array that is replaced so often
// by a larger one that what its line holds is seldom seen whole. What lines were joined with is among known.
func (in *Found) bySize(p *mem.Process, known []growing) (causes []growing) {
	arena := p.Facts[frameworks.FactArena] != ""
	for _, h := range in.HoldersOf(p.ID) {
		bytes := float64(h.Tensors.Or(0))
		if !(arena && h.Contains == eagerTensor || oneBlock(h)) || bytes < leastHeap || used(known, h) ||
			!in.growsToTheEnd(p, h) {
			continue
		}
		g := growing{holder: &h, points: scansThatAgree}
		g.slope, g.kept = in.blockGrowth(p.ID, h)
		causes = append(causes, g)
	}
	return causes
}

// blockGrowth is the rate at which a block gets larger by the sizes it was seen with, and the size that it had by the
// end.
func (in *Found) blockGrowth(process uint32, h mem.Holder) (rate, kept float64) {
	c := in.ClockOf(process)
	_, to := c.Window(in.Run.Process(process), in.End)
	rate = holderRate(h)
	return rate, float64(h.Tensors.Or(0)) + rate*max(c.At(to)-c.At(h.Time), 0)
}

// growsToTheEnd says whether the last that was seen of a container is that it is larger than before, and that late
// enough.
func (in *Found) growsToTheEnd(p *mem.Process, h mem.Holder) bool {
	from, to := in.ClockOf(p.ID).Window(p, in.End)
	before, last, ok := in.lastLooks(p.ID, h)
	return ok && (last.PerStep > 0 || last.PerMin > 0) && last.Items > before.Items && wentOn(before, last) &&
		last.Time >= from+int64(toTheEnd*float64(to-from))
}

// lastLooks is how a container was seen last, and the last time well before that: nothing, where that was the first.
func (in *Found) lastLooks(process uint32, h mem.Holder) (before, last mem.Holder, ok bool) {
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	var seen []mem.Holder
	for _, other := range in.Run.Holders {
		if other.Process == process && other.Kind == h.Kind && other.Name == h.Name && other.Time <= in.End {
			seen = append(seen, other)
		}
	}
	if len(seen) == 0 {
		return before, last, false
	}
	last = seen[len(seen)-1]
	for _, other := range seen {
		if float64(last.Time-other.Time) >= lookApart*float64(to-from) {
			before = other
		}
	}
	return before, last, true
}

// wentOn says whether a container gained between two looks what it gained before. One that has filled meanwhile, or is
// cut, gained less: that it is larger than it was does not say that it still grows.
func wentOn(before, last mem.Holder) bool {
	gained := float64(last.Items - before.Items)
	if before.PerMin > 0 {
		return gained >= wentOnPart*before.PerMin*float64(last.Time-before.Time)/float64(time.Minute)
	}
	return gained >= wentOnPart*before.PerStep*float64(last.Step-before.Step)
}

const (
	eagerTensor = "EagerTensor"
	stillGrows  = 0.6 // of the time, before which a container that rests has stopped
	// of the time, after which a container that no line shows must have been seen to grow: scans are this far apart at
	// most
	toTheEnd = 0.75
	// of the time, that lies between two looks that tell so: the last one comes at the program's end, right after another
	lookApart      = 0.05
	leastSince     = 0.2 // of the time, that looks lie apart which tell a rate: the last comes at the program's end
	wentOnPart     = 0.5 // of what a container gained before, that one which still grows gains at least
	scansThatAgree = 4
)

// replacedKinds are those of a variable whose value is replaced by a larger one that is made of it.
var replacedKinds = []string{"array", "DataFrame", "Series", "Table", "str", "bytes"}

// inPlaceKinds are those of a buffer that gets larger where it is.
var inPlaceKinds = []string{"bytearray", "array.array", "BytesIO", "StringIO"}

// oneBlock says whether a holder keeps one block of memory that gets larger, and no items.
func oneBlock(h mem.Holder) bool {
	return slices.Contains(replacedKinds, h.Kind) || slices.Contains(inPlaceKinds, h.Kind)
}

// cacheOf is the cache of a library's that a holder is, whose memory code of that library allocates; nil: none.
func cacheOf(kind string) *frameworks.Cache {
	if kind == openFigures {
		return &frameworks.Cache{Code: []string{"/matplotlib/"}}
	}
	return frameworks.CacheOf(kind)
}

// openFigures are what pyplot keeps.
const openFigures = "list of open figures"

// joinArray makes a cause of an array that grows and the line that makes it anew; it returns the other lines.
func (in *Found) joinArray(h *mem.Holder, larger []growingLine, loose bool, causes *[]growing) []growingLine {
	at := slices.IndexFunc(larger, func(l growingLine) bool { return addsTo(l, *h) })
	if best := in.closest(larger, *h, loose); at < 0 && best != nil {
		at = slices.IndexFunc(larger, func(l growingLine) bool { return l.Site == best.Site })
	}
	if at < 0 {
		return larger
	}
	lines := []growingLine{larger[at]}
	*causes = append(*causes, growing{holder: in.settled(h, lines), lines: lines})
	return slices.Delete(slices.Clone(larger), at, at+1)
}

// addsTo says whether a line is one of the statements that make a container grow.
func addsTo(l growingLine, h mem.Holder) bool {
	return slices.ContainsFunc(append([]mem.Location{h.Where}, h.Others...), func(at mem.Location) bool {
		return l.Site.File == at.File && l.Site.Line == at.Line
	})
}

// passes says whether the line's largest stack goes through code that allocates for a cache.
func (in *Found) passes(l growingLine, cache *frameworks.Cache) bool {
	return slices.ContainsFunc(in.Run.Stacks.Frames(l.Stack), cache.Allocates)
}

// closest is the line whose growth fits the rate of a holder. Of lines that fit, one in the holder's own function
// comes first.
func (in *Found) closest(lines []growingLine, h mem.Holder, loose bool) *growingLine {
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
		if fits(l) <= allowed(rate, l.Half, loose) && (best == nil || fits(l) < fits(best)) {
			best = l
		}
	}
	return best
}

// mayHoldMuch leaves out containers of plain numbers, which cannot hold much per item, but as far as it is known.
func mayHoldMuch(h mem.Holder) bool {
	if holderRate(h) > 0 {
		return true
	}
	switch strings.ToLower(h.Contains) {
	case "float", "int", "bool", "nonetype", "complex":
		return false
	}
	return true
}

// sameFunction says whether the line's largest stack goes through the function the holder stands in.
func (in *Found) sameFunction(l growingLine, where mem.Location) bool {
	for _, frame := range in.Run.Stacks.Frames(l.Stack) {
		if frame.File == where.File && (frame.Line == where.Line ||
			where.Function != "" && frame.Function == where.Function) {
			// the agent names these where they are the program's
			return in.Names.Kind(frame.File) == usage.UserFile || strings.HasPrefix(frame.File, "<")
		}
	}
	return false
}

// holderOfTotal is the container behind the growth of a whole process where lines are not known: a
// container of graphs, or one whose tensors account for the growth.
func (in *Found) holderOfTotal(t total) *mem.Holder {
	holders := slices.DeleteFunc(in.HoldersOf(t.process), oneBlock)
	if h := firstHolder(holders, func(h mem.Holder) bool {
		rate := holderRate(h)
		return !keepsGraph(h) && rate > t.Slope/2 && rate < t.Slope*1.5
	}); h != nil {
		return h
	}
	if t.source == "rss" {
		rose := in.rose(t.process)
		if h := firstHolder(holders, func(h mem.Holder) bool {
			var bytes mem.Bytes
			for _, at := range append([]mem.Location{h.Where}, h.Others...) {
				bytes += rose[mem.Location{File: at.File, Line: at.Line}]
			}
			return !keepsGraph(h) && float64(bytes) >= explainsAll*t.kept
		}); h != nil {
			return h
		}
	}
	return firstHolder(holders, keepsGraph)
}

// rose is by how much each line of the sampled heap of a process rose while its clock ran, steadily or not.
func (in *Found) rose(process uint32) map[mem.Location]mem.Bytes {
	h := in.Histories[process]
	if h == nil {
		return nil
	}
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	lines := map[mem.Location]mem.Bytes{}
	for _, use := range usage.Rise(h, h.MomentAt(from), h.MomentAt(to)) {
		if site := in.Names.Of(use.Stack); site.User && site.Line > 0 {
			lines[mem.Location{File: site.File, Line: site.Line}] += use.Bytes
		}
	}
	return lines
}
