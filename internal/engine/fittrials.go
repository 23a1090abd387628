package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/experiment"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/report"
)

// modelTrials starts the worker that builds the model once and forks for each trial.
func (e *Engine) modelTrials(ctx context.Context, o *FitOptions, result *FitResult) (*fitRunner, error) {
	python, err := pythons.WithTorch(ctx, o.Python, o.Device != "cpu")
	if err != nil {
		return nil, err
	}
	worker, err := fitWorkerPath()
	if err != nil {
		return nil, err
	}
	m := o.Model
	m.Device, m.Imagined = "cuda", o.Device == "imaginary"
	if o.Device == "cpu" {
		m.Device = "cpu"
	}
	options, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, python, worker, string(options))
	c.Stderr = e.stderr()
	c.Env = append(slices.Clone(o.Env), "PYTHONDONTWRITEBYTECODE=1")
	cleanup := func() {}
	if m.Imagined {
		environment, remove, err := e.fitDevice(o, result)
		if err != nil {
			return nil, err
		}
		c.Env, cleanup = environment(c.Env), remove
	}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil {
		cleanup()
		return nil, fmt.Errorf("start %s: %w %w", python, err1, err2)
	}
	if err := c.Start(); err != nil {
		cleanup()
		return nil, EnvironmentError("name another with --python", "start %s: %w", python, err)
	}
	end := func() {
		_ = in.Close()
		_ = c.Wait()
		cleanup()
	}
	answers, err := experiment.NewWorker(in, out)
	if err == nil && answers.Ready.Problem != "" {
		err = InputError(answers.Ready.Hint, "%s", answers.Ready.Problem)
	}
	if err != nil {
		end()
		return nil, fitError(err)
	}
	result.Worker = answers.Ready
	return &fitRunner{
		try:   func(ask experiment.Ask) (experiment.Trial, error) { return answers.Try(ask, result.Label) },
		close: end,
	}, nil
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

// withBatch puts a batch size into the command.
func withBatch(command []string, batch int) []string {
	out := slices.Clone(command)
	for i, word := range out {
		out[i] = strings.ReplaceAll(word, batchPlace, fmt.Sprint(batch))
	}
	return out
}

// scriptTrials runs the command once a trial: on an imaginary GPU until its memory is steady, on this
// machine's for a few steps.
func (e *Engine) scriptTrials(ctx context.Context, o *FitOptions, result *FitResult) (*fitRunner, error) {
	if o.Device == "imaginary" {
		return e.imaginedScripts(ctx, o, result)
	}
	return &fitRunner{
		try: func(ask experiment.Ask) (experiment.Trial, error) {
			run, err := e.Run(ctx, RunOptions{Command: withBatch(o.Command, ask.Batch), Env: o.Env, Steps: measuredSteps, NoStacks: true,
				Name: fmt.Sprintf("fit batch %d", ask.Batch), JSONOnStdout: true, SnapshotOn: "never"})
			if err != nil {
				return experiment.Trial{}, err
			}
			return measuredTrial(run, ask.Batch)
		},
		close: func() {},
	}, nil
}

// measuredSteps are enough for the optimizer's state and a median of the time.
const measuredSteps = 8

// measuredTrial reads a trial off a recording of this machine.
func measuredTrial(run *RunResult, batch int) (experiment.Trial, error) {
	t := experiment.Trial{Batch: batch, Label: mem.Measured}
	if run.Report == nil {
		return t, &experiment.TrialError{Text: "the trial's recording could not be read"}
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
		return t, &experiment.TrialError{Text: fmt.Sprintf("the command ended with exit code %d and not for want of memory; hightide show %s", code, run.ID)}
	}
	t.OK = true
	return t, nil
}

// imaginedScripts runs the command on the imaginary GPU.
func (e *Engine) imaginedScripts(ctx context.Context, o *FitOptions, result *FitResult) (*fitRunner, error) {
	s, err := e.imagineSession(ctx, &ImagineOptions{RunOptions: RunOptions{Command: withBatch(o.Command, 1), Env: o.Env},
		Options: imagine.Options{GPU: o.GPU, Catalogue: o.Catalogue, Memory: result.GPU.Total, AllocConf: o.AllocConf}})
	if err != nil {
		return nil, err
	}
	s.Base.ID = "fit"
	result.Worker.Versions = map[string]string{"torch": s.Python.Frameworks["torch"]}
	result.Worker.Python = s.Python.Path
	return &fitRunner{
		try: func(ask experiment.Ask) (experiment.Trial, error) {
			done, err := s.Try(ctx, withBatch(o.Command, ask.Batch))
			if err != nil {
				return experiment.Trial{}, err
			}
			return imaginedTrial(done, ask.Batch)
		},
		close: func() {},
	}, nil
}

// imaginedTrial reads a trial off an imagined run.
func imaginedTrial(done *imagine.Result, batch int) (experiment.Trial, error) {
	v := done.Imagined
	t := experiment.Trial{Batch: batch, OK: v.Fits(), Allocated: v.Allocated, Reserved: v.Reserved, Used: v.Used,
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
		return t, &experiment.TrialError{Text: text}
	}
	return t, nil
}

// fitDevice prepares the imaginary GPU for the worker; environment puts it into an environment.
func (e *Engine) fitDevice(o *FitOptions, result *FitResult) (environment func([]string) []string, remove func(), err error) {
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
	device.Env = map[string]string{"HIGHTIDE_DEVICE_BOOKS": filepath.Join(shared.Dir, "books"), "HIGHTIDE_DEVICE_SPEC": imagine.DeviceSpec(result.GPU, 1)}
	vars := map[string]string{}
	if o.AllocConf != "" {
		vars[allocator.Variable] = o.AllocConf
	}
	return func(env []string) []string {
		return launch.Environment(launch.With(env, vars), []launch.Helper{device}, nil)
	}, shared.Close, nil
}
