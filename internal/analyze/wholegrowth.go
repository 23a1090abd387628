package analyze

import (
	"fmt"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// total is the growth of one process as a whole.
type total struct {
	usage.Trend
	process  uint32
	source   string // "rss", "device"
	device   string // "cuda:1"; empty: of the host, or not known
	minutes  bool
	kept     float64 // by the end
	keptHalf float64
}

// totalGrowth looks at each process's RSS and device memory as a whole. tested says whether there
// was enough of anything to tell.
func (in *Input) totalGrowth() (all []total, tested bool) {
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
			tested = true
			in.tested[p.ID] = append(in.tested[p.ID], m.source)
			least := max(leastTotal, in.leastShareOf(p.ID, m.source)*slices.Max(k.Y))
			in.leastTold[m.source] = max(in.leastTold[m.source], least)
			t := total{usage.TrendOf(k, usage.Noise{}, least), p.ID, m.source, m.device, c.Minutes, 0, 0}
			if t.Steady && sampled {
				t.Refine(usage.Binned(ends.times, ends.values, from, to, usage.MostBins, c.At))
			}
			if t.Steady && t.Slope > t.Half { // a saw-tooth may rise by less than its error
				passed := c.At(to) - c.At(from)
				t.kept, t.keptHalf = keptOver(k, t.Slope, passed), t.Half*passed
				if m.source == "rss" && in.Histories[p.ID] != nil && t.kept-t.keptHalf < leastTotal {
					continue // what lines do not show is told only where it is surely as much
				}
				all = append(all, t)
			}
		}
	}
	return all, tested
}

// keptOver is what a growth came to from the beginning to the end, of which its trend saw the middle: no more than
// the curve rose by.
func keptOver(k usage.Curve, slope, passed float64) float64 {
	rose := k.Y[len(k.Y)-1] - slices.Min(k.Y)
	return min(slope*passed, rose*passed/(k.X[len(k.X)-1]-k.X[0]))
}

// leastShareOf is the part of its peak from which on the growth of a process as a whole is told.
func (in *Input) leastShareOf(process uint32, source string) float64 {
	if source == "rss" && in.Histories[process] != nil {
		return leastUnseen
	}
	return leastShare
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
func (in *Input) memories(process uint32) []memory {
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

// levels are bytes at moments.
type levels struct{ times, values []int64 }

// atEnds is the memory of a process at the ends of its own steps, of those that were recorded with it.
func (in *Input) atEnds(m memory) (l levels) {
	for _, s := range in.Steps[m.process] {
		v, ok := s.RSS.Get()
		if m.source == "device" {
			v, ok = s.Device.Get()
		}
		if ok && m.atEnds {
			l.times, l.values = append(l.times, s.Time), append(l.values, v)
		}
	}
	if m.source == "rss" {
		l.values = in.notTakenBack(m.process, l)
	}
	return l
}

// notTakenBack is what the kernel cannot take back of the resident memory of a process, whose RSS is given: what is
// its own, what it shares with others, and with it what was swapped out. A page of a mapped file is read again when
// it is needed, and one that was written is written to the file first, so a file that is read through mmap is no
// growth. A page of a private mapping that was written is the process's own, and files of /dev/shm are shared memory:
// the kernel counts them so. Of locked pages it says only how many there are: those beyond all other memory must be
// of files.
func (in *Input) notTakenBack(process uint32, rss levels) []int64 {
	kept, swap := slices.Clone(rss.values), in.Find(process, mem.SeriesSwap)
	for i, at := range rss.times {
		kept[i] += valueAt(swap, at) - in.takenBack(process, at, rss.values[i])
	}
	return kept
}

// takenBack are the resident bytes of mapped files that the kernel can take back, of a process that has so much
// resident.
func (in *Input) takenBack(process uint32, at, rss int64) int64 {
	files, locked := in.Find(process, mem.SeriesRSSFile), in.Find(process, mem.SeriesLocked)
	return max(min(in.between(files, process, at), rss-valueAt(locked, at), rss), 0)
}

// between is a series at a moment between two readings of its process: it is recorded where it changed, and read with
// the RSS.
func (in *Input) between(s *mem.Series, process uint32, at int64) int64 {
	read := in.Find(process, mem.SeriesRSS)
	before := valueAt(s, at)
	if s == nil || read == nil {
		return before
	}
	next, exact := slices.BinarySearch(read.Times, at)
	if exact || next == 0 || next == len(read.Times) {
		return before
	}
	from, to := read.Times[next-1], read.Times[next]
	first := valueAt(s, from)
	return first + int64(float64(valueAt(s, to)-first)*float64(at-from)/float64(to-from))
}

// filesRose is by how much the resident pages of mapped files of a process rose to the end, after warm-up; ok where
// that is worth a word.
func (in *Input) filesRose(process uint32) (rise, end mem.Bytes, ok bool) {
	rss := in.Find(process, mem.SeriesRSS)
	if rss == nil {
		return 0, 0, false
	}
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	from += int64(usage.WarmUpPart * float64(to-from))
	first, last := in.takenBack(process, from, valueAt(rss, from)), in.takenBack(process, to, valueAt(rss, to))
	return mem.Bytes(last - first), mem.Bytes(last), float64(last-first) >= max(leastTotal,
		leastShare*float64(rss.Values[rss.Peak()]))
}

// fileNotes say which processes came to have more of mapped files, so that a rise of RSS is not taken for a growth.
func (in *Input) fileNotes(r *report.Report) {
	var rose mem.Bytes
	for _, p := range in.Run.Processes {
		rise, end, ok := in.filesRose(p.ID)
		if !ok {
			continue
		}
		rose = max(rose, rise)
		r.AddNote(fmt.Sprintf("The resident pages of mapped files of %s rose by %v to %v (%s). "+
			"The kernel takes them back when memory is short, so they do not count as growth.", in.ProcessName(p.ID), rise,
			end, mem.Measured))
	}
	in.filesClause = ""
	if peak := in.HostPeak().Or(0); rose > 0 && float64(rose) >= leastClause*float64(peak) && !r.Headline.MainSource.OfDevice() {
		in.filesClause = fmt.Sprintf("RSS rises by %v of mapped files, which the kernel takes back when memory is short",
			rose)
	}
}

// leastClause is the part of the peak from which on mapped files that were read are in the headline.
const leastClause = 0.05

// valueAt is the last value of a series, 0 where there is none.
func valueAt(s *mem.Series, at int64) int64 {
	if s == nil {
		return 0
	}
	return s.At(at).Or(0)
}

// totalCurve is a process's memory over its clock: at the ends of its steps, or where these are too few or end too
// early, as sampled.
func (in *Input) totalCurve(m memory, ends levels, from, to int64) (c usage.Curve, sampled bool) {
	l, few := ends, !seenToTheEnd(ends.times, from, to)
	if m.source == "device" { // steps that are short are seldom recorded with what the device holds
		few = len(ends.times) < leastEnds
	}
	if s := m.series; few && s != nil && len(s.Times) > len(ends.times) {
		l, sampled = levels{s.Times, s.Values}, true
		if m.source == "rss" {
			l.values = in.notTakenBack(m.process, l)
		}
	}
	if m.source == "rss" && !seenToTheEnd(l.times, from, to) { // it may have stopped
		return usage.Curve{}, false
	}
	return usage.Binned(l.times, l.values, from, to, usage.MostBins, in.ClockOf(m.process).At), sampled
}

// The part of a process's growth from which on its lines explain it, or are at least one cause with it: a sampler
// does not see all that a library allocates, and malloc keeps holes between blocks.
const (
	explainsAll  = 0.4
	explainsSome = 0.2
)

// goingOn leaves out the processes that seem to grow to the end by what their lines say stopped.
func (in *Input) goingOn(all []total) []total {
	stopped := map[uint32]float64{}
	for _, g := range in.stopped {
		for _, s := range g.shares {
			stopped[s.process] += g.kept / float64(len(g.shares))
		}
	}
	return slices.DeleteFunc(all, func(t total) bool {
		return t.source == "rss" && t.kept-stopped[t.process] < max((1-explainsAll)*t.kept, leastTotal) &&
			stopped[t.process] > 0
	})
}

// seenToTheEnd says whether some of the times are late enough to tell what went on until the end.
func seenToTheEnd(times []int64, from, to int64) bool {
	n := len(times)
	return n > 0 && to-times[n-1] <= max(int64((1-seenLate)*float64(to-from)), seenOften)
}

// seenLate is the part of the time after which a process must have been seen at the end of a step, but for seenOften. A
// step is recorded in full once a second.
const (
	seenLate  = 0.9
	seenOften = int64(1500 * time.Millisecond)
)

// labelOf is how sure a growth is: host memory is measured where only the GPU is imagined.
func (in *Input) labelOf(source string) mem.Label {
	if source == "device" {
		return in.Label()
	}
	return mem.Measured
}

// unexplained turns the growth of whole processes into causes where the heap did not explain it:
// with the container that keeps it where one was seen, else without a line.
func (in *Input) unexplained(all []total, known []growing) []growing {
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
			if first := slices.IndexFunc(known, func(g growing) bool { return g.process == t.process && len(g.shares) == 1 }); first >= 0 {
				known[first].whole = t.Slope
				continue
			}
		}
		g := growing{process: t.process, slope: t.Slope, half: t.Half, points: t.Points, kept: t.kept, keptHalf: t.keptHalf,
			source: t.source, label: in.labelOf(t.source), minutes: t.minutes}
		if t.source == "rss" {
			g.slope -= explained[t.process]
		}
		g.shares = []share{{t.process, t.device, g.slope}}
		g.holder = in.holderOfTotal(t)
		g.graph = g.holder != nil && keepsGraph(*g.holder)
		out = append(out, g)
	}
	return merged(out)
}
