package engine

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
)

// ImagineOptions of Imagine; only Command, Env and GPU are needed. Of RunOptions, Steps is not looked at: Until has
// its place.
type ImagineOptions struct {
	RunOptions
	imagine.Options
}

// ImagineResult is what came of it. Verdict is nil where the recording could not be read back.
type ImagineResult struct {
	RunResult
	Verdict *report.Imagined
}

// Imagine runs a program on GPUs that are not there, records it and says whether it fits. An
// error means that there is no run; what came of a run that there was is in the result.
func (e *Engine) Imagine(ctx context.Context, o ImagineOptions) (*ImagineResult, error) {
	if err := o.RunOptions.check(); err != nil {
		return nil, err
	}
	s, err := e.imagineSession(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer e.Runtime.TuneTo(launch.Recording)()
	result := &ImagineResult{}
	p, err := e.place(o.begins(e, "imagine", mem.Imagined), &result.RunResult)
	if err != nil {
		return nil, err
	}
	defer p.store.Close()
	o.Events.Tell(p.begun(ctx, &result.RunResult))
	s.Base.ID, s.Base.OutDir = result.ID, p.engine.scratch(result.ID)
	main, err := s.Run(ctx, p.writer)
	result.Notes = append(result.Notes, s.Notes...)
	p.close(&result.RunResult, err == nil)
	if err != nil {
		return nil, err
	}
	result.Outcome, result.Verdict = main.Outcome, main.Imagined
	p.conclude(&o.RunOptions, &result.RunResult)
	if result.Report != nil && result.Report.Imagined != nil {
		result.Verdict = result.Report.Imagined
	}
	return result, nil
}

// imagineSession prepares a session of package imagine that records by this engine.
func (e *Engine) imagineSession(ctx context.Context, o *ImagineOptions) (*imagine.Session, error) {
	base := o.RunOptions.Options
	base.Version, base.Runtime = Version, o.sharing(e.Runtime)
	s, err := imagine.New(ctx, o.Options, base)
	if err != nil {
		return nil, err
	}
	helpers, err := e.imagineHelpers()
	if err != nil {
		return nil, err
	}
	s.Helpers = *helpers
	s.Record = func(ctx context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
		outcome, err := observe.Run(ctx, o, sink)
		if err != nil {
			err = launchError(err)
		}
		return outcome, err
	}
	return s, nil
}

// Fit searches the largest batch that fits. Trials that ran before an error are in the result, which
// is then not nil.
func (e *Engine) Fit(ctx context.Context, o fit.Options) (*fit.Result, error) {
	stderr := io.Discard
	if e.Runtime.Stderr != nil {
		stderr = e.Runtime.Stderr
	}
	return fit.Run(ctx, o, fit.Host{Now: e.Runtime.Time, Stderr: stderr, Worker: e.fitWorker, Device: e.fitDevice, Script: e.fitScript})
}

// fitWorker is where the worker stands: beside the agent.
func (e *Engine) fitWorker() (string, error) {
	dir, _, err := e.UnpackAgent()
	if err != nil {
		return "", fail.Environment("is there room, and can it be written to?", "unpack the worker: %w", err)
	}
	return filepath.Join(dir, "hightide", "_fit", "worker.py"), nil
}

// measuredSteps are enough for the optimizer's state and a median of the time.
const measuredSteps = 8

// fitScript runs the command once a trial: on an imaginary GPU until its memory is steady, on this
// machine's for a few steps.
func (e *Engine) fitScript(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	if o.Device == "imaginary" {
		return e.fitImagined(ctx, o, result)
	}
	return func(ask fit.Ask) (fit.Trial, error) {
		run, err := e.Run(ctx, RunOptions{JSONOnStdout: true, Options: observe.Options{Command: fit.WithBatch(o.Command, ask.Batch), Env: o.Env,
			Name: fmt.Sprintf("fit batch %d", ask.Batch), Steps: measuredSteps, NoStacks: true, SnapshotOn: "never"}})
		if err != nil {
			return fit.Trial{}, err
		}
		return fit.MeasuredTrial(ask.Batch, run.ID, run.Report, run.Outcome.ExitCode)
	}, nil
}

// fitImagined runs the command on the imaginary GPU.
func (e *Engine) fitImagined(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	s, err := e.imagineSession(ctx, &ImagineOptions{RunOptions: RunOptions{Options: observe.Options{Command: fit.WithBatch(o.Command, 1), Env: o.Env}},
		Options: imagine.Options{GPU: o.GPU, Catalogue: o.Catalogue, Memory: result.GPU.Total, AllocConf: o.AllocConf}})
	if err != nil {
		return nil, err
	}
	s.Base.ID = "fit"
	result.Worker.Versions = map[string]string{"torch": s.Python.Frameworks["torch"]}
	result.Worker.Python = s.Python.Path
	return func(ask fit.Ask) (fit.Trial, error) {
		done, err := s.Try(ctx, fit.WithBatch(o.Command, ask.Batch))
		if err != nil {
			return fit.Trial{}, err
		}
		return fit.ImaginedTrial(ask.Batch, done.Imagined, done.Said)
	}, nil
}

// fitDevice prepares the imaginary GPU for the worker; environment puts it into an environment.
func (e *Engine) fitDevice(gpu *gpus.GPU, allocConf string) (environment func([]string) []string, remove func(), err error) {
	observe.Leftovers(&e.Runtime, func(observe.Leftover) {}) // what a killed search left goes
	helpers, err := e.imagineHelpers()
	if err != nil {
		return nil, nil, err
	}
	shared, err := observe.Hold(observe.SharedPath(e.Runtime.SharedDir(), "fit"), "", "")
	if err != nil {
		return nil, nil, fail.Environment("is there room in shared memory? see df /dev/shm", "%w", err)
	}
	device := helpers.Device
	device.Env = map[string]string{"HIGHTIDE_DEVICE_TABLE": filepath.Join(shared.Dir, "device-table"), "HIGHTIDE_DEVICE_SPEC": imagine.DeviceSpec(gpu, 1)}
	vars := map[string]string{}
	if allocConf != "" {
		vars[allocator.Variable] = allocConf
	}
	return func(env []string) []string {
		return launch.Environment(launch.With(env, vars), []launch.Helper{device}, nil)
	}, shared.Close, nil
}

// ImagineSummary is what `imagine --json` prints: that of a run, and the verdict.
type ImagineSummary struct {
	Summary
	*report.Imagined
}

// Summary of a run that ended.
func (r *ImagineResult) Summary() ImagineSummary {
	s := ImagineSummary{r.RunResult.Summary(), r.Verdict}
	s.Label = mem.Imagined
	return s
}
