package analyze

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Input is a run with what several analyses look up in it.
type Input struct {
	Run     *mem.Run
	Options Options

	start, end int64 // monotonic ns
	leader     uint32
	steps      map[uint32][]mem.Step // by process, in order of time
	clocks     map[uint32]*clock
	series     map[seriesKey]*mem.Series // the first device of each
	names      *usage.Names
	histories  map[uint32]*usage.History  // of sampled heaps, by process
	growing    []growing                  // what growth found, for the headline
	cards      []card                     // devices that grow as a whole, likewise
	stopped    []growing                  // what grew and came to rest before the end
	totals     []total                    // processes whose memory grows as a whole, and
	tested     map[uint32][]string        // of what of each process that could be told: "rss", "device"
	leastTold  map[string]float64         // of each of these, the least growth that is told
	failed     map[uint32]*trace.Shortage // by process: the last request that failed, as an allocator recorded it
	alive      map[uint32]string          // by process: what its last profile of a device says of who held most
	larger     []growingLine              // lines that hold more and more and keep nothing
	pssPeak    pssPeak
	first      *deadline // what the program runs out of first; nil: of nothing that was seen to grow

	filesClause string // of the headline: what RSS rose by that is no growth; empty: nothing
}

type seriesKey struct {
	process uint32
	name    mem.Quantity
}

func newInput(run *mem.Run, opts Options) *Input {
	in := &Input{
		Run: run, Options: opts, start: run.Start(), steps: map[uint32][]mem.Step{}, clocks: map[uint32]*clock{},
		series: map[seriesKey]*mem.Series{}, names: usage.NewNames(&run.Stacks), histories: map[uint32]*usage.History{},
		tested: map[uint32][]string{}, leastTold: map[string]float64{}, failed: map[uint32]*trace.Shortage{},
		alive: map[uint32]string{},
	}
	for process := range run.Heap {
		in.histories[process] = usage.FromHeap(run, process)
	}
	in.index()
	counts := map[uint32]int{}
	for _, s := range run.Steps {
		counts[s.Process]++
	}
	for process, n := range counts {
		in.steps[process] = make([]mem.Step, 0, n)
	}
	for _, s := range run.Steps {
		in.steps[s.Process] = append(in.steps[s.Process], s)
	}
	for _, steps := range in.steps {
		sort.SliceStable(steps, func(i, j int) bool { return steps[i].Time < steps[j].Time })
	}
	in.end = in.lastMoment()
	in.leader = in.findLeader()
	return in
}

// index finds the series that have readings, and what the PSS of the tree can have been.
func (in *Input) index() {
	for _, s := range in.Run.Series {
		if key := (seriesKey{s.Process, s.Name}); in.series[key] == nil && len(s.Times) > 0 {
			in.series[key] = s
		}
	}
	in.boundPSS()
}

// lastMoment is when the run ended, or the last thing that was seen of it.
func (in *Input) lastMoment() int64 {
	if in.Run.End != nil {
		return max(in.Run.End.Time, in.start)
	}
	last := in.start
	for _, s := range in.Run.Series {
		if n := len(s.Times); n > 0 {
			last = max(last, s.Times[n-1])
		}
	}
	for _, e := range in.Run.Events {
		last = max(last, e.Time)
	}
	for _, steps := range in.steps {
		last = max(last, steps[len(steps)-1].Time)
	}
	return last
}

// findLeader is the process whose steps count the run: the one with most of them, then the one that
// took most memory.
func (in *Input) findLeader() uint32 {
	best, bestSteps, bestRSS := uint32(0), uint64(0), int64(-1)
	for _, p := range in.Run.Processes {
		steps := in.Run.Totals[p.ID].Steps
		rss := in.maxOf(p.ID, mem.SeriesRSS).Or(p.MaxRSS.Or(0))
		if best == 0 || steps > bestSteps || steps == bestSteps && rss > bestRSS {
			best, bestSteps, bestRSS = p.ID, steps, rss
		}
	}
	return best
}

// find returns a series with samples, or nil.
func (in *Input) find(process uint32, name mem.Quantity) *mem.Series {
	return in.series[seriesKey{process, name}]
}

// maxOf is the largest value of a series.
func (in *Input) maxOf(process uint32, name mem.Quantity) mem.Optional {
	s := in.find(process, name)
	if s == nil {
		return mem.Optional{}
	}
	return mem.Some(s.Values[s.Peak()])
}

// lastOf is the newest value of a series.
func (in *Input) lastOf(process uint32, name mem.Quantity) mem.Optional {
	s := in.find(process, name)
	if s == nil {
		return mem.Optional{}
	}
	return mem.Some(s.Values[len(s.Values)-1])
}

// since is a moment as people count it: from the beginning of the run.
func (in *Input) since(t int64) int64 { return max(t-in.start, 0) }

// processName is what a process is called in a sentence.
func (in *Input) processName(id uint32) string { return processName(in.Run.Process(id)) }

// whose is a process's name for a table of several; "" where there is only one.
func (in *Input) whose(id uint32, several bool) string {
	if !several {
		return ""
	}
	return in.processName(id)
}

func processName(p *mem.Process) string {
	switch {
	case p == nil:
		return "all processes"
	case p.Rank.Known():
		return "rank " + itoa(p.Rank.Or(0))
	case p.Role == "dataloader":
		return "DataLoader worker (pid " + itoa(int64(p.PID)) + ")"
	case p.Role == "main" && p.Parent != 0: // a script's program: the script itself is another one's main
		return "main (pid " + itoa(int64(p.PID)) + ")"
	case p.Role == "main", p.Role == "launcher":
		return p.Role
	}
	return "pid " + itoa(int64(p.PID))
}

// processKind is what processes that do the same are called together: their numbers differ from run to run.
func processKind(p *mem.Process) string {
	switch {
	case p.Rank.Known():
		return "rank " + itoa(p.Rank.Or(0))
	case p.Role == "dataloader":
		return "DataLoader workers"
	case p.Role == "main", p.Role == "launcher":
		return p.Role + " process"
	}
	return "other processes"
}

// clock maps moments of one process to the steps of the training, or to minutes where there are no
// steps.
type clock struct {
	times   []int64
	steps   []float64
	minutes bool
	start   int64
}

// clockOf is the clock by which a process's memory is looked at: its own steps; else those of the
// process it works for (a DataLoader worker has none); else minutes.
func (in *Input) clockOf(id uint32) *clock {
	if c := in.clocks[id]; c != nil {
		return c
	}
	stepper := in.stepper(id)
	c := &clock{start: in.start}
	for _, s := range in.steps[stepper] {
		if n := len(c.steps); n > 0 && float64(s.Number) <= c.steps[n-1] {
			continue // a counter that began again, or one frame twice
		}
		c.times = append(c.times, s.Time)
		c.steps = append(c.steps, float64(s.Number))
	}
	if len(c.times) < 2 {
		c.minutes = true
	}
	in.clocks[id] = c
	return c
}

// stepper is the process whose steps drive this one: itself, its nearest ancestor, or the leader.
func (in *Input) stepper(id uint32) uint32 {
	for at, hops := id, 0; at != 0 && hops < 64; hops++ {
		if len(in.steps[at]) >= 2 {
			return at
		}
		p := in.Run.Process(at)
		if p == nil {
			break
		}
		at = p.Parent
	}
	return in.leader
}

// at is the step (or minute) of a moment, with its fraction.
func (c *clock) at(t int64) float64 {
	if c.minutes {
		return float64(t-c.start) / float64(time.Minute)
	}
	i := sort.Search(len(c.times), func(i int) bool { return c.times[i] >= t })
	switch {
	case i == 0:
		return c.steps[0]
	case i == len(c.times):
		return c.steps[i-1]
	}
	t0, t1 := c.times[i-1], c.times[i]
	if t1 == t0 {
		return c.steps[i]
	}
	return c.steps[i-1] + (c.steps[i]-c.steps[i-1])*float64(t-t0)/float64(t1-t0)
}

// window is when the clock runs: from the first to the last step, or the life of the process.
func (c *clock) window(p *mem.Process, end int64) (from, to int64) {
	from, to = c.start, end
	if !c.minutes {
		from, to = c.times[0], c.times[len(c.times)-1]
	}
	if p != nil {
		from = max(from, p.Start)
		to = min(to, p.Bye.Or(p.End.Or(end)))
	}
	return from, min(to, end)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// source is the text of a line, cut to what fits a sentence; "" where it is not known.
func (in *Input) source(l mem.Location) string {
	if in.Options.Source == nil || l.Native || l.Line == 0 {
		return ""
	}
	text := strings.TrimSpace(in.Options.Source(l.File, l.Line))
	if at := strings.Index(text, "  #"); at > 0 {
		text = strings.TrimSpace(text[:at])
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:59]) + "…"
	}
	return strings.ReplaceAll(text, "`", "'")
}
