package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"syscall"
	"time"

	"hightide/internal/event"
	"hightide/internal/files"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Status is the run in brief, several times a second.
type Status = observe.Status

// RunOptions of Run; only Command and Env are needed.
type RunOptions struct {
	Command []string
	Env     []string
	Name    string
	Tags    map[string]string

	Interval     time.Duration
	Steps        uint64        // stop after that many optimizer steps; 0: never
	Duration     time.Duration // stop after that time; 0: never
	SnapshotOn   string        // comma list of oom, exit, step:N, or never
	NoStacks     bool
	Alerts       []string // as observe.ParseAlert reads them
	Out          string   // also leave the recording in this file
	JSONOnStdout bool     // stdout is ours: the command's goes to stderr
	JSONFile     string   // where the caller will write the result; looked at before the command starts
	HTML         bool     // write the HTML report into the run's folder

	Events event.Sink // what happens meanwhile; nil: nobody listens
}

// RunResult is what came of a run.
type RunResult struct {
	ID      string
	File    string // the recording; "" where it is in no file
	HTML    string // the HTML report; "" where none was written
	Outcome observe.Outcome
	Report  *report.Report // nil where the recording could not be read back
	Notes   []string       // what went wrong or could not be observed, for people
}

// Run runs a command, records it and explains the recording. An error means that the command did
// not run; what goes wrong later is in Notes.
func (e *Engine) Run(ctx context.Context, o RunOptions) (*RunResult, error) {
	alerts, err := o.check()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := &RunResult{}
	info := mem.RunInfo{Name: o.Name, Tags: o.Tags, Verb: "run", Label: mem.Measured, StartMono: 1}
	engine, files, writer, err := e.place(info, result)
	if err != nil {
		return nil, explain(err)
	}
	defer files.Close()
	result.ID = writer.ID()
	result.Outcome, err = e.record(ctx, engine.recordOptions(&o, result, alerts), writer)
	if closing := writer.Close(); closing != nil {
		result.Notes = append(result.Notes, closing.Error())
	}
	if kept := engine.keep(files, result.ID); kept != nil {
		result.Notes = append(result.Notes, kept.Error())
	}
	if err != nil {
		_ = engine.remove(files, result.ID) // there is nothing in it
		return nil, launchError(err)
	}
	if lost := writer.Lost(); lost.Frames > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("the recording lacks %d records: %v", lost.Frames, lost.Err))
	}
	row := writer.Run()
	result.File = row.File
	if row.Size > smallRecording {
		defer e.Runtime.TuneTo(Reporting)() // it is made from the file: do not hold both, nor twice the report
	}
	engine.conclude(&o, files, result)
	return result, nil
}

// record runs and records a command.
func (e *Engine) record(ctx context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
	defer e.Runtime.TuneTo(Recording)()
	return observe.Run(ctx, o, sink)
}

// check refuses what cannot be before anything is made or started.
func (o *RunOptions) check() ([]observe.Alert, error) {
	if len(o.Command) == 0 {
		return nil, UsageError("", "no command to run")
	}
	if o.Interval < 0 || o.Interval > 0 && o.Interval < time.Millisecond {
		return nil, UsageError("as in --interval 100ms", "a sampling interval of %v is too short", o.Interval)
	}
	if o.Duration < 0 {
		return nil, UsageError("as in --duration 90s", "a duration of %v", o.Duration)
	}
	for _, file := range []struct{ what, path string }{{"the recording", o.Out}, {"the result", o.JSONFile}} {
		if file.path == "" {
			continue
		}
		if err := files.CheckFolder(file.path, file.what); err != nil {
			return nil, err
		}
	}
	if err := observe.CheckSnapshotOn(o.SnapshotOn); err != nil {
		return nil, UsageError("as in --snapshot-on oom,step:10", "%w", err)
	}
	var alerts []observe.Alert
	for _, text := range o.Alerts {
		alert, err := observe.ParseAlert(text)
		if err != nil {
			return nil, UsageError("as in --alert 'host.rss > 8GiB'", "%w", err)
		}
		alerts = append(alerts, alert)
	}
	return alerts, nil
}

// smallRecording is up to where the report of a recording takes a few MiB: then saving memory costs more time than it is
// worth, and someone waits for the report.
const smallRecording = 256 << 10

// place opens a recording. Where the data directory cannot be written, it goes to a folder that can:
// a run of hours is not to fail for that.
func (e *Engine) place(info mem.RunInfo, result *RunResult) (*Engine, store.Store, store.Writer, error) {
	files, err := e.store()
	if err != nil {
		return nil, nil, nil, err
	}
	writer, err := files.Create(info)
	if err == nil {
		e.makeScratch(writer.ID(), result)
	}
	if err == nil || !errors.Is(err, store.ErrPlace) {
		return e, files, writer, err
	}
	files.Close()
	other := &Engine{DataDir: temporaryDir(), Runtime: e.Runtime}
	if launch.MakePrivate(other.DataDir) != nil {
		return nil, nil, nil, err
	}
	files, second := other.store()
	if second != nil {
		return nil, nil, nil, err
	}
	writer, second = files.Create(info)
	if second != nil {
		return nil, nil, nil, err
	}
	result.Notes = append(result.Notes, fmt.Sprintf("%v; recording into %s instead", err, other.DataDir))
	other.makeScratch(writer.ID(), result)
	return other, files, writer, nil
}

// recordOptions translates the options for package observe.
func (e *Engine) recordOptions(o *RunOptions, result *RunResult, alerts []observe.Alert) *observe.Options {
	helpers, notes := helpers(e.helpersDir(), !o.NoStacks)
	result.Notes = append(result.Notes, notes...)
	return &observe.Options{
		ID: result.ID, Name: o.Name, Tags: maps.Clone(o.Tags), Version: Version, Verb: "run", Label: mem.Measured,
		Command: o.Command, Env: o.Env, Helpers: helpers, Runtime: o.sharing(e.Runtime),
		Channels: e.channelDir(result), OutDir: e.scratch(result.ID), Interval: o.Interval, Steps: o.Steps, Duration: o.Duration,
		SnapshotOn: o.SnapshotOn, NoStacks: o.NoStacks, Alerts: alerts, Settings: o.settings(),
		Events: o.Events,
	}
}

// sharing is what the program gets of this process. Where stdout is wanted for the result, the program's goes to stderr.
func (o *RunOptions) sharing(r Runtime) Runtime {
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
		result.Notes = append(result.Notes, fmt.Sprintf("what programs tell goes over the disk: %v", err))
		root = e.scratch(result.ID)
	}
	return observe.SharedPath(root, result.ID)
}

func launchError(err error) error {
	var refused *launch.Error
	if errors.As(err, &refused) {
		return &Error{Code: refused.Code, Err: err}
	}
	return EnvironmentError("is there room in shared memory? see df /dev/shm", "start: %w", err)
}

// conclude explains the recording and leaves its copies where they were asked for. The report is
// made from the file, not from memory: what it says is what anyone will read later.
func (e *Engine) conclude(o *RunOptions, files store.Store, result *RunResult) {
	o.Events.Tell(event.Reporting{})
	note := func(err error) {
		if err != nil {
			result.Notes = append(result.Notes, err.Error())
		}
	}
	if o.Out != "" {
		note(copyRecording(o.Out, files, result.ID))
	}
	_, run, err := store.Load(files, result.ID)
	if err != nil {
		note(err)
		return
	}
	result.Report = Analyze(run)
	note(files.Note(result.ID, len(result.Report.Findings)))
	if o.HTML {
		result.HTML, err = files.Attach(result.ID, "report.html", result.Report.HTML)
		note(err)
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

// Die ends this process by a signal, as the command ended; it returns only where it cannot.
func Die(signal int) { launch.Die(syscall.Signal(signal)) }
