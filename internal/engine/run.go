package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/frameworks"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// RunOptions of Run; only Command and Env are needed. Of observe.Options the engine itself sets who and where
// the run is: ID, Version, Verb, Label, Helpers, Runtime, Channels, OutDir and Settings.
type RunOptions struct {
	observe.Options
	Out          string // also leave the recording in this file
	JSONOnStdout bool   // stdout is ours: the command's goes to stderr
	JSONFile     string // where the caller will write the result; looked at before the command starts
	HTML         bool   // write the HTML report into the run's folder
	KeepOutput   bool   // keep what the program writes with the run, see Output
	Plan         string // file of the levers that are applied
	Rescue       bool   // a known trainer's step that runs out of memory is done again in micro-batches
	KeepLimit    int64  // bytes of it: of more the beginning and the end; 0: any number
	Retry        int    // how often it is started again, with the next plan, where memory ran out
	OutputApart  bool   // keep it, and what goes to a terminal does not appear there

	Loaded func(*mem.Run) // takes the recording before it is explained; nil: nobody does
	start  levers.Start   // which of the starts it is, with Retry
	guest  *guest         // of a Target: what the agent is brought into; nil: it is not
}

// Shared are the settings of every recording.
func (o *RunOptions) Shared() options.List {
	return append(o.Options.Shared(), options.Setting{Name: "output", Short: "o", To: &o.Out,
		Help: "also leave the recording in this `file`", Not: options.CommandOnly, Why: "it names a file that is written"})
}

// Settings are what a user can set of a recorded run. There is no door to one but the command, and hightide.init,
// which joins a program that runs already.
func (o *RunOptions) Settings() options.List {
	list := append(o.Options.Settable(), options.List{
		*o.Shared().Find("output"), levers.Setting(&o.Plan),
		{Name: "rescue", Help: "where a step of transformers' Trainer runs out of memory, do it again in micro-batches", To: &o.Rescue},
		{Name: "retry", Help: "where memory ran out, start the command again with the next plan, at most `number` times; " +
			"HIGHTIDE_RETRY then says to it how often it was started before", To: &o.Retry, Least: 1},
		{Name: "capture", Help: "keep what the program writes with the run, as well as showing it", To: &o.KeepOutput},
		{Name: "capture-limit", Help: "keep about `size` of it at most: of a longer output the beginning and the end, half " +
			"each; none keeps all", To: keepLimit{&o.KeepLimit}, Default: "256MiB"},
	}...)
	for i := range list {
		if s := &list[i]; s.Name != "name" && s.Name != "tag" && s.Name != "interval" {
			s.Not |= options.Python // hightide.alert takes the limits of alert
		}
	}
	return list.Without(options.HTTP|options.MCP|options.Form, "only a command begins a recorded run")
}

// keepLimit reads how much of an output is kept.
type keepLimit struct{ to *int64 }

const leastKept = 64 * mem.KiB

func (k keepLimit) String() string {
	if *k.to == 0 {
		return ""
	}
	return strings.ReplaceAll(mem.Bytes(*k.to).String(), " ", "")
}

func (k keepLimit) Set(text string) error {
	if text == "none" {
		*k.to = 0
		return nil
	}
	limit, err := mem.ParseBytes(text)
	if err != nil || limit < leastKept {
		return fail.Usage("as in --capture-limit 64MiB, or none", "--capture-limit takes a size of %v or more, not %q",
			leastKept, text)
	}
	*k.to = int64(limit)
	return nil
}

// RunResult is what came of a run.
type RunResult struct {
	ID        string
	File      string // the recording; "" where it is in no file
	Elsewhere string // why the data directory could not be written to, and in which File is instead; "" where it is there
	HTML      string // the HTML report; "" where none was written
	Outcome   observe.Outcome
	Report    *report.Report // nil where the recording could not be read back
	Notes     []string       // what went wrong or could not be observed, for people

	plan *levers.Plan // that was to be applied; nil: none
}

// note keeps what went wrong, for people.
func (r *RunResult) note(err error) {
	if err != nil {
		r.Notes = append(r.Notes, err.Error())
	}
}

// Run runs a command, records it and explains the recording. An error means that the command did
// not run; what goes wrong later is in Notes.
func (e *Engine) Run(ctx context.Context, o RunOptions) (*RunResult, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var plan *levers.Plan
	if o.Plan != "" {
		var err error
		if plan, err = levers.Read(o.Plan); err != nil {
			return nil, err
		}
		if _, err = imagine.Changed(plan, o.Command); err != nil {
			return nil, err
		}
	}
	var result *RunResult
	first := levers.Start{Most: o.Retry, Since: e.Runtime.Time().UnixNano()}
	err := levers.Retry(first, plan, func(s levers.Start, plan *levers.Plan) (ran levers.Ran, err error) {
		o.start = s
		if result, err = e.record(ctx, o, "run", &RunResult{plan: plan}); err != nil {
			return ran, err
		}
		return levers.Ran{ID: result.ID, Refused: result.whyRefused(),
			Again: result.ranOut() && ctx.Err() == nil && !result.Outcome.Stopped}, nil
	}, func(s levers.Start, plan *levers.Plan) {
		o.Events.Tell(event.Alert{Text: fmt.Sprintf("memory ran out in run %s; start %d of at most %d, with %s", s.Before,
			s.Number+1, s.Most+1, plan.Changes())})
	})
	if err != nil {
		return nil, err
	}
	return result, result.refusedPlan()
}

// record records a command, or a process that runs already, and explains the recording.
func (e *Engine) record(ctx context.Context, o RunOptions, verb string, result *RunResult) (*RunResult, error) {
	p, err := e.place(o.begins(e, verb, mem.Measured), result)
	if err != nil {
		return nil, err
	}
	defer p.store.Close()
	options := p.engine.observed(&o, verb, result)
	done, err := e.keepOutput(ctx, &o, options, p, result)
	if err != nil {
		p.close(result, false)
		return nil, err
	}
	if o.Target != nil {
		options.Begun, options.Brings = announcing(o.Events, options, p, o.guest), o.guest != nil
	}
	tuned := e.Runtime.TuneTo(launch.Recording)
	result.Outcome, err = observe.Run(ctx, options, p.writer)
	tuned()
	done()
	if err != nil {
		p.close(result, false)
		return nil, launchError(err)
	}
	p.tellPlan(result)
	if o.start.Number > 0 {
		result.note(p.writer.Write(o.start.Event(result.plan)))
	}
	p.conclude(ctx, &o, result)
	if lost := p.writer.Lost(); lost.Frames > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("the recording lacks %d records: %v", lost.Frames, lost.Err))
	}
	return result, nil
}

// tellPlan writes into the recording what was planned.
func (p *place) tellPlan(result *RunResult) {
	if result.plan != nil {
		result.note(p.writer.Write(result.plan.Event()))
	}
}

// refusedPlan is the error of a program that was ended as its plan could not be applied.
func (r *RunResult) refusedPlan() error {
	if why := r.whyRefused(); why != "" {
		return fail.Input("hightide tune makes a plan for this program", "%s cannot be applied: %s", r.plan.Name(), why)
	}
	return nil
}

// whyRefused is why the plan could not be applied; "": it could, or there is none.
func (r *RunResult) whyRefused() string {
	if r.plan == nil || r.Report == nil {
		return ""
	}
	for i := range r.Report.Processes {
		if why := r.Report.Processes[i].Facts[mem.FactPlanRefused]; why != "" {
			return why
		}
	}
	return ""
}

// Unplanned is, of a run that ended, what of its plan did not reach the program; "": all of it did, or there is none.
func (r *RunResult) Unplanned() string {
	if r.plan == nil || r.Report == nil {
		return ""
	}
	applied := r.plan.Agent() == ""
	for i := range r.Report.Processes {
		facts := r.Report.Processes[i].Facts
		if text := facts[mem.FactPlanLeft]; text != "" {
			return r.plan.Name() + ": " + strings.TrimSuffix(text, ".")
		}
		applied = applied || facts[mem.FactPlan] != ""
	}
	if !applied {
		return r.plan.Name() + " was not applied: " + frameworks.Unseen(r.plan.Framework())
	}
	return ""
}

// ranOut says whether the program ended as memory ran out.
func (r *RunResult) ranOut() bool {
	return r.Report != nil && r.Report.Headline.Ended.Kind == mem.EndOOM
}

// begins is what a recording says of a run from its first byte on: whoever is killed right then leaves a run that is
// known. The rest follows once it is known.
func (o *RunOptions) begins(e *Engine, verb string, label mem.Label) mem.RunInfo {
	command := o.Command
	switch {
	case o.Shown != nil:
		command = o.Shown
	case o.Target != nil:
		command = o.Target.Command
	}
	return mem.RunInfo{Name: o.Name, Tags: o.Tags, Verb: verb, Label: label, Command: mem.MaskArgs(command),
		Version:   Version,
		StartMono: 1, StartWall: e.Runtime.Time().UnixNano()}
}

// smallRecording is up to where the report of a recording takes a few MiB: then saving memory costs more time than it
// is worth, and someone waits for the report.
const smallRecording = 256 << 10

// check refuses what cannot be before anything is made or started.
func (o *RunOptions) check() error {
	switch {
	case len(o.Command) == 0 && o.Target == nil:
		return fail.Usage("", "no command to run")
	case o.Interval < 0 || o.Interval > 0 && o.Interval < time.Millisecond:
		return fail.Usage("as in --interval 100ms", "a sampling interval of %v is too short", o.Interval)
	case o.Memory > 0 && o.Memory < mem.MiB:
		return fail.Usage("as in --memory 512MiB", "--memory %v is less than any program takes", o.Memory)
	case o.Duration < 0:
		return fail.Usage("as in --duration 90s", "--duration %v is not a time to wait for", o.Duration)
	}
	if err := levers.Alone(o.Env); err != nil && o.Target == nil {
		return err
	}
	for _, file := range []struct{ what, path string }{{"the recording", o.Out}, {"the result", o.JSONFile}} {
		if file.path == "" {
			continue
		}
		if err := files.CheckFolder(file.path, file.what); err != nil {
			return err
		}
	}
	if err := observe.CheckSnapshotOn(o.SnapshotOn); err != nil {
		return fail.Usage("as in --snapshot-on oom,step:10", "%w", err)
	}
	for _, a := range o.Alerts {
		if o.NoStacks && !o.Tracemalloc && a.Series == mem.SeriesHeapLive {
			return fail.Usage("leave one of them out",
				"alert %q needs the heap to be sampled, and --no-stacks switches that off", a.Text)
		}
	}
	return nil
}

// observed are the options as package observe takes them.
func (e *Engine) observed(o *RunOptions, verb string, result *RunResult) *observe.Options {
	to := o.Options
	to.ID, to.Version, to.Verb, to.Label = result.ID, Version, verb, mem.Measured
	to.Tags, to.Runtime, to.Settings = maps.Clone(o.Tags), o.sharing(e.Runtime), o.settings()
	to.Channels, to.OutDir = e.channelDir(result), e.scratch(result.ID)
	var notes []string
	to.Helpers, notes = e.helpers(!o.NoStacks && !o.Tracemalloc)
	result.Notes = append(result.Notes, notes...)
	if result.plan != nil {
		applyPlan(result.plan, &to)
	}
	for name, value := range o.start.Variables() {
		tellAgent(&to, name, value)
	}
	if o.Rescue {
		tellAgent(&to, "HIGHTIDE_RESCUE", "1")
	}
	return &to
}

// applyPlan has the agent apply the levers, and sets the allocators' settings for the program and the words of its command.
func applyPlan(plan *levers.Plan, to *observe.Options) {
	if command, err := imagine.Changed(plan, to.Command); err == nil { // else it was refused before
		to.Command = command
	}
	if _, set := plan.Levers[levers.Allocator]; set {
		to.Env = launch.With(to.Env, map[string]string{allocator.Variable: plan.AllocatorSettings(
			imagine.AllocatorSetting(to.Env))})
	}
	to.Env = launch.With(to.Env, plan.Variables(to.Env))
	if plan.Agent() != "" {
		tellAgent(to, levers.Variable, plan.Agent())
	}
}

// tellAgent gives the agent a variable.
func tellAgent(to *observe.Options, name, value string) {
	for i := range to.Helpers {
		if h := &to.Helpers[i]; h.Name == "agent" {
			h.Env = maps.Clone(h.Env)
			h.Env[name] = value
		}
	}
}

// sharing is what the program gets of this process. Where stdout is wanted for the result, the program's goes to
// stderr.
func (o *RunOptions) sharing(r launch.Runtime) launch.Runtime {
	if o.JSONOnStdout {
		r.Stdout = r.Stderr
	}
	return r
}

// settings are what a reader of the report wants to know of how the run was made.
func (o *RunOptions) settings() map[string]string {
	settings := map[string]string{"interval": (100 * time.Millisecond).String(), "stacks": fmt.Sprint(!o.NoStacks)}
	if o.Interval > 0 {
		settings["interval"] = o.Interval.String()
	}
	if o.Steps > 0 {
		settings["steps"] = fmt.Sprint(o.Steps)
	}
	if o.Duration > 0 {
		settings["duration"] = o.Duration.String()
	}
	return settings
}

// channelDir is a new folder for channels: in shared memory, else on disk, where the system then writes
// it for nothing but still works.
func (e *Engine) channelDir(result *RunResult) string {
	root := e.Runtime.SharedDir()
	if err := launch.MakePrivate(root); err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("what programs report goes over the disk: %v", err))
		root = e.scratch(result.ID)
		if launch.MakePrivate(root) != nil {
			if dir, err := os.MkdirTemp("", "hightide-"); err == nil {
				root = dir
			}
		}
	}
	return observe.SharedPath(root, result.ID)
}

// refused gives a command that cannot be started its exit code; any other error stays as it is.
func refused(err error) error {
	var launched *launch.Error
	if errors.As(err, &launched) {
		return &fail.Error{Code: launched.Code, Err: err, Hint: launched.Hint}
	}
	return err
}

func launchError(err error) error {
	if err := refused(err); fail.Code(err) != fail.ExitOwn {
		return err
	}
	return fail.Environment("is there room in shared memory? see df /dev/shm", "start: %w", err)
}

// place is where a run is recorded, and the engine of that place.
type place struct {
	engine *Engine
	store  store.Store
	writer store.Writer
}

// place opens a recording. Where the data directory cannot be written, it goes to a folder that can:
// a run of hours is not to fail for that.
func (e *Engine) place(info mem.RunInfo, result *RunResult) (*place, error) {
	p, err := e.create(info)
	if errors.Is(err, store.ErrPlace) {
		other := &Engine{DataDir: temporaryDir(), Runtime: e.Runtime}
		if launch.MakePrivate(other.DataDir) != nil { // it may be a stranger's
			other.DataDir, _ = os.MkdirTemp("", "hightide-")
		}
		if second, failed := other.create(info); failed == nil && other.DataDir != "" {
			result.Elsewhere = fmt.Sprintf("%v; recording into %s instead", err, other.DataDir)
			result.Notes = append(result.Notes, result.Elsewhere)
			if other.DataDir == temporaryDir() {
				e.spill(second.writer.ID())
			}
			p, err = second, nil
		}
	}
	if err != nil {
		return nil, advised(err)
	}
	result.ID = p.writer.ID()
	if err := os.MkdirAll(p.engine.scratch(result.ID), 0o700); err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("allocator snapshots cannot be taken: %v", err))
	}
	return p, nil
}

func (e *Engine) create(info mem.RunInfo) (*place, error) {
	if e.Store == nil && e.Dir() == temporaryDir() {
		_ = launch.MakePrivate(e.Dir()) // before anyone else can; store looks whose it is
	}
	s, err := e.store()
	if err != nil {
		return nil, err
	}
	writer, err := s.Create(info)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &place{e, s, writer}, nil
}

// close ends the recording; of a command that did not run nothing is kept.
func (p *place) close(result *RunResult, ran bool) {
	result.note(p.writer.Close())
	result.note(p.engine.keepLeftovers(p.store, result.ID))
	if !ran {
		_ = p.engine.remove(p.store, result.ID) // there is nothing in it
	}
	result.File = p.writer.Run().File
}

// conclude explains the recording, ends it with what was found, and leaves its copies where they were asked for. The
// report is made from the file, not from memory: what it says is what anyone will read later.
func (p *place) conclude(ctx context.Context, o *RunOptions, result *RunResult) {
	o.Events.Tell(event.Reporting{})
	result.note(p.writer.End())
	if p.writer.Run().Size > smallRecording {
		defer p.engine.Runtime.TuneTo(launch.Reporting)() // do not hold both, nor twice the report
	}
	_, run, err := store.Load(p.store, result.ID)
	result.note(err)
	if err == nil {
		if o.Loaded != nil {
			o.Loaded(run)
		}
		result.Report = Analyze(run)
		p.engine.hear(ctx, result.ID, result.Report)
		result.note(p.writer.Write(result.Report.Found()))
	}
	if err == nil && o.HTML {
		result.HTML, err = p.store.Attach(result.ID, "report.html", result.Report.HTML)
		result.note(err)
	}
	p.close(result, true)
	if o.Out != "" {
		result.note(copyRecording(o.Out, p.store, result.ID))
	}
}

func copyRecording(to string, s store.Store, id string) error {
	in, err := s.Open(id, store.Recording)
	if err != nil {
		return fmt.Errorf("copy recording: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("copy recording: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy recording: %w", err)
	}
	return nil
}

// Summary is what `run --json` prints; docs/formats/json.md documents it. What was not observed is
// absent, never 0.
type Summary struct {
	Version  int          `json:"version" doc:"The version of this form."`
	RunID    string       `json:"run_id" doc:"The id of the run, for later commands."`
	Name     string       `json:"name,omitempty" doc:"The name that it was given."`
	ExitCode mem.Optional `json:"exit_code" doc:"The command's exit code; null where a signal ended it."`
	Signal   mem.Optional `json:"signal,omitzero" doc:"The signal that ended it."`
	Stopped  bool         `json:"stopped_as_asked,omitempty" doc:"Whether --steps or --duration ended it, in good order or by the signal that followed. Of attach: the recording ended so, and the process went on."`

	Exception *report.Exception `json:"exception,omitempty" doc:"Of a program that failed: the Python exception that nobody caught, of the main process, else of a child."`

	Duration    int64               `json:"duration_ns" doc:"From the start to the end of the command, in ns."`
	Steps       uint64              `json:"steps" doc:"How many optimizer steps were completed; 0: there was no training."`
	Peak        report.Peak         `json:"peak" doc:"The highest of each figure."`
	PerStep     mem.Optional        `json:"growth_bytes_per_step,omitzero" doc:"Steady growth after the warm-up, in bytes a step; 0: looked for and not seen; absent: too few steps to tell."`
	Least       mem.Optional        `json:"growth_least_bytes,omitzero" doc:"Where growth is 0: the least over the run, of a process, that is told, in bytes."`
	NotLooked   string              `json:"not_looked_for,omitempty" doc:"What was not looked for, and why: then an empty list of findings says nothing of it."`
	Looked      string              `json:"looked_for,omitempty" doc:"From how much on growth would have been told, where none was."`
	StepTime    mem.Optional        `json:"step_time_ns,omitzero" doc:"The median of a step's time in ns; absent without steps, and on imaginary GPUs, where no kernel runs."`
	Findings    []report.Finding    `json:"findings" doc:"What was found, worst first."`
	MemoryLimit *report.MemoryLimit `json:"memory_limit,omitempty" doc:"Of a program that was allowed so much host memory: whether it ran in that."`

	Dropped   uint64    `json:"dropped" doc:"Records that were lost on the way."`
	Label     mem.Label `json:"label" doc:"Where the peak comes from."`
	Complete  bool      `json:"complete" doc:"Whether the recording has its end."`
	Recording string    `json:"recording,omitempty" doc:"The path of the recording."`
	HTML      string    `json:"html,omitempty" doc:"The path of the HTML report."`
	Notes     []string  `json:"notes,omitempty" doc:"What was not observed and why, for people."`
}

// Summary of a run that ended.
func (r *RunResult) Summary() Summary {
	s := Summary{
		Version: report.Version, RunID: r.ID, ExitCode: r.Outcome.ExitCode, Signal: r.Outcome.Signal,
		Stopped: r.Outcome.Stopped, Peak: report.Peak{Label: mem.Measured},
		Findings: []report.Finding{}, Label: mem.Measured, Recording: r.File, HTML: r.HTML, Notes: r.Notes,
	}
	if r.Report == nil {
		return s
	}
	head := &r.Report.Headline
	s.Name, s.Duration, s.Steps, s.Complete = r.Report.Run.Name, head.Duration, head.Steps, head.Complete
	s.Peak, s.PerStep, s.Least, s.NotLooked, s.Looked, s.StepTime = head.Peak, head.Growth, head.GrowthLeast,
		head.NotLooked, head.Looked, head.StepTime
	s.Exception, s.MemoryLimit = head.Exception, r.Report.MemoryLimit
	s.Findings = append(s.Findings, r.Report.Findings...)
	s.Dropped, s.Label = r.Report.Dropped, head.Peak.Label
	s.Notes = append(s.Notes, r.Report.Notes...)
	return s
}
