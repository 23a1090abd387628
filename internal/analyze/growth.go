package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// growing is one cause of growth: lines whose memory is kept, and the container that keeps it.
type growing struct {
	process  uint32
	shares   []share // of the processes and devices that show the same, summed
	holder   *mem.Holder
	graph    bool // autograd graphs are what is kept
	cycles   bool // it waits in reference cycles for Python's collector
	lines    []growingLine
	slope    float64 // bytes per step (or minute)
	half     float64
	points   int     // that tell so, see usage.Trend
	kept     float64 // by the end
	keptHalf float64 // half width of its 95 % interval
	seen     float64 // bytes per step (or minute) in the sampled heap, where the sizes of the items say more; 0: not so
	whole    float64 // of a cause whose lines are known: by how much its process grows as a whole, where that is much more
	source   string  // "heap", "rss", "device"
	label    mem.Label
	minutes  bool
	stopped  int64 // when it came to rest, mono ns; 0: it went on to the end
}

// share is what one process adds to a growth, of the host or of one device.
type share struct {
	process uint32
	device  string // as its allocator calls it: "cuda:1"; empty: of the host, or not known
	slope   float64
}

// The least growth worth a word.
const (
	leastLine  = float64(1 * mem.MiB)  // kept by a line, before lines are put together
	leastHeap  = float64(4 * mem.MiB)  // kept by a cause, seen in the sampled heap
	leastTotal = float64(16 * mem.MiB) // of a process's RSS or a device, whose lines are not known
	leastShare = 0.01                  // of the peak, of RSS and devices,
	// and of the RSS of a process whose sampled heap shows its lines: malloc and threads take some without a cause
	leastUnseen = 0.03

	leastEnds = 16 // steps, and readings at their ends, that a process or a device as a whole is told from

	leastLifeHeap = 1 * time.Second // where there are no steps
	leastLifeRSS  = 2 * time.Minute
	doubtOverTime = 0.8 // how sure a growth is where there are no steps
)

// growth finds what grows steadily, joins it with the containers that keep it, and says what it
// will come to.
func growth(in *Input, r *report.Report) {
	var causes []growing
	heaps := 0 // that were looked at
	for _, p := range in.Run.Processes {
		found, looked := in.heapCauses(p)
		causes = append(causes, found...)
		if looked {
			heaps++
		}
	}
	causes = merged(causes)
	in.growing = causes
	in.stopped = in.stoppedCauses()
	tree, tested := in.totalGrowth()
	in.totals = in.goingOn(tree)
	in.growing = append(in.growing, in.unexplained(in.totals, causes)...)
	in.sizedGrowth()
	slices.SortStableFunc(in.growing, func(a, b growing) int {
		if in.ends(&a) != in.ends(&b) { // what goes on comes first
			return map[bool]int{true: 1, false: -1}[in.ends(&a)]
		}
		return cmp.Compare(b.slope, a.slope)
	})
	for i := range in.growing {
		r.Findings = append(r.Findings, in.growthFinding(&in.growing[i]))
	}
	for i := range in.stopped {
		r.Findings = append(r.Findings, in.stoppedFinding(&in.stopped[i]))
	}
	in.emptiedFindings(r)
	in.growthTable(r)
	in.headlineGrowth(r, tested)
	if heaps == 0 && !tested {
		r.Headline.NotLooked = in.whyNotLooked()
	} else {
		r.Headline.Looked = in.lookedFor(heaps > 0, tested)
		r.Headline.NotLooked = in.gaining(r)
	}
	in.largerNotes(r)
	in.fileNotes(r)
}

// heapCauses finds the causes that the sampled heap of one process shows; looked says whether there was enough of it
// to tell.
func (in *Input) heapCauses(p *mem.Process) (causes []growing, looked bool) {
	c := in.ClockOf(p.ID)
	from, to := c.Window(p, in.End)
	if c.Minutes && time.Duration(to-from) < leastLifeHeap {
		return nil, false
	}
	lines, looked := in.growingLines(p.ID, leastLine)
	joined := in.join(p.ID, lines)
	for _, g := range append(joined, in.bySize(p, joined)...) {
		g.process, g.source, g.label, g.minutes = p.ID, "heap", mem.Sampled, c.Minutes
		if len(g.lines) > 0 {
			g.sum(c, to)
		} else {
			g.label = mem.Estimated
		}
		g.shares = []share{{process: p.ID, slope: g.slope}}
		if len(g.lines) == 0 || g.growth() >= leastHeap {
			causes = append(causes, g)
		}
	}
	return causes, looked
}

// lookedFor says what growth would have been told.
func (in *Input) lookedFor(heap, whole bool) string {
	var said []string
	if heap {
		said = append(said, fmt.Sprintf("%v or more kept by lines of the sampled heap", mem.Bytes(leastHeap)))
	}
	if whole {
		said = append(said, fmt.Sprintf("%v or more of a process or device (%g %% of its peak where that is more)",
			mem.Bytes(leastTotal), 100*in.leastShareOf(in.Leader, "rss")))
	}
	looked := "Looked for steady growth: " + strings.Join(said, ", and ") + "."
	switch {
	case whole:
		return looked
	case in.ClockOf(in.Leader).Minutes:
		return looked + fmt.Sprintf(" Growth of a whole process, which alone shows memory that the sampler does not see, "+
			"was not looked for: without steps that takes %s.", report.Duration(int64(leastLifeRSS)))
	}
	return looked + " Growth of a whole process, which alone shows memory that the sampler does not see, was not " +
		"looked for: too few ends of steps were read."
}

// whyNotLooked says why nothing was looked at that could tell a leak.
func (in *Input) whyNotLooked() string {
	p := in.Run.Process(in.Leader)
	c := in.ClockOf(in.Leader)
	from, to := c.Window(p, in.End)
	life := report.Duration(max(to-from, 0))
	heap := in.Run.Heap[in.Leader] != nil
	switch {
	case !c.Minutes && c.Steps[len(c.Steps)-1] >= leastEnds:
		return fmt.Sprintf("Leaks were not looked for: memory was read at the ends of too few of the %s to tell a growth "+
			"from a warm-up.", report.Counted(int64(c.Steps[len(c.Steps)-1]), "step"))
	case in.Label() == mem.Imagined:
		return "Leaks were not looked for: too few steps were imagined to tell a growth from a warm-up."
	case !c.Minutes:
		return "Leaks were not looked for: too few steps were observed to tell a growth from a warm-up."
	case heap && time.Duration(to-from) < leastLifeHeap:
		return fmt.Sprintf("Leaks were not looked for: no steps were seen, and %s are too short to tell growth over time "+
			"(it takes %s).", life, report.Duration(int64(leastLifeHeap)))
	case heap:
		return "Leaks were not looked for: no steps were seen, and the heap was read too seldom to tell growth over time."
	}
	return fmt.Sprintf("Leaks were not looked for: no steps were seen and the heap was not sampled, so it takes a run "+
		"of %s.", report.Duration(int64(leastLifeRSS)))
}

// sum adds up the lines of a cause, at a moment.
func (g *growing) sum(c *facts.Clock, at int64) {
	var variance float64
	passed := c.At(at)
	g.slope, g.kept = 0, 0
	for _, l := range g.lines {
		g.slope += l.Slope
		since := 0.0
		if l.Read > 0 && !c.Minutes {
			since = max(passed-c.At(l.Read), 0)
		}
		g.kept += l.kept(passed-since) + l.Slope*since
		g.points = max(g.points, l.Points)
		variance += l.Half * l.Half
	}
	g.half = math.Sqrt(variance)
	g.keptHalf = g.half * passed
}

// kept is what a line's growth has come to in so many steps or minutes: it may hold something else besides.
func (l *growingLine) kept(passed float64) float64 {
	if held := float64(l.Held); held <= (l.Slope+2*l.Half)*passed {
		return held
	}
	return l.Slope * passed
}

// growth over the window that was looked at.
func (g *growing) growth() float64 {
	var sum float64
	for _, l := range g.lines {
		sum += l.Growth
	}
	return sum
}

// merged puts the same cause in several processes together, as in every rank or every worker, or on several devices.
// What grows on the host and what grows on a device are never one.
func merged(causes []growing) []growing {
	type key struct {
		source  string
		file    string
		line    int
		holder  string
		minutes bool
	}
	index := map[key]int{}
	var out []growing
	for _, g := range causes {
		at, holder := g.where(), ""
		if g.holder != nil {
			holder = g.holder.Name
		}
		k := key{g.source, at.File, at.Line, holder, g.minutes}
		i, ok := index[k]
		if !ok {
			index[k] = len(out)
			out = append(out, g)
			continue
		}
		o := &out[i]
		o.slope, o.kept = o.slope+g.slope, o.kept+g.kept
		o.half, o.keptHalf = math.Hypot(o.half, g.half), math.Hypot(o.keptHalf, g.keptHalf)
		if g.holder != nil {
			both := *o.holder
			both.PerStep += g.holder.PerStep
			o.holder = &both
		}
		o.shares = append(o.shares, g.shares...)
		o.lines = append(o.lines, g.lines...)
		slices.SortStableFunc(o.lines, func(a, b growingLine) int { return cmp.Compare(b.Slope, a.Slope) })
	}
	return out
}

// where is the line a person should look at: the holder's, else where the bytes come from.
func (g *growing) where() mem.Location {
	if g.holder != nil && g.holder.Where.File != "" && g.holder.Where.Line > 0 {
		return g.holder.Where
	}
	if len(g.lines) > 0 {
		return g.lines[0].Site.Location
	}
	return mem.Location{}
}

// headlineGrowth is the growth per step of the whole run: of the device where that leads, else of
// the host. Zero means that it was looked for and is not there.
func (in *Input) headlineGrowth(r *report.Report, tested bool) {
	lead := leadSource(r)
	shares, of := in.wholeShares(lead)
	if len(shares) > 0 || tested && !in.ClockOf(in.Leader).Minutes {
		r.Headline.Growth, r.Headline.GrowthLabel = mem.Some(int64(bytesPer(sumOf(shares)))), in.labelOf(lead)
		if of == "heap" {
			r.Headline.GrowthLabel = mem.Sampled
		}
	}
	if least := in.leastTold[lead]; len(shares) == 0 && r.Headline.Growth.Known() {
		r.Headline.GrowthLeast = mem.Some(int64(math.Ceil(least)))
	}
}

// leadSource is what the headline's growth is of.
func leadSource(r *report.Report) string {
	if r.Headline.MainSource.OfDevice() {
		return "device"
	}
	return "rss"
}

// wholeShares are what grows per step of the whole run: what processes take as a whole or, on a host where the
// sampled heap has more, that.
func (in *Input) wholeShares(lead string) (shares []share, source string) {
	for _, t := range in.totals {
		if t.source == lead && !t.minutes {
			shares = append(shares, share{t.process, t.device, t.Slope})
		}
	}
	var heap []share
	for _, g := range in.growing {
		if g.source == "heap" && !g.minutes && lead == "rss" {
			heap = append(heap, g.shares...)
		}
	}
	if sumOf(heap) > sumOf(shares) {
		return heap, "heap"
	}
	return shares, lead
}

// ofTheWhole is the growth by which memory runs out: of a cause, or more where the whole run grows faster.
func (in *Input) ofTheWhole(r *report.Report, worst *growing) (shares []share, source string, more bool) {
	if whole, ok := r.Headline.Growth.Get(); ok && !worst.minutes && float64(whole) > 1.02*worst.slope {
		shares, _ = in.wholeShares(leadSource(r))
		return shares, leadSource(r), true
	}
	return worst.shares, worst.source, false
}

// growthTable has a row for each line of each cause.
func (in *Input) growthTable(r *report.Report) {
	t := report.Table{
		Name: "growth", Title: "What grows, line by line",
		Note: "Steady growth after warm-up, from the sampled heap; ± is half the 95 % interval.",
		Columns: []report.Column{report.TextColumn("line", "line"), report.TextColumn("function", "function"),
			report.BytesColumn("per_step", "per step", mem.Sampled),
			report.BytesColumn("error", "±", mem.Sampled), report.BytesColumn("per_minute", "per minute", mem.Sampled),
			report.BytesColumn("kept", "kept at the end", mem.Sampled), report.TextColumn("phase", "phase"),
			report.TextColumn("holder", "kept by"), report.TextColumn("process", "process"), report.TextColumn("file", "file")},
	}
	for _, g := range in.growing {
		holder := ""
		if g.holder != nil {
			holder = g.holder.Name
		}
		for _, l := range g.lines {
			if len(t.Rows) >= 60 {
				break
			}
			step, minute := any(bytesPer(l.Slope)), any(nil)
			if g.minutes {
				step, minute = nil, step
			}
			t.Add(l.Site.Name, l.Site.Function, step, bytesPer(l.Half), minute,
				l.Held, l.Phase, holder, in.ProcessName(l.process), l.Site.File)
		}
	}
	r.AddTable(t)
}

// bytesPer rounds a rate to whole bytes.
func bytesPer(rate float64) mem.Bytes { return mem.Rounded(rate) }
