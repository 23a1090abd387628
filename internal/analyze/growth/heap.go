package growth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// growingLines finds the lines of a process whose heap grows steadily, or whose blocks get ever larger, fastest
// first. looked says whether there are readings enough to tell. What is allocated while modules are imported is left
// out, which happens once.
func (in *Found) growingLines(process uint32, least float64) (lines []growingLine, looked bool) {
	h := in.Histories[process]
	if h == nil {
		return nil, false
	}
	c, p := in.ClockOf(process), in.Run.Process(process)
	bins := heapBins(h, c, p, in.End, in.imported(h, c))
	if len(bins.X) < leastReadings {
		return nil, false
	}
	for _, g := range h.Growing(in.Names, bins, least, in.heapTrend(process, h, bins, least), in.notImporting) {
		if g.Site.Name != usage.OwnAgent { // it is bounded, and nobody's line
			lines = append(lines, growingLine{g, process, in.Run.Stacks.OfObjects(g.Stack)})
		}
	}
	return lines, true
}

// imported is when a process without steps had imported most of its modules, whose time tells nothing of what
// follows; 0: not known.
func (in *Found) imported(h *usage.History, c *facts.Clock) int64 {
	const most = 0.95
	if !c.Minutes {
		return 0
	}
	// Each stack counts when it first held something: what it holds is written anew as pages come to be resident.
	first, bytes := map[uint32]int32{}, map[int32]mem.Bytes{}
	var all, sum mem.Bytes
	for i := range h.Len() {
		from, known := first[h.Stack[i]]
		if !known && in.notImporting(h.Stack[i]) {
			from = -1
		} else if !known {
			from = h.From[i]
		}
		if first[h.Stack[i]] = from; from >= 0 {
			bytes[from] += h.Bytes[i]
			all += h.Bytes[i]
		}
	}
	for _, from := range slices.Sorted(maps.Keys(bytes)) {
		if sum += bytes[from]; float64(sum) >= most*float64(all) {
			return h.TimeOf(int(from))
		}
	}
	return 0
}

// leastReadings of a heap that a growth is told from.
const leastReadings = 4

// notImporting says that a stack is not of the import of a module.
func (in *Found) notImporting(stack uint32) bool { return !in.Run.Stacks.Importing(stack) }

// largerRate is how fast lines of a process grow that keep nothing.
func (in *Found) largerRate(process uint32) (rate float64) {
	for _, l := range in.larger {
		if l.process == process {
			rate += l.Slope
		}
	}
	return rate
}

// largerNotes says of what each step needs more and more. That is not a leak, but may run out of memory all the same.
// Memory that comes to be used long after it was allocated ends with what was allocated.
func (in *Found) largerNotes() {
	for _, l := range in.larger[:min(len(in.larger), 3)] {
		if l.Growth < leastHeap {
			continue
		}
		unit := "step"
		if in.ClockOf(l.process).Minutes {
			unit = "minute"
		}
		if l.Touched {
			in.Said.AddNote(fmt.Sprintf("Memory that %s allocated early comes to be used: %v more per %s (%s), %v of it when it "+
				"was read last. That ends when all of it is in use.",
				l.Site.Name, bytesPer(l.Slope), unit, in.HeapLabel(), l.Held))
			continue
		}
		in.Larger = cmp.Or(in.Larger, l.Site.Name)
		in.Said.AddNote(fmt.Sprintf("What %s allocates gets larger, by %v per %s (%s) to %v when it was read last. Most of what "+
			"it allocated before was freed: as where one buffer or array grows, little is held beside its newest blocks. It "+
			"needs ever more.",
			l.Site.Name, bytesPer(l.Slope), unit, in.HeapLabel(), l.Held))
	}
}

// unsureLine says of the line that rose most that it may grow, where nothing else is said.
func (in *Found) unsureLine() {
	if len(in.Said.Findings) > 0 || in.NotLooked != "" {
		return
	}
	most := growingLine{}
	for _, l := range in.unsure {
		if l.Growth > most.Growth && l.Slope > worthAWord*l.Half {
			most = l
		}
	}
	if most.Growth >= leastHeap {
		in.NotLooked = fmt.Sprintf("Whether %s keeps more and more is not known: what it holds rose by %v (%s, ± %v), and so "+
			"few samples may do so by chance. A longer run tells.", most.Site.Name, bytesPer(most.Growth),
			in.HeapLabel(),
			bytesPer(most.Growth*most.Half/most.Slope))
	}
}

// worthAWord is how often its error a growth has, from which on it is said that it may be one.
const worthAWord = 1.25

// heapBins cuts the readings of a heap into bins, inside the window of the clock.
func heapBins(h *usage.History, c *facts.Clock, p *mem.Process, end, imported int64) (bins usage.Bins) {
	from, to := c.Window(p, end)
	if time.Duration(to-imported) >= LeastLifeHeap {
		from = max(from, imported)
	}
	first := sort.Search(h.Moments, func(i int) bool { return h.Times[i] >= from })
	beyond := sort.Search(h.Moments, func(i int) bool { return h.Times[i] > to })
	n := min(usage.MostBins, beyond-first)
	for b := range n {
		at := first + b*(beyond-first)/n
		x := c.At(h.Times[at])
		if last := len(bins.X) - 1; last >= 0 {
			if x <= bins.X[last] {
				continue
			}
			bins.Stretches[last].To = at - 1
		}
		bins.ToTheEnd = c.Minutes
		bins.Stretches, bins.X = append(bins.Stretches, usage.Stretch{From: at, To: beyond - 1}), append(bins.X, x)
	}
	return bins
}

// heapTrend is the growth of a process's whole heap. Of that there are readings at every step and
// every sampling interval, also where its sites were written only a few times.
func (in *Found) heapTrend(process uint32, h *usage.History, bins usage.Bins, least float64) usage.Trend {
	var times, values []int64
	for _, s := range in.Steps[process] {
		if v, ok := s.Heap.Get(); ok {
			times, values = append(times, s.Time), append(values, v)
		}
	}
	if len(times) == 0 {
		s := in.Find(process, mem.SeriesHeapLive)
		if s == nil {
			return usage.Trend{Why: "too short"}
		}
		times, values = s.Times, s.Values
	}
	from := h.Times[bins.Stretches[0].From]
	_, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	history := in.Run.Heap[process].History
	if len(history) == 0 || len(values) == 0 {
		return usage.Trend{Why: "too short"}
	}
	variance := min(history[len(history)-1].Variance, float64(values[len(values)-1])*usage.DefaultMean)
	return usage.TrendOf(usage.Binned(times, values, from, to, usage.MostBins, in.ClockOf(process).At),
		usage.Noise{Variance: variance}, least)
}

// heapCauses finds the causes that the sampled heap of one process shows; looked says whether there was enough of it
// to tell.
func (in *Found) heapCauses(p *mem.Process) (causes []growing, looked bool) {
	c := in.ClockOf(p.ID)
	from, to := c.Window(p, in.End)
	if c.Minutes && time.Duration(to-from) < LeastLifeHeap {
		return nil, false
	}
	lines, looked := in.growingLines(p.ID, leastLine)
	joined := in.joinLines(p.ID, lines)
	for _, g := range append(joined, in.bySize(p, joined)...) {
		g.process, g.source, g.label, g.minutes = p.ID, "heap", in.HeapLabel(), c.Minutes
		if len(g.lines) > 0 {
			g.sum(c, to)
			in.ofItsSizes(&g)
		} else {
			g.label = mem.Estimated
		}
		g.shares = []share{{process: p.ID, slope: g.slope, copies: g.copies()}}
		if len(g.lines) == 0 || g.growth() >= leastHeap {
			causes = append(causes, g)
		}
	}
	return causes, looked
}
