package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// message is a JSON record of the agent (docs/formats/channel.md); keys that a type does not have
// are absent.
type message struct {
	Type string `json:"type"`

	// hello
	Argv       []string     `json:"argv"`
	Cwd        string       `json:"cwd"`
	Python     string       `json:"python"`
	Executable string       `json:"executable"`
	Rank       mem.Optional `json:"rank"`
	LocalRank  mem.Optional `json:"local_rank"`
	WorldSize  mem.Optional `json:"world_size"`
	Role       string       `json:"role"`

	// framework, fact, series
	Name      string `json:"name"`
	Version   string `json:"version"`
	Key       string `json:"key"`
	Value     any    `json:"value"`
	ID        uint32 `json:"id"`
	Unit      string `json:"unit"`
	Device    any    `json:"device"`
	Framework string `json:"framework"`

	DeviceMemory map[string]int64 `json:"device_memory"` // framework: bytes of each device

	Modules []struct {
		ID         uint16 `json:"id"`
		Name       string `json:"name"`
		Class      string `json:"class"`
		Parameters int64  `json:"parameter_bytes"`
		Buffers    int64  `json:"buffer_bytes"`
	} `json:"modules"`

	Spans []spanMessage     `json:"spans"` // what their ids mean, or stays that were only counted
	Tags  map[string]string `json:"tags"`  // run

	// model
	Step       mem.Optional `json:"step"`
	Parameters mem.Optional `json:"parameter_bytes"`
	Gradients  mem.Optional `json:"gradient_bytes"`
	Optimizer  mem.Optional `json:"optimizer_bytes"`

	// holder, oom, exception
	Kind     string         `json:"kind"`
	File     string         `json:"file"`
	Line     int            `json:"line"`
	Function string         `json:"function"`
	Items    int64          `json:"items"`
	PerStep  float64        `json:"items_per_step"`
	PerMin   float64        `json:"items_per_minute"`
	Contains string         `json:"contains"`
	Tensors  mem.Optional   `json:"tensor_bytes"`
	Graph    bool           `json:"graph"`
	Frames   bool           `json:"traceback"`
	Renewed  bool           `json:"renewed"`
	Parts    []mem.HeldPart `json:"parts"`
	Saved    mem.Optional   `json:"saved_bytes"`
	Bound    mem.Optional   `json:"bound_items"`
	BoundBy  string         `json:"bound_by"`
	Emptied  string         `json:"emptied_by"`
	Highest  mem.Optional   `json:"highest_items"`
	Falls    int64          `json:"falls"`
	Others   []mem.Location `json:"others"`
	Ran      bool           `json:"ran"`
	Text     string         `json:"text"`
	Bytes    mem.Optional   `json:"bytes"`
	Source   string         `json:"source"`
	Limit    mem.Optional   `json:"limit_bytes"`  // of the address space
	Mapped   mem.Optional   `json:"mapped_bytes"` // of that
	OwnLimit mem.Optional   `json:"own_limit_bytes"`
	Class    string         `json:"class"`
	From     string         `json:"from"`

	// traced
	Argument string `json:"argument"`
	Before   string `json:"before"`
	Shaped   string `json:"shaped"`
	Shape    string `json:"shape"`
	Lengths  string `json:"lengths"`
	After    string `json:"after"`
	Eager    string `json:"eager"`
	Library  string `json:"library"`

	// program: bytes of the function's largest program; code of all of them
	Arguments     string       `json:"arguments"`
	ArgumentBytes mem.Optional `json:"argument_bytes"`
	OutputBytes   mem.Optional `json:"output_bytes"`
	AliasBytes    mem.Optional `json:"alias_bytes"`
	TempBytes     mem.Optional `json:"temp_bytes"`
	CodeBytes     mem.Optional `json:"code_bytes"`
	CodeTotal     mem.Optional `json:"code_total_bytes"`

	// oom: the compiled function whose call found no memory, its sizes as of a program, and what was in use
	Program     string       `json:"program"`
	ProgramFile string       `json:"program_file"`
	ProgramLine mem.Optional `json:"program_line"`
	UsedBytes   mem.Optional `json:"used_bytes"`

	// snapshot, log, dropped, traced, stop, bye
	Path   string       `json:"path"`
	Format string       `json:"format"`
	Began  int64        `json:"began_ns"`
	Ended  int64        `json:"ended_ns"`
	RSS    mem.Optional `json:"rss_bytes"`
	Reason string       `json:"reason"`
	Level  string       `json:"level"`
	Count  uint64       `json:"count"`
	LastNS mem.Optional `json:"last_ns"`
	Shapes mem.Optional `json:"shapes"`
	Used   mem.Optional `json:"used"`
	MaxRSS mem.Optional `json:"maxrss_bytes"`
	CPU    mem.Optional `json:"cpu_ns"`

	Compiling bool `json:"compiling"` // compiling: whether it goes on, with the count of kernels so far
}

// message takes in one JSON record. One that cannot be read is counted, not an error: the other
// side may be newer than we are.
func (r *Recorder) message(p *process, c *channel, record *shm.JSON) {
	var m message
	if err := json.Unmarshal(record.Data, &m); err != nil {
		r.drop(p, "message", 1)
		return
	}
	at := record.When()
	m.File = mem.Slashes(m.File)
	for i := range m.Others {
		m.Others[i].File = mem.Slashes(m.Others[i].File)
	}
	if m.Type == "series" || m.Type == "modules" || m.Type == "spans" {
		c.meanings = append(c.meanings, bytes.Clone(record.Data))
	}
	switch m.Type {
	case "hello":
		r.hello(p, &m)
	case "framework":
		r.framework(p, record.Data, &m)
	case "fact":
		r.factMessage(p, &m, at)
	case "compiling":
		p.compiling.told(m.Compiling, int64(m.Count), at)
	case "series":
		key := seriesKey{p.ID, text(m.Device), m.Framework, mem.Quantity(m.Name)}
		p.series[agentSeries{c, m.ID}] = r.columns.column(key, mem.Unit(m.Unit), r.opts.labelOf(key.name))
	case "modules":
		for _, module := range m.Modules {
			p.spans.modules[module.ID] = module.Name
			r.emit(mem.Module{Process: p.ID, Name: module.Name, Class: module.Class,
				Parameters: mem.Bytes(module.Parameters), Buffers: mem.Bytes(module.Buffers)})
		}
	case "spans":
		for _, span := range m.Spans {
			p.spans.user.names[span.ID] = mem.MaskText(span.Name)
		}
	case "counted":
		p.spans.counted(m.Spans)
	case "run":
		r.named(m.Name, m.Tags)
	case "alert":
		r.askedFor(p, c, &m)
	case "aside": // it may have ended before it was seen to call exec
		if q := r.byPID[int(m.ID)]; q != nil && q != p {
			q.Role, q.dirty = mem.RoleAside, true
		}
	case "cell":
		r.emit(mem.Cell{File: m.File, Name: mem.MaskText(m.Name), Text: mem.MaskText(m.Text)})
	case "model":
		r.emit(mem.ModelUse{Process: p.ID, Step: uint64(m.Step.Or(0)), Device: text(m.Device),
			Parameters: m.Parameters, Gradients: m.Gradients, Optimizer: m.Optimizer})
	case "holder":
		r.holder(p, &m, at)
	case "python_heap":
		r.tracedHeap(p, record.Data, at)
	case "bye":
		r.bye(p, &m, at)
	case "collected":
		p.garbage.collected(&m)
	case "skipped":
		p.steps.total.Skipped += m.Count
		p.steps.changed = true
	case "dropped":
		r.dropTotal(p, "agent", m.Count)
	default:
		if !r.imagined(p, record.Data, &m, at) {
			r.eventMessage(p, &m, at)
		}
	}
}

// holder takes in a container that grows, as the agent saw it.
func (r *Recorder) holder(p *process, m *message, at int64) {
	r.emit(mem.Holder{Process: p.ID, Time: at, Step: uint64(m.Step.Or(0)), Kind: m.Kind, Name: m.Name,
		Where: mem.Location{File: m.File, Line: m.Line, Function: m.Function},
		Items: m.Items, PerStep: m.PerStep, PerMin: m.PerMin, Contains: m.Contains, Tensors: m.Tensors, Graph: m.Graph,
		Traceback: m.Frames, Renewed: m.Renewed, Parts: m.Parts, Saved: m.Saved, Bound: m.Bound, BoundBy: m.BoundBy,
		Others: m.Others, Ran: m.Ran, EmptiedBy: m.Emptied, Highest: m.Highest, Falls: m.Falls})
}

// bye takes in the last that a process says of itself.
func (r *Recorder) bye(p *process, m *message, at int64) {
	if mark, ok := m.MaxRSS.Get(); ok {
		p.bye = true
		r.reached(p, mark)
		p.touchedSince(mark, at)
	}
	p.Bye = mem.Some(min(cmp.Or(m.Ended, at), at))
	if p.heap != nil { // what the interpreter frees from here on says nothing of the program
		r.emit(p.heap.use(at, p.lastStep, true))
		r.useAges(p, at)
	}
	if cpu, ok := m.CPU.Get(); ok {
		p.number("agent_cpu_ns", cpu)
	}
	p.dirty = true
}

// eventMessage takes in what becomes an event.
func (r *Recorder) eventMessage(p *process, m *message, at int64) {
	event := mem.Event{Time: at, Process: p.ID, Kind: m.Type, Text: mem.MaskText(m.Text)}
	if m.File != "" {
		event.Where = &mem.Location{File: m.File, Line: m.Line, Function: m.Function}
	}
	switch m.Type {
	case "oom":
		p.explained(m.Bytes)
		event.Step, event.Bytes = m.Step, m.Bytes
		event.Facts = facts("source", m.Source, "device", text(m.Device), "program", m.Program, "program_file", m.ProgramFile)
		event.Numbers = numbers(number{"limit", m.Limit}, number{"mapped", m.Mapped},
			number{mem.NumberOwnLimit, m.OwnLimit}, number{"program_line", m.ProgramLine}, number{"used_bytes", m.UsedBytes}, number{"argument_bytes", m.ArgumentBytes}, number{"output_bytes", m.OutputBytes},
			number{"alias_bytes", m.AliasBytes}, number{"temp_bytes", m.TempBytes})
	case "exception":
		event.Facts = facts("class", m.Class, "from", mem.MaskText(m.From))
	case "mark":
		r.heapAtSpan(p, at)
	case "stop":
		if _, copied := p.facts["copy"]; !copied { // a forked copy that ends leaves others to come (docs/formats/imagined.md)
			r.stopping, r.endsAfter = true, max(r.endsAfter, uint64(m.Step.Or(0)))
		}
		event.Step, event.Text = m.Step, m.Reason
	case "traced":
		event.Facts = facts("framework", m.Framework, "argument", m.Argument, "before", mem.MaskText(m.Before),
			"after", mem.MaskText(m.After), "eager", m.Eager, "library", m.Library,
			"shaped", m.Shaped, "shape", m.Shape, "lengths", m.Lengths)
		event.Numbers = numbers(m.counted(), number{"last_ns", m.LastNS}, number{"shapes", m.Shapes})
	case "program":
		event.Facts = facts("framework", m.Framework, "device", text(m.Device), "arguments", mem.MaskText(m.Arguments))
		event.Numbers = numbers(m.counted(), number{"argument_bytes", m.ArgumentBytes},
			number{"output_bytes", m.OutputBytes}, number{"alias_bytes", m.AliasBytes}, number{"temp_bytes", m.TempBytes},
			number{"code_bytes", m.CodeBytes}, number{"code_total_bytes", m.CodeTotal})
	case mem.EventRescue:
		event.Step, event.Bytes, event.Facts = m.Step, m.Bytes, facts("device", text(m.Device))
		event.Numbers = numbers(m.counted())
	case "donation":
		event.Bytes = m.Bytes
		event.Facts = facts("framework", m.Framework, "device", text(m.Device), "argument", m.Argument)
		event.Numbers = numbers(m.counted())
	case mem.EventUnusedGraphs:
		event.Facts = facts("class", m.Class, "mode", m.Kind)
		event.Numbers = numbers(m.counted(), number{"at_once", mem.Some(m.Items)}, number{"used", m.Used})
	case "cycle":
		event.Facts = facts("class", m.Class, "name", mem.MaskText(m.Name))
		event.Numbers = numbers(m.counted())
	case "dataset":
		event.Bytes = m.Bytes
		event.Facts = facts("name", m.Name, "kind", m.Kind, "contains", m.Contains)
		event.Numbers = numbers(number{"items", mem.Some(m.Items)})
	case "log":
		event.Facts = facts("level", m.Level)
	case "snapshot":
		r.snapshots.add(p.ID, at, m)
		return
	default:
		return
	}
	r.emit(event)
}

func (r *Recorder) hello(p *process, m *message) {
	p.hello, p.dirty = true, true
	p.Python = m.Python
	p.Rank, p.LocalRank, p.WorldSize = m.Rank, m.LocalRank, m.WorldSize
	if m.Role != "" {
		p.Role = m.Role
	}
	if p.joined && p.Role == "main" { // it takes itself for that where nobody that it came from is left
		p.Role = "child"
	}
	if len(m.Argv) > 0 && len(p.Command) == 0 {
		p.Command = mem.MaskArgs(m.Argv)
	}
	if m.Executable != "" {
		p.fact("executable", m.Executable)
	}
}

// framework notes the version, and every further key as a fact under the framework's name.
func (r *Recorder) framework(p *process, data []byte, m *message) {
	if p.Frameworks == nil {
		p.Frameworks = map[string]string{}
	}
	p.Frameworks[m.Name] = m.Version
	if len(m.DeviceMemory) > 0 {
		p.deviceMemory = m.DeviceMemory
	}
	p.dirty = true
	var all map[string]any
	_ = json.Unmarshal(data, &all)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != "type" && key != "name" && key != "version" && all[key] != nil {
			p.fact(m.Name+"."+key, text(all[key]))
		}
	}
}

func (r *Recorder) factMessage(p *process, m *message, at int64) {
	if n, ok := integer(m.Value); ok {
		p.number(m.Key, n)
		return
	}
	value := text(m.Value)
	if m.Key == "unobserved" {
		r.emit(mem.Event{Time: at, Process: p.ID, Kind: "unobserved", Text: value})
	}
	p.fact(m.Key, value)
}

// integer is a JSON value that is one. Above 2^53 it may not be as it was sent.
func integer(value any) (int64, bool) {
	n, ok := value.(float64)
	return int64(n), ok && n == math.Trunc(n) && math.Abs(n) <= 1<<53
}

// text writes a JSON value as a person would.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}

// facts builds a map from pairs, without the empty ones.
func facts(pairs ...string) map[string]string {
	var m map[string]string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			if m == nil {
				m = map[string]string{}
			}
			m[pairs[i]] = pairs[i+1]
		}
	}
	return m
}

// number is one of an event's integers.
type number struct {
	name string
	of   mem.Optional
}

// numbers are those that are known; nil: none is.
func numbers(all ...number) map[string]int64 {
	var m map[string]int64
	for _, n := range all {
		if v, ok := n.of.Get(); ok {
			if m == nil {
				m = map[string]int64{}
			}
			m[n.name] = v
		}
	}
	return m
}

// counted is how often, or how many, a message tells.
func (m *message) counted() number { return number{"count", mem.Some(int64(m.Count))} }

// drop counts what was lost at a place of our own.
func (r *Recorder) drop(p *process, place string, records uint64) {
	r.dropTotal(p, place, p.dropped[place].Records+records)
}

func (r *Recorder) dropTotal(p *process, place string, records uint64) {
	drop := mem.Drop{Process: p.ID, Place: place, Records: records}
	p.dropped[place] = drop
	r.emit(drop)
}
