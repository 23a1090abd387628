package format

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// traceEvent is an entry of the Chrome trace format, which ui.perfetto.dev opens. Times are µs.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	ID       int            `json:"id,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// perfettoOut writes one event a line and keeps the first error.
type perfettoOut struct {
	w     *bufio.Writer
	begun bool
	err   error
}

func (o *perfettoOut) write(e traceEvent) {
	if o.err != nil {
		return
	}
	text, err := json.Marshal(e)
	separator := ",\n"
	if !o.begun {
		separator, o.begun = "\n", true
	}
	if _, o.err = o.w.WriteString(separator); o.err == nil && err == nil {
		_, o.err = o.w.Write(text)
	}
	if o.err == nil {
		o.err = err
	}
}

func (o *perfettoOut) counter(process int, name string, ns, value int64) {
	o.write(traceEvent{Name: name, Phase: "C", Process: process, Time: micro(ns), Args: map[string]any{"value": value}})
}

func (o *perfettoOut) process(number int, name string) {
	o.write(traceEvent{Name: "process_name", Phase: "M", Process: number, Args: map[string]any{"name": name}})
}

func micro(ns int64) float64 { return float64(ns) / 1000 }

// writePerfetto writes curves as counters and stays as slices. Times begin with the run or trace.
func writePerfetto(w io.Writer, from Source, _ *Table) error {
	o := &perfettoOut{w: bufio.NewWriterSize(w, 64<<10)}
	_, o.err = o.w.WriteString(`{"displayTimeUnit":"ms","otherData":{"producer":"hightide"},"traceEvents":[`)
	if from.Run != nil {
		o.run(from.Run)
	} else {
		o.snapshot(from.Snapshot)
	}
	if o.err == nil {
		_, o.err = o.w.WriteString("\n]}\n")
	}
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}

func (o *perfettoOut) run(run *mem.Run) {
	o.process(0, "machine and whole run")
	for _, p := range run.Processes {
		o.process(int(p.ID), fmt.Sprintf("process %d %s", p.PID, p.Role))
	}
	for _, s := range run.Series {
		name := string(s.Name)
		for _, of := range []string{s.Framework, s.Device} {
			if of != "" {
				name += " " + of
			}
		}
		name += fmt.Sprintf(" (%s, %s)", s.Unit, s.Label)
		for i, t := range s.Times {
			o.counter(int(s.Process), name, t-run.Start(), s.Values[i])
		}
	}
	for s := range run.Spans.All() {
		duration := micro(s.End - s.Start)
		o.write(traceEvent{Name: cmp.Or(s.Name, string(s.Phase)), Phase: "X", Category: string(s.Phase),
			Process: int(s.Process), Thread: int(s.Thread),
			Time: micro(s.Start - run.Start()), Duration: &duration, Args: map[string]any{"step": s.Step}})
	}
	for _, e := range run.Events {
		o.write(traceEvent{Name: e.Kind, Phase: "i", Scope: "p", Process: int(e.Process), Time: micro(e.Time - run.Start()),
			Args: map[string]any{"text": e.Text}})
	}
}

func (o *perfettoOut) snapshot(s *mem.AllocatorSnapshot) {
	began := startOf(s)
	for i := range s.Traces {
		t := &s.Traces[i]
		number := t.Device + 1
		o.process(number, deviceName(s, t.Device))
		d := usage.FromTrace(s, t.Device, usage.Whole)
		o.levels(d, number, began)
		o.blocks(d, number, began)
	}
	for i := range s.Segments { // devices without a trace: their state alone
		if g := &s.Segments[i]; i == 0 || s.Segments[i-1].Device != g.Device {
			if !slices.ContainsFunc(s.Traces, func(t mem.Trace) bool { return t.Device == g.Device }) {
				totals := s.Totals(g.Device)
				o.process(g.Device+1, deviceName(s, g.Device))
				o.counter(g.Device+1, "allocated (bytes)", 0, int64(totals.Allocated))
				o.counter(g.Device+1, "reserved (bytes)", 0, int64(totals.Reserved))
			}
		}
	}
	o.annotations(s, began)
}

// startOf is the time of the first event or annotation.
func startOf(s *mem.AllocatorSnapshot) int64 {
	var began int64
	for i := range s.Traces {
		if t := s.Traces[i].Time; len(t) > 0 && (began == 0 || t[0] < began) {
			began = t[0]
		}
	}
	for _, a := range s.Annotations {
		if began == 0 || a.Time < began {
			began = a.Time
		}
	}
	return began
}

// timeOf is an event's time since the beginning; traces without times count events as µs.
func timeOf(t *mem.Trace, i int, began int64) int64 {
	if t.Time == nil {
		return int64(i) * 1000
	}
	return t.Time[i] - began
}

// levels writes what was allocated and reserved after each event, one value a time.
func (o *perfettoOut) levels(d *usage.Device, number int, began int64) {
	t := d.Trace
	allocated, reserved := d.Course()
	for i, a := range t.Action {
		now := timeOf(t, i, began)
		if i == 0 || allocated[i+1] != allocated[i] {
			o.counter(number, "allocated (bytes)", now, int64(allocated[i+1]))
		}
		if i == 0 || reserved[i+1] != reserved[i] {
			o.counter(number, "reserved (bytes)", now, int64(reserved[i+1]))
		}
		if a == mem.ActionOOM {
			o.write(traceEvent{Name: "out of memory", Phase: "i", Scope: "p", Process: number, Time: micro(now),
				Args: map[string]any{"size_bytes": t.Size[i]}})
		}
	}
}

// perfettoBlocks bounds the blocks drawn as slices: the largest.
const perfettoBlocks = 2000

// blocks draws the lives of the largest blocks, until their memory could be used again.
func (o *perfettoOut) blocks(d *usage.Device, number int, began int64) {
	var blocks []int
	for n, from := range d.From {
		if from >= 0 {
			blocks = append(blocks, n)
		}
	}
	slices.SortStableFunc(blocks, func(a, b int) int { return cmp.Compare(d.RequestedOf(b), d.RequestedOf(a)) })
	where := placesIn(d.Stacks)
	for id, n := range blocks[:min(len(blocks), perfettoBlocks)] {
		place, size := where.of(d.Stack[n]), d.RequestedOf(n)
		name := size.String()
		if function, ok := place[2].(string); ok {
			name += " " + function
		}
		args := map[string]any{"size_bytes": size, "address": fmt.Sprintf("%#x", d.AddressOf(n)), "file": place[0],
			"line": place[1]}
		end := min(int(d.Block.Gone[n]), d.Moments-1)
		o.write(traceEvent{Name: name, Phase: "b", Category: "block", ID: number<<20 + id + 1, Process: number,
			Time: micro(timeOf(d.Trace, int(d.From[n]), began)), Args: args})
		o.write(traceEvent{Name: name, Phase: "e", Category: "block", ID: number<<20 + id + 1, Process: number,
			Time: micro(timeOf(d.Trace, end, began))})
	}
}

// annotations pairs starts and ends by name, as stacks; either may be missing.
func (o *perfettoOut) annotations(s *mem.AllocatorSnapshot, began int64) {
	open := map[string][]mem.Annotation{}
	for _, a := range s.Annotations {
		key := fmt.Sprint(a.Device, a.Name)
		if !a.End {
			open[key] = append(open[key], a)
			continue
		}
		if n := len(open[key]); n > 0 {
			start := open[key][n-1]
			open[key] = open[key][:n-1]
			duration := micro(a.Time - start.Time)
			o.write(traceEvent{Name: a.Name, Phase: "X", Category: "annotation", Process: a.Device + 1,
				Time: micro(start.Time - began), Duration: &duration})
		}
	}
}
