package growth

import (
	"fmt"
	"math"
	"slices"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// totalGrowth looks at each process's RSS and device memory as a whole.
func (in *Found) totalGrowth() (all []total) {
	for _, p := range in.Run.Processes {
		c := in.ClockOf(p.ID)
		from, to := c.Window(p, in.End)
		if c.Minutes && time.Duration(to-from) < leastLifeRSS {
			continue
		}
		for _, m := range in.memories(p.ID) {
			ends := in.atEnds(m)
			k, sampled := in.totalCurve(m, ends, from, to)
			if len(k.X) < leastEnds || !c.Minutes && k.X[len(k.X)-1]-k.X[0] < leastEnds {
				continue
			}
			in.tested[p.ID] = append(in.tested[p.ID], m.source)
			least := max(facts.LeastTotal, in.leastShareOf(p.ID, m.source)*slices.Max(k.Y))
			if m.source == "rss" {
				least += in.recordedHistory(p)
			}
			in.leastTold[m.source] = max(in.leastTold[m.source], least)
			off := least / (k.X[len(k.X)-1] - k.X[0]) // what grows more slowly is not told
			t := total{usage.TrendOf(k, usage.Noise{}, least), p.ID, m.source, m.device, c.Minutes, 0, 0}
			if t.Steady && sampled && t.Early == 0 {
				t.Refine(usage.Binned(ends.Times, ends.Values, from, to, usage.MostBins, c.At))
			}
			if t.Steady && t.Slope > t.Half { // a saw-tooth may rise by less than its error
				passed := c.At(to) - c.At(from)
				t.kept, t.keptHalf = keptOver(k, t.Slope, passed), t.Half*passed
				// what lines do not show is told only where it is surely as much
				if m.source != "rss" || in.Histories[p.ID] == nil || t.kept-t.keptHalf >= facts.LeastTotal {
					all, off = append(all, t), t.Half
				}
			}
			if !c.Minutes {
				in.rateOff[m.source] += off
			}
		}
	}
	return all
}

// keptOver is what a growth came to from the beginning to the end, of which its trend saw the middle: no more than
// the curve rose by.
func keptOver(k usage.Curve, slope, passed float64) float64 {
	rose := k.Y[len(k.Y)-1] - slices.Min(k.Y)
	return min(slope*passed, rose*passed/(k.X[len(k.X)-1]-k.X[0]))
}

// leastShareOf is the part of its peak from which on the growth of a process as a whole is told.
func (in *Found) leastShareOf(process uint32, source string) float64 {
	if source == "rss" && in.Histories[process] != nil {
		return leastUnseen
	}
	return facts.LeastShare
}

// memoryName is what a process takes as a whole.
func memoryName(source string) string {
	if source == "device" {
		return "device memory"
	}
	return "host memory"
}

// recordedHistory is how much the allocator's history may come to take of a process's host memory, in bytes: the agent
// has it recorded, of each device, in a ring that fills with the first steps.
func (in *Found) recordedHistory(p *mem.Process) float64 {
	ring, _ := p.Number(mem.NumberHistory).Get()
	devices := 0
	for _, m := range in.memories(p.ID) {
		if m.source == "device" {
			devices++
		}
	}
	return float64(ring) * float64(devices)
}

// memory is a process's memory of one kind: of the host, or what an allocator gave of one device.
type memory struct {
	process uint32
	source  string // "rss", "device"
	device  string // "cuda:1"; empty: of the host, or not known
	series  *mem.Series
	atEnds  bool // the ends of steps were read with it
}

// memories are those of a process. The ends of steps have what was allocated on the device that was the current one:
// where a process uses several, samples alone say which is which.
func (in *Found) memories(process uint32) []memory {
	all := []memory{{process: process, source: "rss", series: in.Find(process, mem.SeriesRSS), atEnds: true}}
	var used []*mem.Series
	for _, s := range in.Run.Series {
		if s.Process == process && s.Name == mem.SeriesAllocated && len(s.Values) > 0 && s.Values[s.Peak()] > 0 {
			used = append(used, s)
		}
	}
	for _, s := range used {
		all = append(all, memory{process, "device", s.Device, s, len(used) == 1})
	}
	if len(used) == 0 {
		all = append(all, memory{process: process, source: "device", atEnds: true})
	}
	return all
}

// atEnds is the memory of a process at the ends of its own steps, of those that were recorded with it.
func (in *Found) atEnds(m memory) (l facts.Levels) {
	for _, s := range in.Steps[m.process] {
		v, ok := s.RSS.Get()
		if m.source == "device" {
			v, ok = s.Device.Get()
		}
		if ok && m.atEnds {
			l.Times, l.Values = append(l.Times, s.Time), append(l.Values, v)
		}
	}
	if m.source == "rss" {
		l.Values = in.NotTakenBack(m.process, l)
	}
	return l
}

// fileNotes says which processes came to have more of mapped files, so that a rise of RSS is not taken for a growth: in
// one line, of how many there are and which of them rose most.
func (in *Found) fileNotes() {
	var most, to mem.Bytes
	var who string
	rose := 0
	for _, p := range in.Run.Processes {
		rise, end, ok := in.FilesRose(p.ID)
		if !ok {
			continue
		}
		rose++
		if who == "" || rise > most {
			most, to, who = rise, end, in.ProcessName(p.ID)
		}
	}
	if rose == 0 {
		return
	}
	whose := "of " + who + " rose"
	if rose > 1 {
		whose = fmt.Sprintf("of %d processes rose, those of %s most:", rose, who)
	}
	in.Said.AddNote(fmt.Sprintf("The resident pages of mapped files %s by %v to %v (%s). "+
		"The kernel takes them back when memory is short, so they do not count as growth.", whose, most, to, mem.Measured))
	if peak := in.HostPeak().Or(0); float64(most) >= leastClause*float64(peak) && !in.Lead.Name.OfDevice() {
		in.filesClause = fmt.Sprintf("RSS rises by %v of mapped files, which the kernel takes back when memory is short",
			most)
	}
}

// leastClause is the part of the peak from which on mapped files that were read are in the headline.
const leastClause = 0.05

// totalCurve is a process's memory over its clock: at the ends of its steps, or where these are too few or end too
// early, as sampled.
func (in *Found) totalCurve(m memory, ends facts.Levels, from, to int64) (c usage.Curve, sampled bool) {
	l, few := ends, !seenToTheEnd(ends.Times, from, to) || !in.seenToTheLast(m.process, ends.Times, from, to)
	if m.source == "device" { // steps that are short are seldom recorded with what the device holds
		few = len(ends.Times) < leastEnds
	}
	if s := m.series; few && s != nil && len(s.Times) > len(ends.Times) {
		l, sampled = facts.Levels{Times: s.Times, Values: s.Values}, true
		if m.source == "rss" {
			l.Values = in.NotTakenBack(m.process, l)
		}
	}
	if m.source == "rss" && !seenToTheEnd(l.Times, from, to) { // it may have stopped
		return usage.Curve{}, false
	}
	return usage.Binned(l.Times, l.Values, from, to, usage.MostBins, in.ClockOf(m.process).At), sampled
}

// goingOn leaves out the processes that seem to grow to the end by what their lines say stopped.
func (in *Found) goingOn(all []total) []total {
	stopped := map[uint32]float64{}
	for _, g := range in.stopped {
		for _, s := range g.shares {
			stopped[s.process] += g.kept / float64(len(g.shares))
		}
	}
	return slices.DeleteFunc(all, func(t total) bool {
		return t.source == "rss" && t.kept-stopped[t.process] < max((1-explainsAll)*t.kept, facts.LeastTotal) &&
			stopped[t.process] > 0
	})
}

// seenToTheEnd says whether some of the times are late enough to tell what went on until the end.
func seenToTheEnd(times []int64, from, to int64) bool {
	n := len(times)
	return n > 0 && to-times[n-1] <= max(int64((1-seenLate)*float64(to-from)), seenOften)
}

// seenToTheLast says whether some of the times are late enough, by the clock of a process: steps may get faster, so that
// the last second has many.
func (in *Found) seenToTheLast(process uint32, times []int64, from, to int64) bool {
	n, c := len(times), in.ClockOf(process)
	return n > 0 && c.At(to)-c.At(times[n-1]) <= (1-seenLate)*(c.At(to)-c.At(from))
}

// seenLate is the part of the time after which a process must have been seen at the end of a step, but for seenOften. A
// step is recorded in full once a second.
const (
	seenLate  = 0.9
	seenOften = int64(1500 * time.Millisecond)
)

// labelOf is how sure a growth is: host memory is measured where only the GPU is imagined.
func (in *Found) labelOf(source string) mem.Label {
	if source == "device" {
		return in.Label()
	}
	return mem.Measured
}

// onlyPart makes the growth of a whole process that of its container, where that surely keeps less.
func (g *growing) onlyPart(rate float64) {
	if rate >= g.slope-g.half {
		return
	}
	g.kept, g.keptHalf = g.kept*rate/g.slope, 0
	g.whole, g.slope, g.half, g.early, g.label = g.slope, rate, 0, 0, mem.Estimated
	g.shares = []share{{process: g.process, slope: rate}}
}

// unexplained turns the growth of whole processes into causes where the heap did not explain it:
// with the container that keeps it where one was seen, else without a line.
func (in *Found) unexplained(all []total, known []growing) []growing {
	explained := map[uint32]float64{}
	for _, g := range known {
		for _, l := range g.lines {
			explained[l.process] += l.Slope
		}
		if len(g.lines) == 0 {
			explained[g.process] += g.slope
		}
	}
	var out []growing
	for _, t := range all {
		if t.source == "rss" && (explained[t.process] > explainsAll*t.Slope ||
			in.largerRate(t.process) > explainsAll*t.Slope) {
			continue
		}
		if t.source == "rss" && explained[t.process] > explainsSome*t.Slope { // one cause, one finding
			first := slices.IndexFunc(known, func(g growing) bool { return g.process == t.process && len(g.shares) == 1 })
			if first >= 0 {
				known[first].whole = t.Slope
				continue
			}
		}
		g := growing{process: t.process, slope: t.Slope, half: t.Half, points: t.Points, kept: t.kept, keptHalf: t.keptHalf,
			early: t.Early, source: t.source, label: in.labelOf(t.source), minutes: t.minutes}
		if t.source == "rss" {
			g.slope -= explained[t.process]
		}
		g.shares = []share{{process: t.process, device: t.device, slope: g.slope}}
		g.holder = in.holderOfTotal(t)
		g.graph = g.holder != nil && keepsGraph(*g.holder)
		if g.holder != nil && !g.graph && t.source == "rss" && holderRate(*g.holder) > 0 {
			g.onlyPart(holderRate(*g.holder))
		}
		if holes := in.moreHoles(t.process); t.source == "rss" && g.holder == nil && holes >= leastOfHoles*t.kept {
			g.holes = min(holes, t.kept)
		}
		out = append(out, g)
	}
	return in.merged(out)
}

// wholeRate is the growth per step of the whole run: of the device where that leads, else of
// the host. Zero means that it was looked for and is not there.
func (in *Found) wholeRate(tested bool) {
	lead := in.leadSource()
	shares, of := in.wholeShares(lead)
	if len(shares) > 0 || tested && len(in.unjudged[lead]) == 0 && !in.ClockOf(in.Leader).Minutes {
		in.Rate, in.RateLabel = mem.Some(int64(bytesPer(sumOf(shares)))), in.labelOf(lead)
		if of == "heap" {
			in.RateLabel = in.HeapLabel()
		}
		off := in.rateOff[lead]
		if of == "heap" {
			off = 0
			for _, g := range in.growing {
				if g.source == "heap" && !g.minutes {
					off += g.half
				}
			}
		}
		in.RateError = mem.Some(int64(math.Ceil(off)))
	}
	if least := in.leastTold[lead]; len(shares) == 0 && in.Rate.Known() {
		in.LeastTold = mem.Some(int64(math.Ceil(least)))
	}
}

// leadSource is what the headline's growth is of.
func (in *Found) leadSource() string {
	if in.Lead.Name.OfDevice() {
		return "device"
	}
	return "rss"
}

// wholeShares are what grows per step of the whole run: what processes take as a whole or, on a host where the
// sampled heap has more, that.
func (in *Found) wholeShares(lead string) (shares []share, source string) {
	for _, t := range in.totals {
		if t.source == lead && !t.minutes {
			shares = append(shares, share{process: t.process, device: t.device, slope: t.Slope})
		}
	}
	var heap []share
	for _, g := range in.growing {
		if g.source == "heap" && !g.minutes && lead == "rss" {
			heap = append(heap, g.shares...)
		}
	}
	shares, heap = in.sharesAtOnce(shares), in.sharesAtOnce(heap)
	if sumOf(heap) > sumOf(shares) {
		return heap, "heap"
	}
	return shares, lead
}

// ofTheWhole is the growth by which memory runs out: of a cause, or more where the whole run grows faster.
func (in *Found) ofTheWhole(worst *growing) (shares []share, source string, more bool) {
	if whole, ok := in.Rate.Get(); ok && !worst.minutes && float64(whole) > 1.02*worst.slope {
		shares, _ = in.wholeShares(in.leadSource())
		return shares, in.leadSource(), true
	}
	return worst.shares, worst.source, false
}

// totalOf is how fast the host memory of a process grows as a whole; 0: not known, or not steadily.
func (in *Found) totalOf(process uint32, minutes bool) float64 {
	for _, t := range in.totals {
		if t.process == process && t.source == "rss" && t.minutes == minutes {
			return t.Slope
		}
	}
	return 0
}
