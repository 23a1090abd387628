package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/hub"
	"hightide/internal/modelfile"
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
	config, forget, err := o.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.Model = cmp.Or(config, m.Model)
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
	cleanup := forget
	if m.Imagined {
		environment, remove, err := host.Device(result.GPU, o.AllocConf)
		if err != nil {
			forget()
			return nil, nil, err
		}
		c.Env, cleanup = environment(c.Env), func() { remove(); forget() }
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
	result.Worker.Model = o.Model.Model
	return func(ask Ask) (Trial, error) { return answers.Try(ask, result.Label) }, end, nil
}

// config is a file with the configuration of the model that is named: that of a folder, a file, or a model of the Hugging
// Face hub, read as `hightide plan` reads it. "": the name is another one, as of a type, and the worker knows it.
func (o *Options) config(ctx context.Context) (file string, forget func(), err error) {
	forget = func() {}
	name := o.Model.Model
	if _, err := os.Stat(name); strings.Contains(name, ":") || err != nil && (!hub.IsName(name) || strings.HasSuffix(name, ".json")) {
		return "", forget, nil
	}
	source, err := hub.Open(ctx, name, hub.Options{MayRead: o.MayRead})
	if err != nil {
		return "", forget, err
	}
	text, err := modelfile.Config(source.Files, source.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", forget, fail.Input("name a config.json of transformers, or a folder with one", "%s has no config.json", name)
	case err != nil:
		return "", forget, fail.Input("name a config.json of transformers, or a folder with one", "%w", err)
	}
	dir, err := os.MkdirTemp("", "hightide-fit-")
	if err != nil {
		return "", forget, fail.Environment("is the temporary folder full?", "keep the model's configuration: %w", err)
	}
	file = filepath.Join(dir, "config.json")
	return file, func() { _ = os.RemoveAll(dir) }, os.WriteFile(file, text, 0o600)
}

// HasBatch says whether a command says where its batch size goes.
func HasBatch(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, batchPlace) })
}

// WithBatch puts a batch size into the command.
func WithBatch(command []string, batch int) []string {
	out := slices.Clone(command)
	for i, word := range out {
		out[i] = strings.ReplaceAll(word, batchPlace, fmt.Sprint(batch))
	}
	return out
}
