package usage

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
)

// Bins are the stretches of a History in which growth is looked at, and where each lies on the clock of the program:
// steps, minutes or events.
type Bins struct {
	Stretches []Stretch
	X         []float64
	Whole     bool // whole steps of an exact history, see Curve
	ToTheEnd  bool // they last to the end of a process, which gives back what it holds
}

// Stretches is the source of bins that are not steps.
const Stretches = "stretches"

const growthStretch = 12 // equal parts of a trace without steps

// Steps is how many steps lie between a bin and the last one.
func (b *Bins) Steps(from int) int { return int(b.X[len(b.X)-1] - b.X[from]) }

// GrowthBins are the steps of a trace in which growth is looked at, but for the first and the last, several in one
// where there are many. They are equal stretches where no steps are known. source is that of the steps, or Stretches.
func (d *Device) GrowthBins(steps *Steps) (bins Bins, source string) {
	var all []Stretch
	if steps != nil && len(steps.Steps) > leastSteps {
		source = steps.Source
		all = steps.Steps[1 : len(steps.Steps)-1]
	} else if steps == nil && d.Moments >= 1000 { // a single step grows and shrinks by itself
		source = Stretches
		for i := 1; i < growthStretch; i++ {
			all = append(all, Stretch{d.Moments * i / growthStretch, d.Moments*(i+1)/growthStretch - 1})
		}
	}
	if len(all) < leastSteps {
		return Bins{}, source
	}
	n := min(len(all), MostBins)
	for b := range n {
		first, last := b*len(all)/n, (b+1)*len(all)/n-1
		bins.Stretches = append(bins.Stretches, Stretch{all[first].From, all[last].To})
		bins.X = append(bins.X, float64(first))
	}
	bins.Whole = true
	return bins, source
}

// MostBins is how finely growth is looked at.
const MostBins = 64

// Growing is a site that holds ever more for good.
type Growing struct {
	Trend
	Site  *Site
	Stack uint32    // the one that grew most
	Rise  mem.Bytes // of that
	From  int       // the bin from which on it was looked at, as it held nothing before
	Held  mem.Bytes // when it was read last,
	Off   float64   // variance of that, bytes²
	Read  int64     // ns; 0: not known
	Phase mem.Phase
	Every bool // it rose in each bin, by about as much

	// Larger says that nothing is kept for good. What is freed is followed by something larger, as where each step works
	// on more, or a whole table is copied to be extended. Then it is not Steady.
	Larger bool

	// Touched says that its blocks are old, and ever more of them is resident: they are used long after they were
	// allocated. Then it is not Steady.
	Touched bool
}

// Growing finds the sites that hold more and more, fastest first, and those whose blocks only get larger or come to be
// used; of a sampled history those that are Unsure, too. least is the smallest growth that matters, in bytes. Of a sampled heap that was read too seldom to see the course of a site,
// whole is that of all of it. What an exact history held at its beginning only ever goes, and does not count; wants
// lets stacks through, nil: all.
func (h *History) Growing(names *Names, bins Bins, least float64, whole Trend,
	wants func(stack uint32) bool) []Growing {
	if len(bins.Stretches) < 2 {
		return nil
	}
	sites := groupSites(h, names, wants)
	kept := h.Kept(bins.Stretches, len(sites.list), sites.of)
	var found []Growing
	parts, ends := h.risen(kept, sites, bins, least)
	for n, low := range kept {
		part, ok := parts[n]
		if !ok {
			continue
		}
		g := Growing{Site: sites.list[n], From: part.from}
		noise := h.noiseOf(&g, sites.stacks[n], bins, part, ends)
		c := Curve{X: bins.X[part.from : part.to+1], Whole: bins.Whole}
		for _, bytes := range low[part.from : part.to+1] {
			c.Y = append(c.Y, float64(bytes))
		}
		if g.Trend = TrendOf(c, noise, least); g.Why == "too short" {
			g.Trend = shareOf(whole, c, noise, least)
		}
		unsure := g.Why == Unsure && !h.Exact()
		if g.Steady || unsure {
			h.lasting(&g, sites.stacks[n], h.TimeOf(bins.Stretches[part.from].From), h.TimeOf(bins.Stretches[part.to].From), c)
		}
		g.Every = risesInEach(c)
		if unsure && g.Why != Unsure {
			continue // and its blocks say that it is none
		}
		if g.Steady || g.Larger || g.Touched || unsure {
			found = append(found, g)
		}
	}
	slices.SortStableFunc(found, func(a, b Growing) int {
		return cmp.Or(cmp.Compare(b.Slope, a.Slope), cmp.Compare(a.Site.File, b.Site.File),
			cmp.Compare(a.Site.Line, b.Site.Line), cmp.Compare(a.Site.Name, b.Site.Name))
	})
	return found
}

// risesInEach says whether a curve rises from each point to the next, and nowhere twice as steeply as elsewhere.
func risesInEach(c Curve) bool {
	least, most := math.Inf(1), 0.0
	for i := 1; i < len(c.Y); i++ {
		rise := (c.Y[i] - c.Y[i-1]) / (c.X[i] - c.X[i-1])
		least, most = min(least, rise), max(most, rise)
	}
	return least > 0 && most <= 2*least
}

// risen finds the parts of the bins in which sites rose by enough to be looked at, by site, and what reads the stacks
// of those.
func (h *History) risen(kept [][]mem.Bytes, sites *siteGroups, bins Bins, least float64) (map[int]part, *heldAt) {
	parts, ends := map[int]part{}, &heldAt{h: h, index: map[uint32]int{}, known: map[Moment][]mem.Bytes{}}
	for n, low := range kept {
		if low == nil {
			continue
		}
		part := bins.part(low)
		if float64(low[part.to]-low[part.from]) < least/2 {
			continue
		}
		parts[n] = part
		for _, stack := range sites.stacks[n] {
			ends.index[stack] = len(ends.index)
		}
	}
	return parts, ends
}

// heldAt tells what some stacks held. It goes through the history once for each moment, whoever asks.
type heldAt struct {
	h     *History
	index map[uint32]int // of the stacks, in the columns of known
	known map[Moment][]mem.Bytes
}

func (a *heldAt) of(stack uint32, at Moment) mem.Bytes {
	column, ok := a.known[at]
	if !ok {
		column = make([]mem.Bytes, len(a.index))
		a.h.Each(at, func(i int) {
			if n, ok := a.index[a.h.Stack[i]]; ok {
				column[n] += a.h.Bytes[i]
			}
		})
		a.known[at] = column
	}
	return column[a.index[stack]]
}

// noiseOf is what sampling adds to the growth of a site in a part of the bins; it also finds the stack of the site
// that grew most.
func (h *History) noiseOf(g *Growing, stacks []uint32, bins Bins, part part, ends *heldAt) (noise Noise) {
	first, middle := bins.Stretches[part.from].From, bins.Stretches[(part.from+part.to+1)/2].From
	last := bins.Stretches[part.to].To
	if part.to+1 < len(bins.Stretches) {
		last = bins.Stretches[part.to].From
	}
	g.Read = h.TimeOf(last)
	for k, stack := range stacks {
		variance, later, excess := h.noise(stack, first, middle, last)
		if freed, ok := h.freedSince(stack, middle, last, ends); ok { // what came and went between them is no noise
			later = min(later, 2*freed*max(excess, 0))
		}
		noise.Variance += variance
		noise.Later += later
		held := ends.of(stack, last)
		g.Held += held
		if h.errs != nil {
			g.Off += h.errs.Variance(h.errs.at(stack, last), held)
		}
		if rise := held - ends.of(stack, first); k == 0 || rise > g.Rise {
			g.Stack, g.Rise, noise.Grain = stack, max(rise, 0), excess
		}
	}
	if h.errs != nil {
		g.Phase = h.errs.at(g.Stack, last).Phase
	}
	return noise
}

// part is a range of bins, both ends in it.
type part struct{ from, to int }

const (
	onset     = 0.02 // of what a site holds in the end: before that it has not begun
	lateOnset = 0.15 // of the bins, after which it has begun late
	leastPart = 0.4  // of the bins, in which a site must be seen to grow
	leastLate = 0.2  // likewise of an exact history
	endPart   = 8    // one in so many bins may be the end of the process,
	// in which it holds less than this part: what is replaced all the time differs by less, in its samples
	endHeld = 0.95
)

// part is where a site's growth is looked at. It is from when it begins to hold anything, if that leaves enough, and
// without the end of a process, in which it gives back what it held.
func (b *Bins) part(low []mem.Bytes) part {
	p := part{0, len(low) - 1}
	if b.Whole { // what it held all the time is not part of its growth, and blocks tell exactly: fewer bins are enough
		for p.from < p.to && float64(low[p.from+1]-low[0]) < onset*float64(low[p.to]-low[0]) {
			p.from++
		}
		if p.from <= int(lateOnset*float64(len(low))) || p.to-p.from < max(int(leastLate*float64(len(low))), leastBins) {
			p.from = 0
		}
		return p
	}
	if b.ToTheEnd {
		last := len(low) - 1 - len(low)/endPart
		top := low[last]
		for i := last; i < len(low); i++ {
			if top = max(top, low[i]); float64(low[i]) >= endHeld*float64(top) {
				last = i
			}
		}
		p.to = last
	}
	begun := p.from
	for begun < p.to && float64(low[begun+1]) < onset*float64(low[p.to]) {
		begun++
	}
	if begun > int(lateOnset*float64(len(low))) && p.to-begun >= max(int(leastPart*float64(len(low))), leastBins) {
		p.from = begun
	}
	return p
}

// shareOf judges a site of which there are too few readings to see its course. Where the whole heap
// grows steadily, a line that rose by a good part of that is what grows.
func shareOf(whole Trend, c Curve, of Noise, least float64) Trend {
	from, end := 0, len(c.X)-1
	for end-from > 1 && c.X[from] < c.X[0]+WarmUpPart*(c.X[end]-c.X[0]) {
		from++
	}
	span, rise := c.X[end]-c.X[from], c.Y[end]-c.Y[from]
	t := Trend{Slope: rise / span, Half: 1.96 * math.Sqrt(of.Variance) / span, Growth: rise, Points: whole.Points,
		Why: "too short"}
	if !whole.Steady || rise < least || rise < significance*math.Sqrt(of.Variance) || t.Slope < 0.15*whole.Slope ||
		t.Slope > 2*whole.Slope {
		return t
	}
	if c.Y[end]-c.Y[len(c.X)/2] < laterRises*math.Sqrt(of.Later) {
		t.Why = "stops"
		return t
	}
	t.Steady, t.Why = true, ""
	return t
}

// siteGroups number the sites of a history's spans.
type siteGroups struct {
	h       *History
	byStack []int32 // 1 + number of the site; 0: not looked at, negative: does not count
	list    []*Site
	stacks  [][]uint32 // by site
}

func groupSites(h *History, names *Names, wants func(uint32) bool) *siteGroups {
	s := &siteGroups{h: h, byStack: make([]int32, h.Stacks.Len())}
	index := map[siteKey]int32{}
	var seen []uint32
	for _, stack := range h.Stack {
		if int(stack) >= len(s.byStack) {
			s.byStack = append(s.byStack, make([]int32, int(stack)+1-len(s.byStack))...)
		}
		if s.byStack[stack] == 0 {
			s.byStack[stack] = -1
			seen = append(seen, stack)
		}
	}
	slices.Sort(seen)
	for _, stack := range seen {
		if wants != nil && !wants(stack) {
			continue
		}
		site := names.Of(stack)
		n, ok := index[site.key()]
		if !ok {
			n = int32(len(s.list))
			index[site.key()] = n
			s.list, s.stacks = append(s.list, site), append(s.stacks, nil)
		}
		s.byStack[stack] = n + 1
		s.stacks[n] = append(s.stacks[n], stack)
	}
	return s
}

// of is the number of the site of a span.
func (s *siteGroups) of(span int) int {
	if s.h.Exact() && s.h.From[span] < 0 {
		return -1
	}
	return int(s.byStack[s.h.Stack[span]]) - 1
}
