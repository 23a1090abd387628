package imagine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hightide/internal/analyze/imagined"
	"hightide/internal/fail"
	"hightide/internal/format/torch"
	"hightide/internal/gpus"
	"hightide/internal/launch"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/replay"
	"hightide/internal/report"
)

// trial is one imagined run: the program, the GPUs, and what differs from the run that was asked for.
type trial struct {
	command  []string
	gpu      gpus.GPU
	count    int
	env      map[string]string // variables of the program
	sizes    string            // data-dependent sizes; "": as asked for
	switches []string          // HIGHTIDE_IMAGINE_SWITCH
	plan     *levers.Plan      // nil: none
	blocks   bool              // record what each block takes
	counted  bool              // record how the backward passes of a step add up
	says     bool              // what the agent says of its switch belongs to what the trial is called
	told     map[string]string // further variables of the agent
	atMost   time.Duration     // 0: as long as it takes
	other    bool              // the other end of numbers that nobody computed
	flip     bool              // of a mask and its opposite, who is asked first gets nothing
	ones     bool              // what no kernel computed is read as ones
	lag      bool              // the GPU is always behind the host: nothing is done before that waits
	load     string            // requests that a server answers; "": as asked for
	apart    bool              // never forked from another's start: its host memory is its own
	traced   bool              // keep the allocator's history, to replay it with less memory or show its course
}

// Result is what came of it.
type Result struct {
	*report.Imagined
	run     *mem.Run
	Outcome observe.Outcome
	Said    string // the last words of its output, where it was quiet
	once    sync.Once
	exact   *replay.Fit // see trace
}

// tee writes frames into a run in memory and, where there is one, into a recording. The run gets snapshots,
// which are megabytes, as far as there is room for them.
type tee struct {
	run  *mem.Run
	to   observe.Sink
	room int
}

// snapshotRoom is for the history of some 300,000 events.
const snapshotRoom = 64 << 20

func (t *tee) Write(f mem.Frame) error {
	piece, snapshot := f.(mem.Snapshot)
	if t.room -= len(piece.Piece); !snapshot || t.room >= 0 {
		_ = t.run.Add(f) // what cannot be is refused by every reader
	}
	if t.to == nil {
		return nil
	}
	return t.to.Write(f)
}

func (t *tee) Followed() bool { return t.to != nil && observe.Followed(t.to) }

func (t *tee) Flush() error {
	if t.to == nil {
		return nil
	}
	return t.to.Flush()
}

// attempt runs a trial quietly and keeps nothing but its figures.
func (s *Session) attempt(ctx context.Context, t trial) (*Result, error) {
	dir, err := os.MkdirTemp("", "hightide-trial-")
	if err != nil {
		return nil, fail.Environment("is the temporary folder full?", "keep what a trial writes: %w", err)
	}
	defer os.RemoveAll(dir)
	o, vendor, out, err := s.quiet(&t, fmt.Sprintf("%s-%d", s.Base.ID, s.trials.Add(1)), dir)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	result, err := s.observe(ctx, &t, o, vendor, nil)
	if err == nil {
		result.Said = lastWords(out)
	}
	return result, err
}

// loadVariable tells the agent which requests are to be answered.
const loadVariable = "HIGHTIDE_IMAGINE_LOAD"

// besideVariable tells the agent that a start is not the one that is recorded: a server is not to take its port.
const besideVariable = "HIGHTIDE_IMAGINE_BESIDE"

// quiet translates a trial of which nothing is to be seen or kept: all that it writes goes into a folder.
func (s *Session) quiet(t *trial, id, dir string) (*observe.Options, *imaginary, *os.File, error) {
	out, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, nil, nil, fail.Environment("is the temporary folder full?", "keep a trial's output: %w", err)
	}
	t.told = mergeEnv(t.told, map[string]string{besideVariable: "1"})
	o, vendor := s.recordOptions(t, id, "", filepath.Join(dir, "sandbox"))
	o.Runtime = launch.Runtime{Stdout: out, Stderr: out, PassSignals: s.Base.Runtime.PassSignals}
	o.SnapshotOn, o.NoStacks, o.KeepSnapshots = "never", true, false
	if t.traced {
		o.OutDir, o.SnapshotOn = dir, "exit"
	}
	return o, vendor, out, nil
}

// observe runs the command and judges what it did.
func (s *Session) observe(ctx context.Context, t *trial, o *observe.Options, vendor *imaginary,
	to observe.Sink) (*Result, error) {
	sink := &tee{mem.NewRun(), to, s.room(t)}
	_ = sink.Write(s.setup(t)) // a sink that fails says so in the outcome
	outcome, err := s.Record(ctx, o, sink)
	if err != nil {
		return nil, err
	}
	now := sink.run.Start()
	if sink.run.End != nil {
		now = sink.run.End.Time
	}
	for _, f := range vendor.frames(sink.run, now) {
		_ = sink.Write(f)
	}
	return &Result{Imagined: imagined.Judge(sink.run), run: sink.run, Outcome: outcome}, nil
}

// room is for the histories that a run keeps in memory: the question about every GPU needs them, and a plan's curve.
func (s *Session) room(t *trial) int {
	if s.several() || t.traced {
		return snapshotRoom
	}
	return 0
}

// History is what the allocator did, of one process on one device, and when its steps ended, on the wall clock; nil: it
// was not kept. It is read once.
func (r *Result) History() (*mem.AllocatorSnapshot, []int64) {
	files := r.run.Snapshots
	r.run.Snapshots = nil
	if len(r.Ranks) > 1 || len(r.Devices) != 1 || len(files) == 0 {
		return nil, nil
	}
	last := files[len(files)-1]
	snapshot, err := torch.Read(bytes.NewReader(last.Data))
	if err != nil {
		return nil, nil
	}
	var ends []int64
	for _, step := range r.run.Steps {
		if step.Process == last.Process {
			ends = append(ends, r.run.Info.StartWall+step.Time-r.run.Info.StartMono)
		}
	}
	return snapshot, ends
}

// trace is the history of a run on one device by one process. It is nil unless the model of the allocator repeats it
// exactly and it is the whole of it.
func (r *Result) trace() *replay.Fit {
	r.once.Do(func() {
		if len(r.Ranks) > 1 || len(r.Devices) != 1 {
			return
		}
		files := r.run.Snapshots
		r.run.Snapshots = nil
		if len(files) == 0 {
			return
		}
		snapshot, err := torch.Read(bytes.NewReader(files[len(files)-1].Data))
		if err != nil {
			return
		}
		fit, exact, err := replay.NewFit(snapshot, -1)
		if err != nil || !exact {
			return
		}
		v, err := fit.Verdict(r.Total, 0, "")
		if err == nil && mem.Some(int64(v.Allocated)) == r.Allocated && mem.Some(int64(v.Reserved)) == r.Reserved {
			r.exact = fit
		}
	})
	return r.exact
}

// lastWords is the last line that says something of what a trial printed.
func lastWords(out *os.File) string {
	end, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	tail := make([]byte, min(end, 4096))
	if _, err := out.ReadAt(tail, end-int64(len(tail))); err != nil && err != io.EOF {
		return ""
	}
	lines := strings.Split(strings.ToValidUTF8(string(tail), "?"), "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" {
			return mem.MaskText(line)
		}
	}
	return ""
}

// recordOptions translates a trial for package observe. sandbox: folder for the program's writes; "":
// they go where the program says.
func (s *Session) recordOptions(t *trial, id, outDir, sandbox string) (*observe.Options, *imaginary) {
	channels := observe.SharedPath(s.Base.Runtime.SharedDir(), id)
	states := []*deviceState{{path: filepath.Join(channels, "device-table")}}
	command := t.command
	agent := map[string]string{"HIGHTIDE_IMAGINE": "1", "HIGHTIDE_IMAGINE_STEPS": s.Until,
		"HIGHTIDE_IMAGINE_SIZES": cmp.Or(t.sizes, s.Sizes)}
	device := t.device(states[0].path)
	if len(s.Reach) > 0 {
		agent["HIGHTIDE_IMAGINE_UNTIL"] = strings.Join(s.Reach, ",")
	}
	if s.Tokens > 0 {
		agent["HIGHTIDE_IMAGINE_TOKENS"] = strconv.Itoa(s.Tokens)
	}
	if load := cmp.Or(s.Load, t.load); load != "" {
		agent[loadVariable] = load
	}
	if s.Longest {
		agent["HIGHTIDE_IMAGINE_LONGEST"] = "1"
	}
	if s.FakeWeights {
		agent["HIGHTIDE_IMAGINE_FAKE_WEIGHTS"] = "1"
	}
	if sandbox != "" {
		agent["HIGHTIDE_IMAGINE_SANDBOX"] = sandbox
	}
	maps.Copy(agent, t.agent(s.givenLength()))
	asked, _ := readValues(s.ReadValues) // they were checked before
	asked.Other, asked.Flip, asked.Ones = t.other, t.flip, t.ones
	if agent["HIGHTIDE_IMAGINE_READS"] = asked.text(); asked.All != nil {
		device["HIGHTIDE_DEVICE_READ_VALUE"] = strconv.FormatFloat(*asked.All, 'g', -1, 64)
	}
	if t.ones {
		device["HIGHTIDE_DEVICE_READ_VALUE"] = "1"
	}
	if s.Python.Path != "" {
		device["HIGHTIDE_SMI_PYTHON"] = s.Python.Path
	}
	if len(s.play) > 0 {
		command, states = s.played(t, channels)
		agent["HIGHTIDE_IMAGINE_PLAYED"] = strings.Trim(strings.ReplaceAll(fmt.Sprint(s.play), " ", ","), "[]")
		device["HIGHTIDE_DEVICE_PLAY"] = "1"
		device["TORCH_NCCL_RANKS_PER_ROOT"] = strconv.Itoa(s.World) // else each 128 ranks wait for one that is not played
	}
	o := &observe.Options{
		ID: id, Name: s.Base.Name, Tags: s.Base.Tags, Version: s.Base.Version, Verb: "imagine", Label: mem.Imagined,
		Command: command, Shown: s.Base.Command, Env: launch.With(s.Base.Env, t.env),
		Channels: channels, OutDir: outDir, Interval: s.Base.Interval, Duration: s.Base.Duration,
		Grace: cmp.Or(s.Base.Grace, time.Minute), Patience: s.Base.Patience, SnapshotOn: "oom,exit", KeepSnapshots: true,
	}
	if t.atMost > 0 && (o.Duration == 0 || o.Duration > t.atMost) {
		o.Duration = t.atMost
	}
	if n, err := strconv.ParseUint(s.Until, 10, 64); err == nil {
		o.Steps = n
	}
	o.Helpers = s.Helpers.with(agent, device, outDir != "" && !s.Base.NoStacks)
	vendor := newImaginary(imaginaryGPUs(&t.gpu, t.count), states...)
	o.Devices = append(o.Devices, vendor)
	return o, vendor
}

// device is what the trial has the device library do; state is where its table stands.
func (t *trial) device(state string) map[string]string {
	env := map[string]string{"HIGHTIDE_DEVICE_TABLE": state, "HIGHTIDE_DEVICE_SPEC": DeviceSpec(&t.gpu, t.count)}
	if t.lag {
		env["HIGHTIDE_DEVICE_LAG"] = "1"
	}
	return env
}

// agent is what the trial has the agent do once CUDA is used.
func (t *trial) agent(first ...string) map[string]string {
	env := mergeEnv(t.told)
	switches := slices.DeleteFunc(slices.Concat(first, t.switches), func(s string) bool { return s == "" })
	if len(switches) > 0 {
		env["HIGHTIDE_IMAGINE_SWITCH"] = strings.Join(switches, ",")
	}
	if t.plan != nil && t.plan.Agent() != "" {
		env[levers.Variable] = t.plan.Agent()
	}
	if t.blocks {
		env[levers.Blocks] = "1"
	}
	if t.counted {
		env[levers.Counted] = "1"
	}
	return env
}

// setup is what the verdict needs to know of a trial.
func (s *Session) setup(t *trial) mem.ImaginedSetup {
	g := &t.gpu
	return mem.ImaginedSetup{GPU: g.Slug, Name: g.Name, Compute: g.Compute, SMs: g.SMs, Count: t.count, Total: g.Total,
		TotalLabel: g.Label(), Context: g.Overhead, Contexts: g.Overheads(), Tight: g.Tight(),
		GraphNode: gpus.GraphNode, GraphNodes: mem.Range{Low: gpus.GraphNodeLow, High: gpus.GraphNodeHigh},
		Price: g.Price, Steps: s.Until, Sizes: cmp.Or(t.sizes, s.Sizes),
		AllocConf: cmp.Or(AllocatorSetting(launch.With(s.Base.Env, t.env)), "default"),
		ReadValue: strings.Join(s.ReadValues, " "), World: s.World, Users: s.Users, Tokens: s.Tokens,
		Load: cmp.Or(s.Load, t.load)}
}

// DeviceSpec is the text that the device library makes its GPUs of (docs/formats/device.md).
func DeviceSpec(g *gpus.GPU, count int) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(";|=", r) {
			return -1
		}
		return r
	}, g.Name)
	spec := fmt.Sprintf("count=%d;name=%s;slug=%s;memory=%d;context=%d;graph_node=%d;cc=%s;sms=%d", count, name, g.Slug,
		g.Total, g.Overhead, gpus.GraphNode, g.Compute, g.SMs)
	if g.L2 > 0 {
		spec += fmt.Sprintf(";l2=%d", g.L2)
	}
	if g.Clock > 0 {
		spec += fmt.Sprintf(";clock_khz=%.0f", g.Clock*1000)
	}
	if g.Bandwidth > 0 { // two transfers each clock, of as many bits as the bus has
		bus := busBits(g)
		spec += fmt.Sprintf(";bus_bits=%d;memory_khz=%.0f", bus, g.Bandwidth*1e6*8/2/float64(bus))
	}
	return spec
}

// busBits is a width of the memory's bus with which the clock is one that such memory has: stacked, or beside the chip.
func busBits(g *gpus.GPU) int {
	if major, minor, _ := g.Capability(); minor == 0 && 6 <= major && major <= 10 {
		return 5120
	}
	return 384
}

func imaginaryGPUs(g *gpus.GPU, count int) []mem.GPU {
	list := make([]mem.GPU, count)
	for i := range list {
		list[i] = mem.GPU{Index: i, Vendor: "NVIDIA (imaginary)", Name: g.Name, Memory: mem.Some(int64(g.Total))}
	}
	return list
}

// price fills in what the catalogue knows beyond the run.
func priced(v mem.GPUVerdict, g *gpus.GPU) mem.GPUVerdict {
	v.GPU, v.GPUName, v.Compute, v.SMs, v.Price = g.Slug, g.Name, g.Compute, g.SMs, g.Price
	return v
}

// planned is a trial with a plan: the agent gets its levers, the program its allocator settings.
func (s *Session) planned(t trial, plan *levers.Plan) trial {
	t.plan = plan
	t.env = mergeEnv(t.env, plan.Variables(s.Base.Env))
	if _, set := plan.Levers[levers.Allocator]; set {
		return s.setting(t, plan.AllocatorSettings(AllocatorSetting(launch.With(s.Base.Env, t.env))))
	}
	return t
}

// PlanRefused is why the program was ended before it trained; "": it was not.
func (r *Result) PlanRefused() string { return r.Fact(mem.FactPlanRefused) }

// Number is what the first of the program's processes says that counted a thing.
func (r *Result) Number(name string) mem.Optional {
	for _, p := range r.run.Processes {
		if n := p.Number(name); n.Known() {
			return n
		}
	}
	return mem.Optional{}
}

// Uses says whether a process of the run had a framework, by the name of its package.
func (r *Result) Uses(framework string) bool {
	return slices.ContainsFunc(r.run.Processes, func(p *mem.Process) bool { return p.Frameworks[framework] != "" })
}

// Frames is the run, of which analyses find more.
func (r *Result) Frames() *mem.Run { return r.run }

// Fact is what the first of the program's processes says that says anything of a thing.
func (r *Result) Fact(key string) string {
	for _, p := range r.run.Processes {
		if value := p.Facts[key]; value != "" {
			return value
		}
	}
	return ""
}
