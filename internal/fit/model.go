package fit

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/pythons"
)

// modelTrials starts the worker that builds the model once and forks for each trial.
func modelTrials(ctx context.Context, o *Options, result *Result, host Host) (Try, func(), error) {
	python, err := pythons.WithTorch(ctx, o.Python, o.Device)
	if err != nil {
		return nil, nil, err
	}
	worker, err := host.Worker()
	if err != nil {
		return nil, nil, err
	}
	m := o.Model
	m.Device, m.Imagined = "cuda", o.Device == "imaginary"
	if o.Device == "cpu" {
		m.Device = "cpu"
	}
	options, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	c := exec.CommandContext(ctx, python, worker, string(options))
	c.Stderr = host.Stderr
	c.Env = append(slices.Clone(o.Env), "PYTHONDONTWRITEBYTECODE=1")
	cleanup := func() {}
	if m.Imagined {
		environment, remove, err := host.Device(result.GPU, o.AllocConf)
		if err != nil {
			return nil, nil, err
		}
		c.Env, cleanup = environment(c.Env), remove
	}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil {
		cleanup()
		return nil, nil, fmt.Errorf("start %s: %w %w", python, err1, err2)
	}
	if err := c.Start(); err != nil {
		cleanup()
		return nil, nil, fail.Environment("name another with --python", "start %s: %w", python, err)
	}
	end := func() {
		_ = in.Close()
		_ = c.Wait()
		cleanup()
	}
	answers, err := NewWorker(in, out)
	if err == nil && answers.Ready.Problem != "" {
		err = fail.Input(answers.Ready.Hint, "%s", answers.Ready.Problem)
	}
	if err != nil {
		end()
		return nil, nil, fitError(err)
	}
	result.Worker = answers.Ready
	return func(ask Ask) (Trial, error) { return answers.Try(ask, result.Label) }, end, nil
}

// WithBatch puts a batch size into the command.
func WithBatch(command []string, batch int) []string {
	out := slices.Clone(command)
	for i, word := range out {
		out[i] = strings.ReplaceAll(word, batchPlace, fmt.Sprint(batch))
	}
	return out
}
