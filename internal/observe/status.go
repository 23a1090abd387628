package observe

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Status is the run in brief, for a status line.
type Status struct {
	Elapsed   int64 // ns
	Processes int
	Steps     uint64
	Phase     mem.Phase    // of the process that takes the steps
	RSS, PSS  mem.Optional // of the tree
	PeakRSS   mem.Optional
	Heap      mem.Optional // sampled live, of all processes
	Device    mem.Optional // bytes in use, fullest device
	PerStep   mem.Optional // growth in bytes
	Compiling Compiling    // of the process that has been at it longest
	Dropped   uint64
	Busiest   []ProcessStatus // largest first, at most 8
}

// EventName implements event.Event.
func (Status) EventName() string { return "status" }

// Compiling is a compiler at work, before which a program takes no step.
type Compiling struct {
	Since   int64 // ns since when, as the recording's times are; 0: it is not
	For     int64 // ns
	Kernels int64 // that it has made so far
}

// told takes in what an agent says.
func (c *Compiling) told(on bool, kernels, at int64) {
	if !on {
		*c = Compiling{}
		return
	}
	if c.Since == 0 {
		c.Since = at
	}
	c.Kernels = kernels
}

// ProcessStatus is one line of the live view.
type ProcessStatus struct {
	Process mem.Process
	RSS     mem.Optional
	Heap    mem.Optional
	Steps   uint64
	Phase   mem.Phase
}

// peaks are the high-water marks so far.
type peaks struct {
	rss mem.Optional
}

// observe keeps what the status line and the alerts need of a new sample.
func (r *Recorder) observe(key seriesKey, time, value int64) {
	switch key.name {
	case mem.SeriesTreeRSS:
		r.peaks.rss.Raise(mem.Some(value))
	case mem.SeriesCgroupOOMKill:
		if r.killed >= 0 {
			r.kills += max(0, value-r.killed)
		}
		r.killed = value
	case mem.SeriesCgroupLimit:
		if key.process == 0 && value > 0 && !r.info.Host.Limit.Known() {
			r.info.Host.Limit = mem.Some(value)
			r.emit(r.info)
		}
	}
	r.alert(key, time, value)
}

func (r *Recorder) status(now int64) Status {
	s := Status{Elapsed: now - r.info.StartMono, Steps: r.steps(), PeakRSS: r.peaks.rss}
	s.RSS = r.last(seriesKey{name: mem.SeriesTreeRSS})
	s.PSS = r.last(seriesKey{name: mem.SeriesTreePSS})
	for key, value := range r.latest {
		if key.process == 0 && key.name == mem.SeriesDeviceUsed {
			s.Device.Raise(mem.Some(value))
		}
	}
	for _, p := range r.order {
		for _, d := range p.dropped {
			s.Dropped += d.Records
		}
		if p.gone {
			continue
		}
		s.Processes++
		if c := p.compiling; c.Since != 0 && (s.Compiling.Since == 0 || c.Since < s.Compiling.Since) {
			c.For = max(0, now-c.Since)
			s.Compiling = c
		}
		line := ProcessStatus{Process: p.Process, RSS: p.rss, Steps: p.steps.total.Steps, Phase: p.spans.phase()}
		if p.heap != nil {
			line.Heap = mem.Some(int64(p.heap.live))
			s.Heap = mem.Some(s.Heap.Or(0) + int64(p.heap.live))
		}
		if line.Steps > 0 && line.Steps == s.Steps {
			s.Phase = line.Phase
			if slope, ok := p.growth.perStep(); ok {
				s.PerStep = mem.Some(int64(slope))
			}
		}
		s.Busiest = append(s.Busiest, line)
	}
	s.Busiest = largest(s.Busiest, 8)
	return s
}

func (r *Recorder) last(key seriesKey) mem.Optional {
	if value, ok := r.latest[key]; ok {
		return mem.Some(value)
	}
	return mem.Optional{}
}

func largest(lines []ProcessStatus, n int) []ProcessStatus {
	slices.SortStableFunc(lines, func(a, b ProcessStatus) int { return cmp.Compare(b.RSS.Or(0), a.RSS.Or(0)) })
	return lines[:min(n, len(lines))]
}
