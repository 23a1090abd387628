package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// peak finds the high-water marks, when the leading one was, in which phase and step, and what it
// was made of.
func peak(in *Input, r *report.Report) {
	p := report.Peak{
		HostRSS: in.hostPeak(), DeviceUsed: in.devicePeak(), Allocated: in.sumOfPeaks(mem.SeriesAllocated),
		Reserved: in.sumOfPeaks(mem.SeriesReserved),
		Label:    in.label(),
	}
	p.HostPSS, p.PSSError = in.sharedPeak()
	for process := range in.histories {
		p.Heap = p.Heap.Plus(in.heapPeak(process))
	}
	lead := in.leadingSeries()
	r.Headline.MainSource = lead.name
	p.Process = lead.process
	r.Headline.Figure = in.figure(r.Imagined)
	p.AtLeast = r.Headline.Figure.AtLeast
	if lead.series != nil {
		at := lead.series.Times[lead.series.Peak()]
		p.Process = in.largestAt(at, lead)
		if in.seen(&p, lead) {
			p.Time = mem.Some(in.since(at))
			p.Phase, p.Step = in.phaseAt(p.Process, at)
		}
		r.Headline.Peak = p
		in.composition(r, at, lead)
		return
	}
	r.Headline.Peak = p
}

// seen says whether the leading curve has the peak. The kernel's mark of a process can be of a time that is not
// recorded.
func (in *Input) seen(p *report.Peak, l lead) bool {
	return l.name != mem.SeriesTreeRSS || float64(p.HostRSS.Or(0)) <= unseenPart*float64(l.series.Values[l.series.Peak()])
}

// unseenPart is how far a mark may be above the curve and still be of its highest point.
const unseenPart = 1.005

func (in *Input) label() mem.Label {
	return cmp.Or(in.Run.Info.Label, mem.Measured)
}

// heapPeak is the highest of a process's sampled heap, absent where it was not sampled.
func (in *Input) heapPeak(process uint32) mem.Optional {
	h := in.histories[process]
	if h == nil {
		return mem.Optional{}
	}
	high := mem.Some(int64(h.Peak.Bytes))
	for _, at := range in.Run.Heap[process].History { // the picture of the peak is not made anew for a little more
		high.Raise(mem.Some(int64(at.Live)))
	}
	return high
}

// hostPeak is the highest RSS of the process tree. The kernel's own high-water mark of one process
// is never missed by sampling, so the peak is at least that.
func (in *Input) hostPeak() mem.Optional {
	high := in.maxOf(0, mem.SeriesTreeRSS)
	for _, p := range in.Run.Processes {
		high.Raise(in.maxOf(p.ID, mem.SeriesRSS))
		high.Raise(p.MaxRSS)
	}
	return high
}

// sharedPeak is the highest of what the processes took together, pages that several shared counted once, and how far
// that may be off.
func (in *Input) sharedPeak() (peak, half mem.Optional) {
	if in.find(0, mem.SeriesTreePSS) == nil {
		return peak, half
	}
	return mem.Some(in.pssPeak.bytes), mem.Some(in.pssPeak.half)
}

// devicePeak adds up the peaks of the devices' own figures; where only processes were seen, theirs.
func (in *Input) devicePeak() mem.Optional {
	return cmp.Or(in.sumOfPeaks(mem.SeriesDeviceUsed), in.sumOfPeaks(mem.SeriesDeviceProcess))
}

// sumOfPeaks adds the peaks of all series of a name, over processes and devices.
func (in *Input) sumOfPeaks(name mem.Quantity) mem.Optional {
	var sum mem.Optional
	for _, s := range in.Run.Series {
		if s.Name == name && len(s.Values) > 0 {
			sum = sum.Plus(mem.Some(s.Values[s.Peak()]))
		}
	}
	return sum
}

// lead is the series that the picture leads with.
type lead struct {
	name    mem.Quantity
	process uint32
	series  *mem.Series
}

// leadingSeries: a device where one was used, else the host memory of the tree, else of the leader.
func (in *Input) leadingSeries() lead {
	names := []mem.Quantity{mem.SeriesReserved, mem.SeriesAllocated, mem.SeriesDeviceProcess}
	// the device table tells each peak; samples of the allocator are too seldom where kernels take no time
	if in.label() == mem.Imagined {
		names = []mem.Quantity{mem.SeriesDeviceProcess, mem.SeriesReserved, mem.SeriesAllocated}
	}
	for _, name := range names {
		var best lead
		for _, s := range in.Run.Series {
			if s.Name != name || len(s.Values) == 0 || s.Values[s.Peak()] == 0 {
				continue
			}
			if best.series == nil || s.Values[s.Peak()] > best.series.Values[best.series.Peak()] {
				best = lead{name, s.Process, s}
			}
		}
		if best.series != nil {
			return best
		}
	}
	if s := in.find(0, mem.SeriesTreePSS); s != nil && len(in.Run.Processes) > 1 { // of one alone it says less than RSS
		return lead{s.Name, 0, s}
	}
	if s := in.find(0, mem.SeriesTreeRSS); s != nil {
		return lead{s.Name, 0, s}
	}
	if s := in.find(in.leader, mem.SeriesRSS); s != nil {
		return lead{s.Name, in.leader, s}
	}
	if s := in.fullestDevice(); s != nil {
		return lead{s.Name, 0, s}
	}
	return lead{mem.SeriesTreeRSS, in.leader, nil}
}

// fullestDevice is the use of the device that had most in use, by whichever programs; nil where none was read.
func (in *Input) fullestDevice() (fullest *mem.Series) {
	for _, s := range in.Run.Series {
		if s.Name == mem.SeriesDeviceUsed && len(s.Values) > 0 &&
			(fullest == nil || s.Values[s.Peak()] > fullest.Values[fullest.Peak()]) {
			fullest = s
		}
	}
	return fullest
}

// largestAt is the process that held most at a moment.
func (in *Input) largestAt(at int64, l lead) uint32 {
	if l.process != 0 {
		return l.process
	}
	best, most := in.leader, int64(-1)
	for _, p := range in.Run.Processes {
		if p.Start > at || p.End.Or(at) < at {
			continue
		}
		if s := in.find(p.ID, mem.SeriesRSS); s != nil {
			if v := s.At(at).Or(-1); v > most {
				best, most = p.ID, v
			}
		}
	}
	return best
}

// phaseAt is what a process was doing at a moment, and after how many steps. Where the span around
// the moment was thinned away, the same moment of the nearest kept step has the answer.
func (in *Input) phaseAt(process uint32, at int64) (mem.Phase, mem.Optional) {
	stepper := in.stepper(process)
	var step mem.Optional
	if c := in.clockOf(process); !c.minutes && at >= c.times[0]-in.firstDuration(stepper) &&
		at <= c.times[len(c.times)-1] {
		step = mem.Some(int64(c.at(at)))
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

func (in *Input) firstDuration(process uint32) int64 {
	if steps := in.steps[process]; len(steps) > 1 {
		return steps[1].Duration
	}
	return 0
}

// composition says what the peak of the host's memory was made of. The rows add up to the process
// tree; each figure says how it was come by.
func (in *Input) composition(r *report.Report, at int64, l lead) {
	process := in.largestAt(at, lead{})
	if l.process != 0 {
		process = l.process
	}
	rss, ok := in.rssAt(process, at)
	if !ok {
		return
	}
	t := report.Table{
		Name: "composition", Title: fmt.Sprintf("What %s held at the %s", in.processName(process), in.peakName(r)),
		Columns: []report.Column{report.TextColumn("what", "what"), report.BytesColumn("bytes", "bytes", mem.Measured),
			report.BytesColumn("error", "±", mem.Sampled), report.TextColumn("label", "label"), report.TextColumn("part", ""),
			report.TextColumn("kind", "")},
	}
	model := in.modelRows(&t, process)
	rest, label := rss-model, mem.Measured
	if heap, ok := in.heapAt(process, at, rss); ok {
		other := max(min(int64(heap.Live), rss)-model, 0) // what was freed since, or not looked at yet, is not held now
		t.Note = strings.TrimSpace(absentNote(heap.Absent))
		what := "allocations"
		if model > 0 {
			what = "other allocations (activations, data, optimizer's temporaries)"
		}
		addRow(&t, "allocations", "allocations", what, other, int64(usage.Half95(heap.Variance, heap.Live)), mem.Sampled)
		rest, label = rss-model-other, mem.Estimated
	}
	if free := min(in.holesAt(process, at).Or(0), rest); free > 0 {
		addRow(&t, "free", "free inside malloc's arenas", "free inside malloc's arenas: holes between blocks in use", free,
			-1, mem.Estimated)
		rest -= free
	}
	files, shared := in.kindsAt(process, at, rss, rss-rest)
	if files = min(files, rest); files > 0 {
		addRow(&t, "files", "mapped files", "mapped files: libraries, and data read through mmap", files, -1, mem.Measured)
		rest -= files
	}
	if shared = min(shared, rest); shared > 0 {
		addRow(&t, "shared", "shared memory", "shared memory that no line is known of, at least", shared, -1, mem.Measured)
		rest -= shared
	}
	addRow(&t, "rest", "rest", in.restName(process, files > 0), max(rest, 0), -1, label)
	own := len(t.Rows)
	for _, p := range in.Run.Processes {
		if p.ID == process {
			continue
		}
		if v, ok := in.rssAt(p.ID, at); ok && p.Start <= at && p.End.Or(at) >= at {
			addRow(&t, "process", processKind(p), "process "+processName(p)+" (RSS: pages it shares count again)", v, -1,
				mem.Measured)
		}
		if len(t.Rows) > 24 {
			break
		}
	}
	if len(t.Rows) > own {
		t.Title += ", and the other processes"
	}
	r.AddTable(t)
}

// kindsAt is what of a process' resident memory was of mapped files, and what was shared memory beyond all that is
// known by line, explained.
func (in *Input) kindsAt(process uint32, at, rss, explained int64) (files, shared int64) {
	of, all := in.find(process, mem.SeriesRSSFile), in.find(process, mem.SeriesRSS)
	if of == nil {
		return 0, 0
	}
	if _, read := slices.BinarySearch(of.Times, at); !read && all.At(at-1).Or(0) < rss/2 {
		return 0, 0 // the kernel's mark of what it had between two readings: of what kind nobody knows
	}
	files = of.At(at).Or(0)
	if s := in.find(process, mem.SeriesRSSShared); s != nil {
		shared = s.At(at).Or(0) - explained
	}
	return min(files, rss), max(shared, 0)
}

// restName says what the rest may be; files: those of libraries are told apart. What a forked process has of its
// parent it did not allocate: a worker of a DataLoader begins with all that the training had.
func (in *Input) restName(process uint32, files bool) string {
	var parent *mem.Process
	p := in.Run.Process(process)
	if p != nil {
		parent = in.Run.Process(p.Parent)
	}
	switch {
	case parent != nil && !in.attached() && len(p.Command) > 0 && slices.Equal(p.Command, parent.Command):
		return "rest: what a fork left of its parent, interpreter, unexplained"
	case in.attached() && files:
		return "rest: what was there before, unexplained"
	case in.attached():
		return "rest: what was there before, interpreter, libraries, unexplained"
	case files:
		return "rest: interpreter, allocator's own, unexplained"
	}
	return "rest: interpreter, libraries, allocator's own, unexplained"
}

// peakName is what the moment is called that the composition is of.
func (in *Input) peakName(r *report.Report) string {
	if r.Headline.Peak.Time.Known() {
		return "peak"
	}
	return "highest sample"
}

// addRow adds a row; part is what it is called beside another run, where numbers of processes and remarks differ.
func addRow(t *report.Table, kind, part, what string, bytes, half int64, label mem.Label) {
	var e mem.Optional
	if half >= 0 {
		e = mem.Some(half)
	}
	t.Add(what, bytes, e, label, part, kind)
}

// modelRows adds the model's own tensors that live in host memory, and returns their sum.
func (in *Input) modelRows(t *report.Table, process uint32) int64 {
	var sum int64
	for _, m := range in.Run.Models {
		if m.Process != process || m.Device != "cpu" {
			continue
		}
		for _, part := range []struct {
			kind, name string
			bytes      mem.Optional
		}{{"parameters", "model parameters", m.Parameters}, {"gradients", "gradients", m.Gradients},
			{"optimizer", "optimizer state", m.Optimizer}} {
			if v, ok := part.bytes.Get(); ok && v > 0 {
				addRow(t, part.kind, part.name, part.name, v, -1, mem.Measured)
				sum += v
			}
		}
	}
	return sum
}

// rssAt is the RSS of a process at a moment.
func (in *Input) rssAt(process uint32, at int64) (int64, bool) {
	s := in.find(process, mem.SeriesRSS)
	if s == nil {
		return 0, false
	}
	return s.At(at).Get()
}

// absentNote says what is allocated besides, and takes no memory.
func absentNote(absent mem.Bytes) string {
	if absent < mem.MiB {
		return ""
	}
	return fmt.Sprintf(" Another %v are allocated and not resident: never touched, or given back. They take no memory.",
		absent)
}

// heapAt is the sampled heap of a process around a moment. It is the highest point of the second before
// it, since a process that ends right after its peak has freed its heap by the next reading. Else it is
// the point nearest to it. One with far more than was resident has blocks that the kernel was not asked about yet:
// another one is better.
func (in *Input) heapAt(process uint32, at, rss int64) (mem.HeapPoint, bool) {
	h := in.Run.Heap[process]
	if h == nil {
		return mem.HeapPoint{}, false
	}
	found, best := mem.HeapPoint{}, int64(-1)
	above := func(p mem.HeapPoint) bool { return int64(p.Live) > rss+rss/8 }
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
	return found, best >= 0
}
