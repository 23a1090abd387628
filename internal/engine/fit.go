package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/fit"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
)

// Fit searches the largest batch that fits. Trials that ran before an error are in the result, which
// is then not nil.
func (e *Engine) Fit(ctx context.Context, o fit.Options) (*fit.Result, error) {
	return fit.Run(ctx, o, fit.Host{Stderr: e.stderr(), Worker: fitWorkerPath, Device: e.fitDevice, Script: e.fitScript})
}

// fitWorkerPath unpacks the agent's folder, where the worker stands too.
func fitWorkerPath() (string, error) {
	files, err := agentFiles()
	if err != nil {
		return "", fmt.Errorf("no agent in this build: %w", err)
	}
	dir, err := launch.Extract(files, helperParents(filepath.Join(os.TempDir(), fmt.Sprintf("hightide-%d", os.Getuid())))...)
	if err != nil {
		return "", EnvironmentError("is there room, and may it be written to?", "unpack the worker: %w", err)
	}
	return filepath.Join(dir, "agent", "hightide", "_fit", "worker.py"), nil
}

// fitScript runs the command once a trial: on an imaginary GPU until its memory is steady, on this
// machine's for a few steps.
func (e *Engine) fitScript(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	if o.Device == "imaginary" {
		return e.imaginedScripts(ctx, o, result)
	}
	return func(ask fit.Ask) (fit.Trial, error) {
		run, err := e.Run(ctx, RunOptions{Command: fit.WithBatch(o.Command, ask.Batch), Env: o.Env, Steps: measuredSteps, NoStacks: true,
			Name: fmt.Sprintf("fit batch %d", ask.Batch), JSONOnStdout: true, SnapshotOn: "never"})
		if err != nil {
			return fit.Trial{}, err
		}
		return measuredTrial(run, ask.Batch)
	}, nil
}

// measuredSteps are enough for the optimizer's state and a median of the time.
const measuredSteps = 8

// measuredTrial reads a trial off a recording of this machine.
func measuredTrial(run *RunResult, batch int) (fit.Trial, error) {
	t := fit.Trial{Batch: batch, Label: mem.Measured}
	if run.Report == nil {
		return t, &fit.TrialError{Text: "the trial's recording could not be read"}
	}
	peak := run.Report.Headline.Peak
	t.Allocated, t.Reserved, t.Used, t.StepTime = peak.Allocated, peak.Reserved, peak.DeviceUsed, run.Report.Headline.StepTime
	for _, f := range run.Report.Findings {
		if f.Kind == report.KindOOM {
			t.Problem = f.Title
			return t, nil
		}
	}
	if code := run.Outcome.ExitCode.Or(1); code != 0 {
		return t, &fit.TrialError{Text: fmt.Sprintf("the command ended with exit code %d and not for want of memory; hightide show %s", code, run.ID)}
	}
	t.OK = true
	return t, nil
}

// imaginedScripts runs the command on the imaginary GPU.
func (e *Engine) imaginedScripts(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	s, err := e.imagineSession(ctx, &ImagineOptions{RunOptions: RunOptions{Command: fit.WithBatch(o.Command, 1), Env: o.Env},
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
		return imaginedTrial(done, ask.Batch)
	}, nil
}

// imaginedTrial reads a trial off an imagined run.
func imaginedTrial(done *imagine.Result, batch int) (fit.Trial, error) {
	v := done.Imagined
	t := fit.Trial{Batch: batch, OK: v.Fits(), Allocated: v.Allocated, Reserved: v.Reserved, Used: v.Used,
		Total: mem.Some(int64(v.Total)), Label: mem.Imagined}
	switch {
	case t.OK:
		if used, ok := v.Used.Get(); ok && v.Reserved.Known() {
			t.Capacity = mem.Some(int64(v.Total) - used + v.Reserved.Or(0))
		}
	case v.Verdict == mem.VerdictOOM:
		t.Problem = "out of memory"
		if v.Note != "" {
			t.Problem = v.Note
		}
	default:
		text := fmt.Sprintf("the command gave no verdict: %s", cmp.Or(v.How, string(v.Verdict)))
		if done.Said != "" && !strings.Contains(text, done.Said) {
			text += "; its last words: " + done.Said
		}
		return t, &fit.TrialError{Text: text}
	}
	return t, nil
}

// fitDevice prepares the imaginary GPU for the worker; environment puts it into an environment.
func (e *Engine) fitDevice(gpu *gpus.GPU, allocConf string) (environment func([]string) []string, remove func(), err error) {
	observe.Leftovers(e.Runtime.SharedDir(), func(observe.Leftover) {}) // what a killed search left goes
	shared, err := observe.Hold(observe.SharedPath(e.Runtime.SharedDir(), "fit"), "", "")
	if err != nil {
		return nil, nil, EnvironmentError("is there room in shared memory? see df /dev/shm", "%w", err)
	}
	helpers, err := imagineHelpers(e.helpersDir())
	if err != nil {
		shared.Close()
		return nil, nil, err
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
