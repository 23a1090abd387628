package matrix

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Measure reads the figures of a trial off its recording and the report on it, which may be nil. What was not
// recorded is absent. Steps up to warmup do not count for the time of a step; all else is of the whole trial.
func Measure(run *mem.Run, r *report.Report, warmup int) map[Figure]Summary {
	m := &measuring{run, map[Figure]Summary{}}
	imagined := run.Info.Label == mem.Imagined
	m.series(RSS, mem.SeriesTreeRSS)
	m.series(PSS, mem.SeriesTreePSS)
	m.summed(VMS, mem.SeriesVMS)
	m.summed(Swap, mem.SeriesSwap)
	m.counted(MinorFaults, mem.SeriesMinorFaults)
	m.counted(MajorFaults, mem.SeriesMajorFaults)
	m.cpu()
	m.summed(Allocated, mem.SeriesAllocated)
	m.summed(Reserved, mem.SeriesReserved)
	m.summed(DeviceUsed, mem.SeriesDeviceUsed)
	m.summedOver(DeviceUsed, mem.SeriesDeviceProcess)
	if !imagined {
		m.steps(warmup)
	}
	m.parameters()
	m.headline(r)
	m.marks()
	return m.figures
}

type measuring struct {
	run     *mem.Run
	figures map[Figure]Summary
}

// series takes one that is of the whole process tree.
func (m *measuring) series(to Figure, name mem.Quantity) {
	if s := m.run.Find(0, name); s != nil {
		m.putFigure(to, s.Values, s.Label)
	}
}

func (m *measuring) putFigure(to Figure, values []int64, label mem.Label) {
	if len(values) > 0 {
		m.figures[to] = summarize(values, label)
	}
}

// summedOver is summed where a figure is not there yet.
func (m *measuring) summedOver(to Figure, name mem.Quantity) {
	if _, known := m.figures[to]; !known {
		m.summed(to, name)
	}
}

// summed adds up a quantity over all processes and devices that have it, at each moment at which one of them was read.
func (m *measuring) summed(to Figure, name mem.Quantity) {
	if _, values, label := sums(m.run, name); len(values) > 0 {
		m.putFigure(to, values, label)
	}
}

// sums are a quantity of all processes and devices together, at each moment at which one of them was read.
func sums(run *mem.Run, name mem.Quantity) (times, values []int64, label mem.Label) {
	var all []*mem.Series
	for _, s := range run.Series {
		if s.Name == name && len(s.Times) > 0 {
			all = append(all, s)
			times = append(times, s.Times...)
		}
	}
	switch len(all) {
	case 0:
		return nil, nil, ""
	case 1:
		return times, all[0].Values, all[0].Label
	}
	slices.Sort(times)
	times = slices.Compact(times)
	values = make([]int64, len(times))
	for _, s := range all {
		ended := int64(math.MaxInt64)
		if p := run.Process(s.Process); p != nil {
			ended = p.End.Or(math.MaxInt64)
		}
		at := 0
		for i, time := range times {
			for at < len(s.Times) && s.Times[at] <= time {
				at++
			}
			if at > 0 && time < ended {
				values[i] += s.Values[at-1]
			}
		}
	}
	return times, values, all[0].Label
}

// counted adds up what was counted in each process by its end.
func (m *measuring) counted(to Figure, name mem.Quantity) {
	total, label, found := int64(0), mem.Measured, false
	for _, s := range m.run.Series {
		if n := len(s.Values); s.Name == name && n > 0 {
			total, label, found = total+s.Values[n-1], s.Label, true
		}
	}
	if found {
		m.figures[to] = exactly(total, label)
	}
}

// exactly is the summary of a figure that there is one of.
func exactly(value int64, label mem.Label) Summary {
	return Summary{Max: value, Min: value, Mean: float64(value), Median: float64(value), Count: 1, Label: label}
}

// cpu is how many thousandths of a processor were used between any two readings of a process, of all processes
// together.
func (m *measuring) cpu() {
	used := map[int64]int64{} // ns of processor time by the end of a stretch
	var times []int64
	for _, s := range m.run.Series {
		if s.Name != mem.SeriesCPU {
			continue
		}
		before := int64(0)
		for i, time := range s.Times {
			if _, seen := used[time]; !seen {
				times = append(times, time)
			}
			used[time] += s.Values[i] - before
			before = s.Values[i]
		}
	}
	slices.Sort(times)
	before := m.run.Start()
	var shares []int64
	total, first := int64(0), before
	for _, time := range times {
		total += used[time]
		if time > before {
			shares = append(shares, used[time]*1000/(time-before))
		}
		before = time
	}
	if len(shares) == 0 {
		return
	}
	summary := summarize(shares, mem.Measured)
	summary.Mean = float64(total) * 1000 / float64(before-first) // stretches are of different length
	m.figures[CPU] = summary
}

// steps are those of the process that took the most.
func (m *measuring) steps(warmup int) {
	var leader uint32
	for id, total := range m.run.Totals {
		if best := m.run.Totals[leader].Steps; total.Steps > best || total.Steps == best && id < leader {
			leader = id
		}
	}
	var took []int64
	for _, step := range m.run.Steps {
		if step.Process == leader && step.Number > uint64(warmup) && step.Duration > 0 {
			took = append(took, step.Duration)
		}
	}
	m.putFigure(StepTime, took, mem.Measured)
}

// parameters is what a program says its model has, as a fact.
func (m *measuring) parameters() {
	for _, p := range m.run.Processes {
		if n, ok := p.Number(mem.NumberParameters).Get(); ok && n >= 0 {
			m.figures[Parameters] = exactly(n, mem.Measured)
		}
	}
}

// headline takes over peaks that the report knows better than samples do: between two of them, or to the byte.
func (m *measuring) headline(r *report.Report) {
	if r == nil {
		return
	}
	p := &r.Headline.Peak
	label := cmp.Or(p.Label, mem.Measured)
	if v := r.Imagined; v != nil {
		m.peak(Allocated, v.Allocated, mem.Imagined)
		m.peak(Reserved, v.Reserved, mem.Imagined)
		m.peak(DeviceUsed, v.Used, mem.Imagined)
	} else {
		m.peak(Allocated, p.Allocated, label)
		m.peak(Reserved, p.Reserved, label)
		m.peak(DeviceUsed, p.DeviceUsed, label)
	}
	m.peak(RSS, p.HostRSS, mem.Measured)
	if peak, ok := p.HostPSS.Get(); ok {
		pss, known := m.figures[PSS]
		if !known {
			pss = exactly(peak, mem.Estimated)
		}
		pss.Max, pss.Error = peak, p.PSSError.Or(0)
		m.figures[PSS] = pss
	}
}

// marks raises RSS to what the kernel saw of any process: one may have ended before the first look at it.
func (m *measuring) marks() {
	for _, p := range m.run.Processes {
		m.peak(RSS, p.MaxRSS, mem.Measured)
	}
}

// peak raises the largest value of a figure.
func (m *measuring) peak(to Figure, peak mem.Optional, label mem.Label) {
	value, ok := peak.Get()
	if !ok {
		return
	}
	summary, known := m.figures[to]
	if !known {
		summary = exactly(value, label)
	}
	summary.Max = max(summary.Max, value)
	m.figures[to] = summary
}

// summarize puts samples into one line.
func summarize(values []int64, label mem.Label) Summary {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	s := Summary{Max: sorted[n-1], Min: sorted[0], Count: n, Label: label}
	for _, v := range sorted {
		s.Mean += float64(v) / float64(n)
	}
	for _, v := range sorted {
		s.StdDev += (float64(v) - s.Mean) * (float64(v) - s.Mean)
	}
	if n > 1 {
		s.StdDev = math.Sqrt(s.StdDev / float64(n-1))
	}
	s.Median = (float64(sorted[(n-1)/2]) + float64(sorted[n/2])) / 2
	return s
}
