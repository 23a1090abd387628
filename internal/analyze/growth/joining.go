package growth

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// joinLines makes causes of a process's growing lines.
func (in *Found) joinLines(process uint32, lines []growingLine) []growing {
	j := &joining{in: in, loose: in.ClockOf(process).Minutes}
	for _, l := range lines {
		switch {
		case l.Why == usage.Unsure:
			j.unsure = append(j.unsure, l)
		case l.Touched:
			in.larger = append(in.larger, l)
		case l.Larger:
			j.larger = append(j.larger, l)
		default:
			j.free = append(j.free, l)
		}
	}
	for _, h := range in.HoldersOf(process) {
		if !oneBlock(h) {
			j.holders = append(j.holders, &h)
			continue
		}
		if before, last, ok := in.lastLooks(process, h); ok && !wentOn(before, last) {
			continue // it is replaced as before, but has filled
		}
		j.larger = in.joinArray(&h, j.larger, j.loose, &j.causes)
		if !used(j.causes, h) { // a block that gets larger where it is looks like one that is kept
			j.cause(&h, j.takeLines(func(l growingLine) bool { return addsTo(l, h) }))
		}
	}
	defer func() { in.larger, in.unsure = append(in.larger, j.larger...), append(in.unsure, j.unsure...) }()
	for _, h := range j.holders {
		if cache := cacheOf(h.Kind); cache != nil {
			j.cause(h, j.takeLines(func(l growingLine) bool { return in.passes(l, cache) }))
		}
	}
	for _, h := range j.holders {
		if !keepsGraph(*h) && holderRate(*h) > 0 {
			j.cause(h, j.fitting(h))
		}
	}
	for _, h := range j.holders { // what a container keeps is not replaced, whatever the ages of a few samples say
		if !keepsGraph(*h) && !oneBlock(*h) && holderRate(*h) > 0 && !used(j.causes, *h) {
			j.larger = in.joinArray(h, j.larger, j.loose, &j.causes)
		}
	}
	if i := slices.IndexFunc(j.holders, func(h *mem.Holder) bool { return keepsGraph(*h) }); i >= 0 {
		j.cause(j.holders[i], j.takeLines(func(growingLine) bool { return true }))
	}
	for _, h := range j.holders {
		if !keepsGraph(*h) && holderRate(*h) == 0 && mayHoldMuch(*h) {
			j.cause(h, j.takeLines(func(l growingLine) bool { return in.sameFunction(l, h.Where) }))
		}
	}
	j.together()
	j.sureByCount()
	j.onlyOne()
	// no container was seen, but this is what graphs look like
	if activations := count(j.free, keptByGraph); activations >= 3 {
		j.causes = append(j.causes, growing{graph: true, lines: j.takeLines(keptByGraph)})
	}
	for len(j.free) > 0 {
		first := j.free[0].Site
		j.cause(nil, j.takeLines(func(l growingLine) bool { return l.Site == first }))
	}
	return j.causes
}

// One line may allocate what several containers keep, as a helper that each of them has its items from. Its samples do
// not say whose they are, so what the containers keep is told as a sum; the sizes of their newest items say the parts.

// leastBeside is the part of a growth from which on a container that keeps it is told beside another.
const leastBeside = 0.1

// together joins lines with several containers: what the one that was found for a line leaves over, and lines that are
// still free with those that add up to them.
func (j *joining) together() {
	for i := range j.causes {
		g := &j.causes[i]
		if g.holder == nil || g.graph || !sharing(g.holder) {
			continue
		}
		all := slopeOf(g.lines)
		left := all - holderRate(*g.holder)
		keepers := []*mem.Holder{g.holder}
		for _, h := range j.open() {
			if rate := holderRate(*h); rate >= leastBeside*all && left > rate/2 { // with it the sum is nearer
				keepers, left = append(keepers, h), left-rate
			}
		}
		g.keptBy(keepers)
	}
	for _, first := range j.free {
		if keepers := j.addingUp(j.ofSite(first)); len(keepers) > 1 {
			j.cause(keepers[0], j.takeLines(func(l growingLine) bool { return l.Site == first.Site }))
			j.causes[len(j.causes)-1].keptBy(keepers)
		}
	}
}

// sureByCount makes causes of lines that are too near the noise of their samples, where a container was seen to gain
// items that hold as much: their number has no noise.
func (j *joining) sureByCount() {
	for _, h := range j.open() {
		rate := holderRate(*h)
		at := slices.IndexFunc(j.unsure, func(l growingLine) bool {
			return math.Abs(l.Slope-rate) <= max(rate/3, l.Half)
		})
		if at >= 0 {
			j.cause(h, []growingLine{j.unsure[at]})
			j.unsure = slices.Delete(j.unsure, at, at+1)
		}
	}
}

// addingUp are the open containers that together keep about as much as some lines allocate; nil: there are none.
func (j *joining) addingUp(lines []growingLine) (keepers []*mem.Holder) {
	all, variance, sum := slopeOf(lines), 0.0, 0.0
	for _, l := range lines {
		variance += l.Half * l.Half
	}
	off := allowed(all, math.Sqrt(variance), j.loose) / 2
	for _, h := range j.open() {
		rate := holderRate(*h)
		if len(keepers) < mostTogether && rate >= leastBeside*all && sum+rate <= all+off {
			keepers, sum = append(keepers, h), sum+rate
		}
	}
	if sum < all-off {
		return nil
	}
	return keepers
}

// open are the containers that no line was joined with, whose items have a known size, fastest first.
func (j *joining) open() (open []*mem.Holder) {
	for _, h := range j.holders {
		if sharing(h) && !used(j.causes, *h) {
			open = append(open, h)
		}
	}
	return open
}

// ofSite are the free lines of the same site as one.
func (j *joining) ofSite(of growingLine) (lines []growingLine) {
	for _, l := range j.free {
		if l.Site == of.Site {
			lines = append(lines, l)
		}
	}
	return lines
}

// sharing says whether a container may keep a part of what a line allocates: it is told by the sizes of its items.
func sharing(h *mem.Holder) bool {
	return !keepsGraph(*h) && !oneBlock(*h) && !h.Bound.Known() && holderRate(*h) > 0
}

func slopeOf(lines []growingLine) (sum float64) {
	for _, l := range lines {
		sum += l.Slope
	}
	return sum
}

// keptBy notes the containers of a cause, its holder first.
func (g *growing) keptBy(keepers []*mem.Holder) {
	sum := 0.0
	for _, h := range keepers {
		sum += holderRate(*h)
	}
	for _, h := range keepers[1:] {
		g.beside = append(g.beside, keeper{h, holderRate(*h) / sum})
	}
}

// fitting takes the line whose growth fits the rate of a container, or the lines that do together: an item's bytes may
// come from several, as a model's weights and its gradients. Of both, what comes nearer.
func (j *joining) fitting(h *mem.Holder) []growingLine {
	if together := j.heldTogether(h); together != nil {
		return j.takeLines(func(l growingLine) bool { return together[l.Site.Location] })
	}
	rate := holderRate(*h)
	best, alone := j.in.closest(j.free, *h, j.loose), math.Inf(1)
	if best != nil {
		alone = math.Abs(best.Slope - rate)
	}
	if together, off := j.fitTogether(rate, alone); together != nil && off < alone {
		return j.takeLines(func(l growingLine) bool { return together[l.Site.Location] })
	}
	if best == nil {
		return nil
	}
	site := best.Site
	return j.takeLines(func(l growingLine) bool { return l.Site == site })
}

// heldTogether is the lines whose bytes come to what a container holds: of a short run by the clock both rates are of
// stretches that hardly overlap. What it held before its lines grew makes it no match. Nil: fewer than two lines do.
func (j *joining) heldTogether(h *mem.Holder) map[mem.Location]bool {
	held, passed := float64(h.Tensors.Or(0)), j.in.ClockOf(h.Process).At(h.Time)
	if !j.loose || held < leastHeap {
		return nil
	}
	var sum float64
	together := map[mem.Location]bool{}
	for _, l := range slices.SortedStableFunc(slices.Values(j.free),
		func(a, b growingLine) int { return cmp.Compare(b.Slope, a.Slope) }) {
		if bytes := l.kept(passed); len(together) < mostTogether && sum+bytes <= held*(1+heldPart) {
			sum += bytes
			together[l.Site.Location] = true
		}
	}
	if len(together) < 2 || sum < held*(1-heldPart) {
		return nil
	}
	return together
}

// heldPart is how far the bytes of a container's lines may be off those of the container.
const heldPart = 1.0 / 3

// fitTogether is the lines, the fastest first, whose growth comes to the rate of a container, and how far it is off it.
// Where one of them alone would be allowed, all must be nearer; else as near as half of that.
func (j *joining) fitTogether(rate, alone float64) (together map[mem.Location]bool, off float64) {
	var sum, variance float64
	together = map[mem.Location]bool{}
	sorted := slices.SortedStableFunc(slices.Values(j.free),
		func(a, b growingLine) int { return cmp.Compare(b.Slope, a.Slope) })
	for _, l := range sorted {
		half := math.Sqrt(variance + l.Half*l.Half)
		if len(together) < mostTogether && sum+l.Slope <= rate+allowed(rate, half, j.loose) {
			sum, variance = sum+l.Slope, variance+l.Half*l.Half
			together[l.Site.Location] = true
		}
	}
	most := allowed(rate, math.Sqrt(variance), j.loose)
	if math.IsInf(alone, 1) {
		most /= 2
	}
	if off = math.Abs(sum - rate); len(together) < 2 || off > most {
		return nil, 0
	}
	return together, off
}
