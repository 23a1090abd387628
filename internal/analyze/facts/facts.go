package facts

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Facts are a run with what several analyses look up in it. Once made, nothing in them changes.
type Facts struct {
	Run *mem.Run

	Start, End int64                 // monotonic ns
	Leader     uint32                // the process whose steps count the run
	Steps      map[uint32][]mem.Step // by process, in order of time
	Names      *usage.Names
	Histories  map[uint32]*usage.History // of sampled heaps, by process
	PSSPeak    PSSPeak
	Lead       Lead
	Verdict    *report.Imagined // of an imagined run; nil of another
	Figure     mem.Figure       // the one by which the run is known
	Peak       report.Peak
	ShortLived int // processes that lived so shortly that they may have taken more than the figure

	clocks map[uint32]*Clock
	series map[seriesKey]*mem.Series          // the first device of each
	line   func(file string, line int) string // the text of a line of the program; nil: of none it is known
}

type seriesKey struct {
	process uint32
	name    mem.Quantity
}

// Until are the facts of a run as if it had ended at a moment.
func (in *Facts) Until(end int64) *Facts {
	then := *in
	then.End = min(end, in.End)
	return &then
}

// lastMoment is when the run ended, or the last thing that was seen of it.
func (in *Facts) lastMoment() int64 {
	if in.Run.End != nil {
		return max(in.Run.End.Time, in.Start)
	}
	last := in.Start
	for _, s := range in.Run.Series {
		if n := len(s.Times); n > 0 {
			last = max(last, s.Times[n-1])
		}
	}
	for _, e := range in.Run.Events {
		last = max(last, e.Time)
	}
	for _, steps := range in.Steps {
		last = max(last, steps[len(steps)-1].Time)
	}
	return last
}

// findLeader is the process whose steps count the run: the one with most of them, then the one that
// took most memory.
func (in *Facts) findLeader() uint32 {
	best, bestSteps, bestRSS := uint32(0), uint64(0), int64(-1)
	for _, p := range in.Run.Processes {
		steps := in.Run.Totals[p.ID].Steps
		rss := in.MaxOf(p.ID, mem.SeriesRSS).Or(p.MaxRSS.Or(0))
		if best == 0 || steps > bestSteps || steps == bestSteps && rss > bestRSS {
			best, bestSteps, bestRSS = p.ID, steps, rss
		}
	}
	return best
}

// Find returns a series with samples, or nil.
func (in *Facts) Find(process uint32, name mem.Quantity) *mem.Series {
	return in.series[seriesKey{process, name}]
}

// MaxOf is the largest value of a series.
func (in *Facts) MaxOf(process uint32, name mem.Quantity) mem.Optional {
	s := in.Find(process, name)
	if s == nil {
		return mem.Optional{}
	}
	return mem.Some(s.Values[s.Peak()])
}

// LastOf is the newest value of a series.
func (in *Facts) LastOf(process uint32, name mem.Quantity) mem.Optional {
	s := in.Find(process, name)
	if s == nil {
		return mem.Optional{}
	}
	return mem.Some(s.Values[len(s.Values)-1])
}

// Since is a moment as people count it: from the beginning of the run.
func (in *Facts) Since(t int64) int64 { return max(t-in.Start, 0) }

// Attached says whether the process ran before the recording.
func (in *Facts) Attached() bool { return in.Run.Info.Verb == "attach" }

// Beginning is what times are counted from, in a sentence.
func (in *Facts) Beginning() string {
	if in.Attached() {
		return "the recording began"
	}
	return "the start"
}

// ProcessName is what a process is called in a sentence.
func (in *Facts) ProcessName(id uint32) string { return ProcessName(in.Run.Process(id)) }

// Turns are the steps of the run, or its minutes.
func (in *Facts) Turns(minutes bool) float64 {
	if minutes {
		return float64(in.End-in.Start) / 60e9
	}
	return float64(in.Run.StepCount())
}

// Whose is a process's name for a table of several; "" where there is only one.
func (in *Facts) Whose(id uint32, several bool) string {
	if !several {
		return ""
	}
	return in.ProcessName(id)
}

func ProcessName(p *mem.Process) string {
	switch {
	case p == nil:
		return "all processes"
	case p.Rank.Known():
		return p.RankName()
	case p.Role == "dataloader":
		return "DataLoader worker (pid " + itoa(int64(p.PID)) + ")"
	case p.Role == "main" && p.Parent != 0: // a script's program: the script itself is another one's main
		return "main (pid " + itoa(int64(p.PID)) + ")"
	case p.Role == "main", p.Role == "launcher":
		return p.Role
	}
	return "pid " + itoa(int64(p.PID))
}

// ProcessKind is what processes that do the same are called together: their numbers differ from run to run.
func ProcessKind(p *mem.Process) string {
	switch {
	case p.Rank.Known():
		return p.RankName()
	case p.Role == "dataloader":
		return "DataLoader workers"
	case p.Role == "main", p.Role == "launcher":
		return p.Role + " process"
	}
	return "other processes"
}

// Clock maps moments of one process to the steps of the training, or to minutes where there are no
// Steps.
type Clock struct {
	Times   []int64
	Steps   []float64
	Minutes bool
	start   int64
	ending  mem.Optional // from when on the process only gives back, in minutes
}

// ClockOf is the clock by which a process's memory is looked at: its own steps; else those of the
// process it works for (a DataLoader worker has none); else minutes.
func (in *Facts) ClockOf(id uint32) *Clock {
	if c := in.clocks[id]; c != nil {
		return c
	}
	return in.newClock(id)
}

func (in *Facts) newClock(id uint32) *Clock {
	stepper := in.stepper(id)
	c := &Clock{start: in.Start}
	for _, s := range in.Steps[stepper] {
		if n := len(c.Steps); n > 0 && float64(s.Number) <= c.Steps[n-1] {
			continue // a counter that began again, or one frame twice
		}
		c.Times = append(c.Times, s.Time)
		c.Steps = append(c.Steps, float64(s.Number))
	}
	if len(c.Times) < 2 {
		c.Minutes, c.ending = true, in.ending(id)
	}
	return c
}

// endingShare is the last part of a process's life in which a fall from its peak is of its end: a function returns, a
// pool is closed.
const endingShare = 0.03

// ending is from when on a process that has ended only gave back.
func (in *Facts) ending(id uint32) mem.Optional {
	p, s := in.Run.Process(id), in.Find(id, mem.SeriesRSS)
	if p == nil || s == nil || !p.Bye.Known() && !p.End.Known() || len(s.Times) < 2 {
		return mem.Optional{}
	}
	highest, last := 0, len(s.Times)-1
	for i, v := range s.Values {
		if v >= s.Values[highest] {
			highest = i
		}
	}
	if highest == last || float64(s.Times[last]-s.Times[highest]) > endingShare*float64(s.Times[last]-s.Times[0]) {
		return mem.Optional{}
	}
	return mem.Some(s.Times[highest])
}

// stepper is the process whose steps drive this one: itself, its nearest ancestor, or the leader.
func (in *Facts) stepper(id uint32) uint32 {
	for at, hops := id, 0; at != 0 && hops < 64; hops++ {
		if len(in.Steps[at]) >= 2 {
			return at
		}
		p := in.Run.Process(at)
		if p == nil {
			break
		}
		at = p.Parent
	}
	return in.Leader
}

// At is the step (or minute) of a moment, with its fraction.
func (c *Clock) At(t int64) float64 {
	if c.Minutes {
		return float64(t-c.start) / float64(time.Minute)
	}
	i := sort.Search(len(c.Times), func(i int) bool { return c.Times[i] >= t })
	switch {
	case i == 0:
		return c.Steps[0]
	case i == len(c.Times):
		return c.Steps[i-1]
	}
	t0, t1 := c.Times[i-1], c.Times[i]
	if t1 == t0 {
		return c.Steps[i]
	}
	return c.Steps[i-1] + (c.Steps[i]-c.Steps[i-1])*float64(t-t0)/float64(t1-t0)
}

// GivesBackAtItsEnd says that the process freed memory in its last moments, after its peak.
func (c *Clock) GivesBackAtItsEnd() bool { return c.ending.Known() }

// Window is when the clock runs: from the first to the last step, or the life of the process up to its ending.
func (c *Clock) Window(p *mem.Process, end int64) (from, to int64) {
	from, to = c.start, c.ending.Or(end)
	if !c.Minutes {
		from, to = c.Times[0], c.Times[len(c.Times)-1]
	}
	if p != nil {
		from = max(from, p.Start)
		to = min(to, p.Bye.Or(p.End.Or(end)))
	}
	return from, min(to, end)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Source is the text of a line, cut to what fits a sentence; "" where it is not known.
func (in *Facts) Source(l mem.Location) string {
	if in.line == nil || l.Native || l.Line == 0 {
		return ""
	}
	text := strings.TrimSpace(in.line(l.File, l.Line))
	if at := strings.Index(text, "  #"); at > 0 {
		text = strings.TrimSpace(text[:at])
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:59]) + "…"
	}
	return strings.ReplaceAll(text, "`", "'")
}

// PSSPeak is the highest PSS of the tree, and how far it may be off to either side.
type PSSPeak struct{ Bytes, Half int64 }

// Lead is the series that the picture leads with.
type Lead struct {
	Name    mem.Quantity
	Process uint32
	Series  *mem.Series
}

// MemoryOf is what a device has in all, by the name that series have it under.
func (in *Facts) MemoryOf(device string) mem.Optional {
	for _, gpu := range in.Run.Info.Host.GPUs {
		if device == gpu.Name || device == fmt.Sprintf("gpu:%d", gpu.Index) {
			return gpu.Memory
		}
	}
	return mem.Optional{}
}
