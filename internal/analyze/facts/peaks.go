package facts

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// peaks are the high-water marks, and when the leading one was, in which phase and step.
func (in *Facts) peaks() report.Peak {
	p := in.devicePeaks()
	p.HostRSS, p.Process, p.AtLeast, p.Label = in.HostPeak(), in.Lead.Process, in.Figure.AtLeast, in.Label()
	p.HostPSS, p.PSSError = in.sharedPeak()
	for process := range in.Histories {
		p.Heap = p.Heap.Plus(in.HeapPeak(process))
	}
	if in.Lead.Series != nil {
		in.place(&p)
	}
	if in.Verdict != nil {
		imagined.Place(in.Verdict, p)
	}
	return p
}

// place says when the leading curve was highest, in which process, phase and step.
func (in *Facts) place(p *report.Peak) {
	at := in.Lead.Series.Times[in.Lead.Series.Peak()]
	p.Process = in.LargestAt(at, in.Lead)
	if in.seen(p, in.Lead) {
		p.Time = mem.Some(in.Since(at))
		p.Phase, p.Step = in.PhaseAt(p.Process, at)
	}
}

// devicePeaks are the high-water marks on devices, added up over processes and devices. Of an imagined run they are at
// least what the devices' tables tell: a moment between two samples is no less one.
func (in *Facts) devicePeaks() report.Peak {
	p := report.Peak{DeviceUsed: in.devicePeak(), Allocated: in.sumOfPeaks(mem.SeriesAllocated),
		Reserved: in.sumOfPeaks(mem.SeriesReserved)}
	if in.Verdict != nil {
		imagined.Raise(in.Verdict, &p)
	}
	return p
}

// seen says whether the leading curve has the peak. The kernel's mark of a process can be of a time that is not
// recorded.
func (in *Facts) seen(p *report.Peak, l Lead) bool {
	return l.Name != mem.SeriesTreeRSS || float64(p.HostRSS.Or(0)) <= unseenPart*float64(l.Series.Values[l.Series.Peak()])
}

// unseenPart is how far a mark may be above the curve and still be of its highest point.
const unseenPart = 1.005

func (in *Facts) Label() mem.Label {
	return cmp.Or(in.Run.Info.Label, mem.Measured)
}

// HeapPeak is the highest of a process's sampled heap, absent where it was not sampled. The picture of the peak is
// exact once the run has ended. Readings may be higher: they were taken before it was known what is not resident.
func (in *Facts) HeapPeak(process uint32) mem.Optional {
	h := in.Histories[process]
	if h == nil {
		return mem.Optional{}
	}
	high := mem.Some(int64(h.Peak.Bytes))
	if in.Run.End != nil && in.Run.Heap[process].Peak != nil {
		return high
	}
	for _, at := range in.Run.Heap[process].History { // the picture of the peak is not made anew for a little more
		high.Raise(mem.Some(int64(at.Live)))
	}
	return high
}

// HostPeak is the highest RSS of the process tree. The kernel's own high-water mark of one process
// is never missed by sampling, so the peak is at least that.
func (in *Facts) HostPeak() mem.Optional {
	high := in.MaxOf(0, mem.SeriesTreeRSS)
	for _, p := range in.Run.Processes {
		high.Raise(in.MaxOf(p.ID, mem.SeriesRSS))
		high.Raise(p.MaxRSS)
	}
	return high
}

// sharedPeak is the highest of what the processes took together, pages that several shared counted once, and how far
// that may be off.
func (in *Facts) sharedPeak() (peak, half mem.Optional) {
	if in.Find(0, mem.SeriesTreePSS) == nil {
		return peak, half
	}
	return mem.Some(in.PSSPeak.Bytes), mem.Some(in.PSSPeak.Half)
}

// devicePeak adds up the peaks of the devices' own figures; where only processes were seen, theirs.
func (in *Facts) devicePeak() mem.Optional {
	return cmp.Or(in.sumOfPeaks(mem.SeriesDeviceUsed), in.sumOfPeaks(mem.SeriesDeviceProcess))
}

// sumOfPeaks adds the peaks of all series of a name, over processes and devices.
func (in *Facts) sumOfPeaks(name mem.Quantity) mem.Optional {
	var sum mem.Optional
	for _, s := range in.Run.Series {
		if s.Name == name && len(s.Values) > 0 {
			sum = sum.Plus(mem.Some(s.Values[s.Peak()]))
		}
	}
	return sum
}

// leadingSeries: a device where one was used, else the host memory of the tree, else of the leader.
func (in *Facts) leadingSeries() Lead {
	names := []mem.Quantity{mem.SeriesReserved, mem.SeriesAllocated, mem.SeriesDeviceProcess}
	// the device table tells each peak; samples of the allocator are too seldom where kernels take no time
	if in.Label() == mem.Imagined {
		names = []mem.Quantity{mem.SeriesDeviceProcess, mem.SeriesReserved, mem.SeriesAllocated}
	}
	for _, name := range names {
		var best Lead
		for _, s := range in.Run.Series {
			if s.Name != name || len(s.Values) == 0 || s.Values[s.Peak()] == 0 {
				continue
			}
			if best.Series == nil || s.Values[s.Peak()] > best.Series.Values[best.Series.Peak()] {
				best = Lead{name, s.Process, s}
			}
		}
		if best.Series != nil {
			return best
		}
	}
	if s := in.Find(0, mem.SeriesTreePSS); s != nil && len(in.Run.Processes) > 1 { // of one alone it says less than RSS
		return Lead{s.Name, 0, s}
	}
	if s := in.Find(0, mem.SeriesTreeRSS); s != nil {
		return Lead{s.Name, 0, s}
	}
	if s := in.Find(in.Leader, mem.SeriesRSS); s != nil {
		return Lead{s.Name, in.Leader, s}
	}
	if s := in.FullestDevice(); s != nil {
		return Lead{s.Name, 0, s}
	}
	return Lead{mem.SeriesTreeRSS, in.Leader, nil}
}

// FullestDevice is the use of the device that had most in use, by whichever programs; nil where none was read.
func (in *Facts) FullestDevice() (fullest *mem.Series) {
	for _, s := range in.Run.Series {
		if s.Name == mem.SeriesDeviceUsed && len(s.Values) > 0 &&
			(fullest == nil || s.Values[s.Peak()] > fullest.Values[fullest.Peak()]) {
			fullest = s
		}
	}
	return fullest
}

// LargestAt is the process that held most at a moment.
func (in *Facts) LargestAt(at int64, l Lead) uint32 {
	if l.Process != 0 {
		return l.Process
	}
	best, most := in.Leader, int64(-1)
	for _, p := range in.Run.Processes {
		if p.Start > at || p.End.Or(at) < at {
			continue
		}
		if s := in.Find(p.ID, mem.SeriesRSS); s != nil {
			if v := s.At(at).Or(-1); v > most {
				best, most = p.ID, v
			}
		}
	}
	return best
}

// PhaseAt is what a process was doing at a moment, and after how many steps. Where the span around
// the moment was thinned away, the same moment of the nearest kept step has the answer.
func (in *Facts) PhaseAt(process uint32, at int64) (mem.Phase, mem.Optional) {
	stepper := in.stepper(process)
	var step mem.Optional
	if c := in.ClockOf(process); !c.Minutes && at >= c.Times[0]-in.firstDuration(stepper) &&
		at <= c.Times[len(c.Times)-1] {
		step = mem.Some(int64(c.At(at)))
	}
	phase, depth := mem.PhaseNone, int64(-1)
	for s := range in.Run.Spans.Around(at) {
		if s.Process != stepper || s.Phase == mem.PhaseModule || s.Phase == mem.PhaseUser {
			continue
		}
		if depth < 0 || s.End-s.Start < depth {
			phase, depth = s.Phase, s.End-s.Start
			step = mem.Some(int64(s.Step))
		}
	}
	return phase, step
}

func (in *Facts) firstDuration(process uint32) int64 {
	if steps := in.Steps[process]; len(steps) > 1 {
		return steps[1].Duration
	}
	return 0
}

// RSSAt is the RSS of a process at a moment.
func (in *Facts) RSSAt(process uint32, at int64) (int64, bool) {
	s := in.Find(process, mem.SeriesRSS)
	if s == nil {
		return 0, false
	}
	return s.At(at).Get()
}

// mostHeap is what a heap held at most, by the picture of its peak, which is exact once the run has ended.
func (in *Facts) mostHeap(h *mem.Heap) mem.Bytes {
	if h.Peak != nil && in.Run.End != nil {
		return h.Peak.Live
	}
	return math.MaxInt64
}

// WithUntouched says whether a reading of a heap is from before it was known that pages of it are not resident.
func (in *Facts) WithUntouched(process uint32, p mem.HeapPoint) bool {
	rss, ok := in.rssAround(process, p.Time)
	return ok && int64(p.Live) > rss || p.Live > in.mostHeap(in.Run.Heap[process])
}

// rssAround is the higher of the readings of RSS before and after a moment: the heap may have grown since the one
// before. Not ok: none came after.
func (in *Facts) rssAround(process uint32, at int64) (highest int64, ok bool) {
	s := in.Find(process, mem.SeriesRSS)
	if s == nil {
		return 0, false
	}
	next := sort.Search(len(s.Times), func(i int) bool { return s.Times[i] >= at })
	if next == len(s.Times) {
		return 0, false
	}
	return max(s.Values[next], s.Values[max(next-1, 0)]), true
}

// HeapAt is the sampled heap of a process around a moment. It is the highest point of the second before
// it, since a process that ends right after its peak has freed its heap by the next reading. Else it is
// the point nearest to it. One with far more than was resident has blocks that the kernel was not asked about yet:
// another one is better.
func (in *Facts) HeapAt(process uint32, at, rss int64) (mem.HeapPoint, bool) {
	h := in.Run.Heap[process]
	if h == nil {
		return mem.HeapPoint{}, false
	}
	found, best := mem.HeapPoint{}, int64(-1)
	most := in.mostHeap(h)
	above := func(p mem.HeapPoint) bool { return int64(p.Live) > rss+rss/8 || p.Live > most }
	consider := func(p mem.HeapPoint) {
		d := max(p.Time-at, at-p.Time)
		if before := at - p.Time; before >= 0 && before < int64(time.Second) {
			d = 0
		}
		if best < 0 || d < best || d == best && (above(found) && !above(p) ||
			above(found) == above(p) && p.Live > found.Live) {
			found, best = p, d
		}
	}
	for _, p := range h.History {
		consider(p)
	}
	if h.Peak != nil {
		consider(mem.HeapPoint{Time: h.Peak.Time, Step: h.Peak.Step, Live: h.Peak.Live, Variance: h.Peak.Variance,
			Absent: h.Peak.Absent})
	}
	found.Live = min(found.Live, most)
	return found, best >= 0
}

// AllocatedBy is what a process allocated on its devices, each at its peak: as the process itself said at the end
// of an imagined run, else the highest sample. A process that used no device has none.
func (in *Facts) AllocatedBy(process uint32) mem.Optional {
	return in.PeakOnDevices(process, mem.SeriesAllocated, func(p mem.DevicePeak) mem.Optional { return p.Allocated })
}

// PeakOnDevices sums the peaks of a quantity over the devices of a process.
func (in *Facts) PeakOnDevices(process uint32, name mem.Quantity,
	imagined func(mem.DevicePeak) mem.Optional) mem.Optional {
	peaks := map[string]mem.Optional{}
	for _, s := range in.Run.Series {
		if s.Process == process && s.Name == name && len(s.Values) > 0 {
			peaks[s.Device] = mem.Some(peaks[s.Device].Or(0) + s.Values[s.Peak()]) // each framework's allocator has its own
		}
	}
	for _, p := range in.Run.Imagined.Peaks {
		if p.Process == process {
			peak := peaks[p.Device]
			peak.Raise(imagined(p))
			peaks[p.Device] = peak
		}
	}
	var sum mem.Optional
	for _, peak := range peaks {
		sum = sum.Plus(peak)
	}
	return NonZero(sum)
}

// ProcessPeak is the highest RSS of a process: of the samples, and the kernel's own mark.
func (in *Facts) ProcessPeak(p *mem.Process) mem.Optional {
	high := p.MaxRSS
	high.Raise(in.MaxOf(p.ID, mem.SeriesRSS))
	return high
}

// NonZero leaves out a zero that says nothing.
func NonZero(o mem.Optional) mem.Optional {
	if o.Or(0) == 0 {
		return mem.Optional{}
	}
	return o
}

// StepTime is the median time of a step.
func (in *Facts) StepTime(process uint32) mem.Optional {
	var durations []int64
	for _, s := range in.Steps[process] {
		if s.Duration > 0 {
			durations = append(durations, s.Duration)
		}
	}
	if len(durations) == 0 {
		return mem.Optional{}
	}
	slices.Sort(durations)
	return mem.Some(durations[len(durations)/2])
}
