package mcp

import (
	"cmp"
	"context"
	"regexp"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/mem"
)

type fitInput struct {
	Model     string   `json:"model,omitempty" jsonschema:"model to build: bert, gpt2, resnet, a torchvision name, or a transformers model type; in place of a command"`
	Command   []string `json:"command,omitempty" jsonschema:"a training command, a word each, with {batch} where the batch size goes; in place of a model"`
	GPU       string   `json:"gpu,omitempty" jsonschema:"GPU to imagine, as in gpus; without one the machine's own is used"`
	Memory    string   `json:"memory,omitempty" jsonschema:"memory of the device instead of the catalogue's, as 24GiB"`
	Size      string   `json:"size,omitempty" jsonschema:"preset of a model type, as 8b of llama"`
	DType     string   `json:"dtype,omitempty" jsonschema:"fp32 (default), tf32, bf16 or fp16"`
	Optimizer string   `json:"optimizer,omitempty" jsonschema:"none (default), sgd, adam, adamw or adafactor"`
	Train     bool     `json:"train,omitempty" jsonschema:"training mode"`
	Inference bool     `json:"inference,omitempty" jsonschema:"no gradients"`
	SeqLen    int      `json:"seq_len,omitempty" jsonschema:"tokens of a sequence; default 128"`
	ImageSize int      `json:"image_size,omitempty" jsonschema:"pixels of an image's side; default 224"`
	Step      int      `json:"step,omitempty" jsonschema:"try multiples of this only; default 1"`
	Most      int      `json:"most,omitempty" jsonschema:"never try more than this"`
	Current   int      `json:"current,omitempty" jsonschema:"batch in use now, to say what it leaves unused; default 16"`
	Headroom  string   `json:"headroom,omitempty" jsonschema:"leave this much of the device free, as 5% or 1GiB"`
}

type fitAnswer struct {
	Label   mem.Label    `json:"label"`
	Device  string       `json:"device"`
	GPU     string       `json:"gpu,omitempty"`
	Total   mem.Optional `json:"total_bytes,omitzero"`
	Largest int          `json:"largest_batch" jsonschema:"0: not even the smallest fits"`
	Fails   int          `json:"fails_at,omitempty" jsonschema:"the smallest batch that was seen to fail"`
	Roomy   int          `json:"largest_with_room,omitempty" jsonschema:"where the largest is tight: the largest batch that is not"`
	Current int          `json:"current_batch"`
	Unused  mem.Optional `json:"unused_at_current_bytes,omitzero"`
	Error   mem.Optional `json:"unused_at_current_error_bytes,omitzero" jsonschema:"of an estimate, where the present batch was not run"`
	Trials  []fitTrial   `json:"trials"`
	Notes   []string     `json:"notes"`
}

type fitTrial struct {
	Batch     int          `json:"batch"`
	OK        bool         `json:"ok"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"`
	Used      mem.Optional `json:"device_used_bytes,omitzero"`
	StepTime  mem.Optional `json:"step_time_ns,omitzero" jsonschema:"only where time was measured"`
	Problem   string       `json:"problem,omitempty"`
}

var fitBatch = tool[fitInput, fitAnswer]{
	name: "fit", title: "Find the largest batch that fits", starts: true,
	about: "Find the largest batch that fits a GPU's memory, imaginary or real, for a model by name or for a training " +
		"command. A command is run once for each batch tried; the user must have allowed that.",
	answer: func(ctx context.Context, d *door, in fitInput, tell event.Sink) (out fitAnswer, text string, err error) {
		if err := in.allowed(d); err != nil {
			return out, "", err
		}
		o := in.options()
		o.Env, o.Events = d.Env, tell
		result, err := d.engine.Fit(ctx, o)
		if err != nil {
			return out, "", err
		}
		return fitted(result), result.Text(plain), nil
	},
}

func fitted(r *fit.Result) fitAnswer {
	a := fitAnswer{r.Label, r.Device, r.Slug, r.Total, r.Largest, r.Fails, r.Roomy, r.Current, r.Unused, r.UnusedError,
		[]fitTrial{}, r.Notes}
	for _, t := range r.Trials {
		a.Trials = append(a.Trials, fitTrial{t.Batch, t.OK, t.Allocated, t.Used, t.StepTime, t.Problem})
	}
	return a
}

// builtIn is the name of a model that the worker builds itself; others are files, or modules of the user's that it
// imports.
var builtIn = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (in *fitInput) allowed(d *door) error {
	switch {
	case len(in.Command) > 0:
		return d.mayStart("running a command")
	case in.Model == "":
		return fail.Usage("give model, as bert, or command with {batch} in it", "there is nothing to fit")
	case !builtIn.MatchString(in.Model):
		return d.mayStart("building a model by a file or module of the user's")
	}
	return nil
}

func (in *fitInput) options() fit.Options {
	return fit.Options{
		Model: fit.Model{
			Model: in.Model, Size: in.Size, DType: cmp.Or(in.DType, "fp32"), Optimizer: cmp.Or(in.Optimizer, "none"),
			Train:     in.Train,
			Inference: in.Inference, SeqLen: cmp.Or(in.SeqLen, 128), ImageSize: cmp.Or(in.ImageSize, 224),
		},
		Command: in.Command, GPU: in.GPU, Memory: in.Memory, Granularity: in.Step, Most: in.Most, Current: in.Current,
		Headroom: in.Headroom,
	}
}
