package usage

import (
	"slices"
	"sort"

	"hightide/internal/mem"
)

const (
	unsettled    = 0.1  // of the time looked at, at either end: what is that young may yet go
	keptLeast    = 0.4  // of a growth must be blocks that stayed
	outlivedSome = 0.05 // of a growth, freed when it was old, is worth a look
	outlivedLate = 0.5  // of the mean rate is the least at which a site grows while old blocks of it are freed
	soonAfter    = 0.1  // of the time, in which a later reading tells what was freed until the end
	agesLeast    = 0.6  // of the time looked at must be in a reading of ages
)

// lasting asks the ages of a site's blocks whether its growth between two moments, in ns, is of blocks that stay. One
// whose blocks are all young holds ever larger ones, and keeps none. One whose old blocks hold more than at first only
// comes to be used. One of which old blocks are freed is a buffer
// that became full, if it grew no more since: what it freed says how long that was.
func (h *History) lasting(g *Growing, stacks []uint32, from, to int64, c Curve) {
	ages, ok := h.agesAt(from, to)
	if !ok {
		return
	}
	span := float64(ages.Time - from)
	begin, end := from+int64(unsettled*span), ages.Time-int64(unsettled*span)
	var stayed, before float64
	known := 0
	for _, stack := range stacks {
		for i := range ages.Sites {
			if site := &ages.Sites[i]; site.Stack == stack {
				known++
				stayed += bornBetween(ages, site, begin, end)
				before += bornBetween(ages, site, ages.From, begin)
			}
		}
	}
	if known == 0 {
		return
	}
	expected := g.Growth * float64(end-begin) / float64(to-from)
	if stayed < keptLeast*expected {
		g.Steady, g.Larger, g.Why = false, true, "replaced"
		if before-c.Y[0] >= keptLeast*g.Growth {
			g.Larger, g.Touched, g.Why = false, true, "touched"
		}
		return
	}
	// as at the program's last line: what was freed until the end is told there
	after, ok := h.agesAt(from, to+int64(soonAfter*span))
	if !ok {
		after = ages
	}
	for _, reading := range []*mem.HeapAges{ages, after} {
		if fullSince(g, stacks, reading, float64(reading.Time-from)/float64(to-from), c) {
			g.Steady, g.Why = false, "stops"
		}
	}
}

// fullSince says whether a site rose no more, or little, since when what it freed of its old blocks says that it was
// full. Parameter part is of the curve, at which the ages were read.
func fullSince(g *Growing, stacks []uint32, ages *mem.HeapAges, part float64, c Curve) bool {
	var outlived float64
	for _, site := range ages.Sites {
		if slices.Contains(stacks, site.Stack) {
			outlived += float64(site.Outlived)
		}
	}
	if outlived <= outlivedSome*g.Growth {
		return false
	}
	first, last := c.X[0], c.X[len(c.X)-1]
	full := max(first+(last-first)*min(part, 1)-outlived/g.Slope, (first+last)/2)
	return c.Y[len(c.Y)-1]-valueAt(c, full) < outlivedLate*g.Slope*(last-full)
}

// agesAt is the last reading of ages in a stretch of time, if it comes late enough in it.
func (h *History) agesAt(from, to int64) (*mem.HeapAges, bool) {
	if h.errs == nil || to <= from {
		return nil, false
	}
	all := h.errs.ages
	n := sort.Search(len(all), func(i int) bool { return all[i].Time > to })
	if n == 0 || float64(all[n-1].Time-from) < agesLeast*float64(to-from) {
		return nil, false
	}
	return &all[n-1], true
}

// freedSince is how much of what a stack held at a moment was freed until a later one, by the ages of its blocks in
// between; ok says whether these are known of a good part of that time.
func (h *History) freedSince(stack uint32, from, to Moment, ends *heldAt) (freed float64, ok bool) {
	begin, end := h.TimeOf(from), h.TimeOf(to)
	ages, ok := h.agesAt(begin, end)
	if !ok {
		return 0, false
	}
	n := slices.IndexFunc(ages.Sites, func(site mem.SiteAges) bool { return site.Stack == stack })
	if n < 0 {
		return 0, false
	}
	left := bornBetween(ages, &ages.Sites[n], ages.From, begin)
	freed = max(float64(ends.of(stack, from))-left, 0)
	return freed * float64(end-begin) / float64(ages.Time-begin), true
}

// bornBetween is what a site held of what it allocated between two moments; of a bin that is partly in it, that part.
func bornBetween(ages *mem.HeapAges, site *mem.SiteAges, from, to int64) (sum float64) {
	for k, bytes := range site.Born {
		begin := ages.From + int64(k)*ages.Width
		end := min(begin+ages.Width, ages.Time)
		if shared := min(end, to) - max(begin, from); shared > 0 && end > begin {
			sum += float64(bytes) * float64(shared) / float64(end-begin)
		}
	}
	return sum
}

// valueAt is a curve at a point, straight between its own.
func valueAt(c Curve, x float64) float64 {
	i := sort.SearchFloat64s(c.X, x)
	switch {
	case i == 0:
		return c.Y[0]
	case i == len(c.X):
		return c.Y[i-1]
	}
	return c.Y[i-1] + (c.Y[i]-c.Y[i-1])*(x-c.X[i-1])/(c.X[i]-c.X[i-1])
}
