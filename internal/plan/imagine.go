package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/hub"
	"hightide/internal/modelfile"
	"hightide/internal/pythons"
)

// imagine runs the use on the GPUs that may do it, the cheapest first. The answer stays whole wherever it ends.
func (o *Options) imagine(ctx context.Context, source *hub.Place, f *facts, places []Place, r *Result) error {
	if why := f.unimaginable(); why != "" {
		return fail.Usage("leave --imagine out: the figures are then estimated", "%s", why)
	}
	if err := o.Host.Check(); err != nil {
		return err
	}
	im := &imagining{facts: f, places: places, result: r, all: o.Imagine == ImagineAll, tell: o.Events,
		atOnce: o.Host.AtOnce}
	most := 0
	for _, row := range im.candidates() {
		most = max(most, row.Count)
	}
	if most == 0 {
		r.Notes = append(r.Notes, "nothing was imagined: no GPU looked at may do it, of those that can be imagined")
		return nil
	}
	im.tell.Tell(Imagined{Result: r, Doing: "Looking for " + f.ranBy() + "."})
	dir, err := os.MkdirTemp("", "hightide-plan-")
	if err != nil {
		return fail.Environment("is the temporary folder full?", "keep the model's configuration: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := f.writeConfig(source, dir); err != nil {
		return err
	}
	var with string
	if im.command, with, err = o.command(ctx, f, dir, most); err != nil {
		return err
	}
	variables, err := f.variables(dir, os.Getenv)
	if err != nil {
		return err
	}
	order := "the cheapest GPU first, up to the first that does it"
	if im.all {
		order = "on each GPU that may do it, the cheapest first"
	}
	im.doing = "It is run with " + with + ": " + order + ". Ctrl-C keeps the table as it stands."
	err = im.each(ctx, o.Host.Session(variables, im.command(1)))
	r.settle(f, places)
	if r.imagined() {
		r.Notes = append(r.Notes, "imagined: with "+with)
	}
	return err
}

// ranBy is what runs a use, in words.
func (f *facts) ranBy() string {
	if f.serves() {
		return "vLLM, to run it on imaginary GPUs"
	}
	return "a Python with torch and transformers, to run it on imaginary GPUs"
}

// unimaginable says why a use is not run on imaginary GPUs; "": it is.
func (f *facts) unimaginable() string {
	switch {
	case f.gguf() || f.model.Format.Graph():
		return "runs of llama.cpp and of graphs as ONNX are not imagined"
	case f.blind():
		return "without a config.json there is nothing to imagine"
	case f.use.For == Infer && f.gpus() > 1:
		return "--for infer on several GPUs is not imagined; your own script is, by hightide imagine"
	case f.use.Weights == "int4" || f.use.Weights == "fp8" && !f.serves():
		return "--dtype " + f.use.Weights + " is not imagined: there are no such weights to load"
	}
	return ""
}

// writeConfig puts the configuration where a program finds it. A training says its type itself.
func (f *facts) writeConfig(source *hub.Place, dir string) error {
	text, err := modelfile.Config(source.Files, source.Name)
	if err != nil {
		return unreadable(source.Asked, err)
	}
	if !f.serves() {
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return fail.Input("", "%s: %w", source.Asked, err)
		}
		delete(fields, "torch_dtype")
		fields["dtype"] = map[string]string{"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[f.runAs()]
		if text, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// runAs is the type of the weights in a run of our trainer.
func (f *facts) runAs() string {
	switch {
	case f.use.Weights != "auto":
		return f.use.Weights
	case !f.adapts() && f.use.For != Infer:
		return "fp32"
	}
	return "bf16"
}

// command is what is run, on one GPU to most of them: the user's own vLLM, or our trainer over the user's own
// transformers. with says which.
func (o *Options) command(ctx context.Context, f *facts, dir string, most int) (command func(count int) []string,
	with string, err error) {
	if f.serves() {
		program, err := findServer(ctx, o.Python)
		if err != nil {
			return nil, "", err
		}
		return func(count int) []string { return append([]string{program, "serve", dir}, f.serverFlags(count)...) },
			"vLLM, " + program, nil
	}
	python, err := pythons.WithTorch(ctx, o.Python, "imaginary")
	if err != nil {
		return nil, "", err
	}
	trainer, err := o.Host.Trainer()
	if err != nil {
		return nil, "", err
	}
	command = func(count int) []string {
		text, err := json.Marshal(map[string]any{"model": filepath.Join(dir, "config.json"), "use": f.use.For,
			"batch": f.batch(), "seq_len": f.seq(), "dtype": f.runAs(), "optimizer": cmp.Or(f.use.Optimizer, "adamw"),
			"lora_rank": f.use.Rank, "checkpointing": !f.use.KeepAll, "gpus": count})
		if err != nil {
			panic("hightide: words and numbers are no JSON: " + err.Error())
		}
		return []string{python, trainer, string(text)}
	}
	with, err = installed(ctx, command(most))
	return command, with, err
}

// installed has our trainer look for the packages that it needs, and says their versions, and how they are used.
func installed(ctx context.Context, command []string) (with string, err error) {
	python := command[0]
	out, err := exec.CommandContext(ctx, python, append(slices.Clone(command[1:]), "--check")...).Output()
	var there struct {
		Missing  []string          `json:"missing"`
		Versions map[string]string `json:"versions"`
		How      string            `json:"how"`
	}
	if err == nil {
		err = json.Unmarshal(out, &there)
	}
	if err != nil {
		return "", fail.Environment("name another with --python", "%s does not answer: %w", python, err)
	}
	if len(there.Missing) > 0 {
		return "", fail.Environment(python+" -m pip install "+strings.Join(there.Missing, " ")+", or name another with --python",
			"%s has no %s", python, strings.Join(there.Missing, ", "))
	}
	var all []string
	for name, version := range there.Versions {
		all = append(all, name+" "+version)
	}
	slices.Sort(all)
	if with = strings.Join(all, ", ") + ", " + python; there.How != "" {
		with += "; " + there.How
	}
	return with, nil
}

// findServer is the vLLM of an interpreter, else the one on PATH, else that of the first Python with torch.
func findServer(ctx context.Context, python string) (string, error) {
	of := func(python string) string { return filepath.Join(filepath.Dir(python), "vllm") }
	isThere := func(program string) bool { _, err := os.Stat(program); return err == nil }
	const hint = "pip install vllm, or name a Python that has it with --python"
	if python != "" {
		if program := of(python); isThere(program) {
			return program, nil
		}
		return "", fail.Environment(hint, "there is no vLLM beside %s", python)
	}
	if program, err := exec.LookPath("vllm"); err == nil {
		return program, nil
	}
	if found, err := pythons.WithTorch(ctx, "", "imaginary"); err == nil && isThere(of(found)) {
		return of(found), nil
	}
	return "", fail.Environment(hint, "no vLLM found")
}

// serverFlags have vLLM hold what is planned. Weights and tokens are made up: only their sizes matter.
func (f *facts) serverFlags(count int) []string {
	flags := []string{"--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len", strconv.Itoa(f.use.Seq),
		"--gpu-memory-utilization", strconv.FormatFloat(f.use.Utilization, 'g', -1, 64)}
	if f.use.Cache == "fp8" {
		flags = append(flags, "--kv-cache-dtype", "fp8")
	}
	switch f.use.Weights {
	case "fp8":
		flags = append(flags, "--quantization", "fp8")
	case "bf16", "fp16", "fp32":
		names := map[string]string{"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
		flags = append(flags, "--dtype", names[f.use.Weights])
	}
	if count > 1 {
		flags = append(flags, "--tensor-parallel-size", strconv.Itoa(count))
	}
	return flags
}
