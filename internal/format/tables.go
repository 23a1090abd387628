package format

import (
	"maps"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Table is one kind of row of a Source. Cells are string, int64, bool, or nil where absent.
type Table struct {
	Name    string
	Short   string
	Columns []Column
	of      Kinds
	rows    func(from Source, add func(cells ...any))
}

// Column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Unit of its numbers, which the column's name ends with; "" where it has none, or where each row names its own.
func (c Column) Unit() string {
	for _, unit := range []string{"ns", "bytes"} {
		if strings.HasSuffix(c.Name, "_"+unit) {
			return unit
		}
	}
	return ""
}

// Kind of a cell.
type Kind int

// Kinds.
const (
	Text Kind = iota
	Integer
	Boolean
	Real
)

// Rows calls yield with one row after the other; the slice is used again. After an error of yield there are no more.
func (t *Table) Rows(from Source, yield func(cells []any) error) (err error) {
	t.rows(from, func(cells ...any) {
		if err == nil {
			err = yield(cells)
		}
	})
	return err
}

// Tables lists all tables. Times of runs are nanoseconds since the run began, those of snapshots of
// the wall clock.
var Tables = []Table{
	{"samples", "every sample of every series, one a row", columns("time_ns", "process", "pid", "device*", "framework*",
		"series*", "unit*", "label*", "value"), Runs, ofRun(samples)},
	{"steps", "the ends of optimizer steps", columns("process", "pid", "step", "time_ns", "duration_ns", "rss_bytes",
		"heap_bytes", "device_bytes", "micro_steps", "skipped?"), Runs, ofRun(steps)},
	{"spans", "stays in phases and modules", columns("process", "pid", "thread", "phase*", "name*", "step", "start_ns",
		"end_ns",
		"rss_start_bytes", "rss_end_bytes", "rss_peak_bytes", "device_start_bytes", "device_end_bytes"), Runs, ofRun(spans)},
	{"phases", "sums over all stays in a phase or module", columns("process", "pid", "phase*", "name*", "count",
		"total_ns", "max_ns",
		"rss_peak_bytes", "rss_net_bytes", "rss_rise_bytes", "device_peak_bytes", "device_net_bytes"), Runs, ofRun(phases)},
	{"sites", "live heap by allocation site, at each change (sampled)",
		columns("time_ns", "process", "pid", "step", "stack", "phase*", "live_bytes",
			"live_samples", "allocated_bytes", "file*", "line", "function*", "peak?"), Runs, ofRun(sites)},
	{"events", "what happened once", columns("time_ns", "process", "pid", "kind*", "text*", "step", "bytes", "file*",
		"line"), Runs, ofRun(events)},
	{"processes", "the processes of the run", columns("process", "pid", "parent", "role*", "rank", "local_rank",
		"world_size", "python*", "start_ns", "end_ns",
		"exit_code", "signal", "maxrss_bytes"), Runs, ofRun(processes)},
	{"events", "the allocator's events", columns("event", "device", "time_ns", "action*", "address", "size_bytes",
		"stream", "pool*", "stack",
		"category*", "metadata*", "compile_context*", "file*", "line", "function*"), Snapshots, ofSnapshot(allocatorEvents)},
	{"blocks", "the allocator's blocks at the end", columns("device", "segment", "address", "size_bytes",
		"requested_bytes", "state*", "stack",
		"file*", "line", "function*"), Snapshots, ofSnapshot(allocatorBlocks)},
	{"segments", "its segments at the end", columns("device", "address", "size_bytes", "used_bytes", "stream", "large?",
		"expandable?", "pool*", "stack"), Snapshots, ofSnapshot(allocatorSegments)},
	{"peak", "blocks in use when most bytes were", columns("device", "event", "time_ns", "address", "size_bytes",
		"requested_bytes", "since_event", "stack",
		"file*", "line", "function*"), Snapshots, ofSnapshot(allocatorPeak)},
	{"stacks", "the frames of stacks, innermost first", columns("stack", "depth", "file*", "line", "function*",
		"native?"), Snapshots, ofSnapshot(allocatorStacks)},
}

func ofRun(rows func(*mem.Run, func(...any))) func(Source, func(...any)) {
	return func(from Source, add func(...any)) { rows(from.Run, add) }
}

func ofSnapshot(rows func(*mem.AllocatorSnapshot, func(...any))) func(Source, func(...any)) {
	return func(from Source, add func(...any)) { rows(from.Snapshot, add) }
}

// columns: a star marks text, a question mark yes or no; the others are integers.
func columns(names ...string) []Column {
	list := make([]Column, len(names))
	kinds := map[byte]Kind{'*': Text, '?': Boolean}
	for i, name := range names {
		kind, marked := kinds[name[len(name)-1]]
		if !marked {
			list[i] = Column{name, Integer}
			continue
		}
		list[i] = Column{name[:len(name)-1], kind}
	}
	return list
}

func cell(o mem.Optional) any {
	if value, ok := o.Get(); ok {
		return value
	}
	return nil
}

// text is absent where it is empty.
func text[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// positive is absent where the number is not above zero.
func positive[N int | int64 | uint32](n N) any {
	if n <= 0 {
		return nil
	}
	return int64(n)
}

// places remembers the site of each stack, as reports name it: tables ask for few of them very often.
type places struct {
	names *usage.Names
	known map[uint32][3]any
}

func placesIn(stacks *mem.StackTable) *places {
	return &places{usage.NewNames(stacks), map[uint32][3]any{}}
}

// of is a site's file, line and function; of native code its library and how it is known.
func (p *places) of(stack uint32) [3]any {
	cells, ok := p.known[stack]
	if ok || stack == 0 {
		return cells
	}
	at := p.names.Of(stack)
	cells = [3]any{text(at.File), positive(at.Line), text(at.Function)}
	if at.Native {
		cells[2] = at.Name
	}
	if at.File == mem.UnknownPlace {
		cells[0] = nil
	}
	p.known[stack] = cells
	return cells
}

// pid of a process; absent for the run or host as a whole.
func pid(run *mem.Run, process uint32) any {
	if p := run.Process(process); p != nil {
		return int64(p.PID)
	}
	return nil
}

func samples(run *mem.Run, add func(...any)) {
	for _, s := range run.Series {
		of := pid(run, s.Process)
		for i, t := range s.Times {
			add(t-run.Start(), int64(s.Process), of, text(s.Device), text(s.Framework), string(s.Name), string(s.Unit),
				string(s.Label), s.Values[i])
		}
	}
}

func steps(run *mem.Run, add func(...any)) {
	for _, s := range run.Steps {
		add(int64(s.Process), pid(run, s.Process), int64(s.Number), s.Time-run.Start(), positive(s.Duration),
			cell(s.RSS), cell(s.Heap), cell(s.Device), int64(s.Micro), s.Skipped)
	}
}

func spans(run *mem.Run, add func(...any)) {
	for s := range run.Spans.All() {
		add(int64(s.Process), pid(run, s.Process), int64(s.Thread), string(s.Phase), text(s.Name), int64(s.Step),
			s.Start-run.Start(), s.End-run.Start(), cell(s.RSSStart), cell(s.RSSEnd), cell(s.RSSPeak), cell(s.DeviceStart),
			cell(s.DeviceEnd))
	}
}

func phases(run *mem.Run, add func(...any)) {
	for _, p := range run.Phases {
		add(int64(p.Process), pid(run, p.Process), string(p.Phase), text(p.Name), int64(p.Count), p.Total, p.Max,
			cell(p.RSSPeak), cell(p.RSSNet), cell(p.RSSMaxRise), cell(p.DevicePeak), cell(p.DeviceNet))
	}
}

func sites(run *mem.Run, add func(...any)) {
	where := placesIn(&run.Stacks)
	for _, process := range slices.Sorted(maps.Keys(run.Heap)) {
		h := run.Heap[process]
		row := func(time int64, step uint64, s mem.SiteUse, peak bool) {
			place := where.of(s.Stack)
			add(time-run.Start(), int64(process), pid(run, process), int64(step), int64(s.Stack), text(s.Phase), int64(s.Live),
				int64(s.Count), int64(s.Allocated), place[0], place[1], place[2], peak)
		}
		for _, stack := range slices.Sorted(maps.Keys(h.Sites)) {
			for _, p := range h.Sites[stack] {
				row(p.Time, p.Step, p.SiteUse, false)
			}
		}
		if h.Peak == nil {
			continue
		}
		for _, s := range h.Peak.Sites {
			row(h.Peak.Time, h.Peak.Step, s, true)
		}
	}
}

func events(run *mem.Run, add func(...any)) {
	for _, e := range run.Events {
		var file, line any
		if e.Where != nil {
			file, line = text(e.Where.File), int64(e.Where.Line)
		}
		add(e.Time-run.Start(), int64(e.Process), pid(run, e.Process), e.Kind, text(e.Text), cell(e.Step), cell(e.Bytes),
			file, line)
	}
}

func processes(run *mem.Run, add func(...any)) {
	for _, p := range run.Processes {
		end := cell(p.End)
		if value, ok := p.End.Get(); ok {
			end = value - run.Start()
		}
		add(int64(p.ID), int64(p.PID), int64(p.Parent), text(p.Role), cell(p.Rank), cell(p.LocalRank), cell(p.WorldSize),
			text(p.Python),
			p.Start-run.Start(), end, cell(p.ExitCode), cell(p.Signal), cell(p.MaxRSS))
	}
}
