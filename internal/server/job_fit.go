package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// fitJob is `hightide fit`.
var fitJob = jobKind{"fit", "find the largest batch that fits", true, beginFit}

// fitAsked are the options of a fit job: flags of `hightide fit` by their names.
type fitAsked struct {
	Command   []string `json:"command"`
	GPU       string   `json:"gpu"`
	Memory    string   `json:"memory"`
	Device    string   `json:"device"`
	AllocConf string   `json:"alloc_conf"`
	Step      int      `json:"step"`
	Start     int      `json:"start"`
	Most      int      `json:"most"`
	Current   int      `json:"current"`
	Headroom  string   `json:"headroom"`
	GradAccum int      `json:"grad_accum"`
	Price     float64  `json:"price"`
	Backward  bool     `json:"validate_backward"`

	Model         string `json:"model"`
	Size          string `json:"size"`
	DType         string `json:"dtype"`
	AMP           string `json:"amp"`
	Optimizer     string `json:"optimizer"`
	Train         bool   `json:"train"`
	Inference     bool   `json:"inference"`
	SeqLen        int    `json:"seq_len"`
	ImageSize     int    `json:"image_size"`
	Checkpointing bool   `json:"checkpointing"`
	Compile       bool   `json:"compile"`
}

func beginFit(s *Server, text json.RawMessage) (work, error) {
	asked, err := options[fitAsked](text)
	if err != nil {
		return work{}, err
	}
	title := "fit " + asked.Model
	if len(asked.Command) > 0 {
		title = "fit " + mem.CommandLine(mem.MaskArgs(asked.Command))
	} else if asked.Model == "" {
		return work{}, fail.Usage(`as in "model": "bert", or "command": ["python", "train.py", "--batch-size", "{batch}"]`,
			"neither a model nor a command to fit")
	}
	if asked.GPU != "" {
		title += " on " + asked.GPU
	}
	o := asked.options(s.options.Env)
	return work{title, asked.Command, func(ctx context.Context, j *job) (any, error) {
		return j.aside(s.engine, func(e *engine.Engine) (any, error) {
			o.Events = j.tell
			result, err := e.Fit(ctx, o)
			if result == nil {
				return nil, err // an untyped nil: there is no result
			}
			on, failed := others(result)
			return fitOutcome{result, on}, cmp.Or(err, failed)
		})
	}}, nil
}

// fitOutcome is the result of a fit job.
type fitOutcome struct {
	*fit.Result
	Others []mem.GPUVerdict `json:"other_gpus,omitempty"` // estimates
}

func (o fitOutcome) ended() mem.Ending {
	if o.Largest == 0 {
		return mem.Ending{Kind: mem.EndOOM, Text: "no batch fits"}
	}
	return mem.Ending{Kind: mem.EndDone, Text: "at most " + report.Count(int64(o.Largest))}
}

// others estimates what other GPUs leave at the largest batch that was found on an imagined one.
func others(r *fit.Result) ([]mem.GPUVerdict, error) {
	at := slices.IndexFunc(r.Trials, func(t fit.Trial) bool { return t.Batch == r.Largest && t.OK })
	if at < 0 || r.GPU == nil {
		return nil, nil
	}
	known, err := gpus.Load()
	if err != nil {
		return nil, err
	}
	t := &r.Trials[at]
	own := mem.GPUVerdict{GPU: r.Slug, Verdict: mem.VerdictFits, Context: r.GPU.Overhead, Allocated: t.Allocated,
		Reserved: t.Reserved, Used: t.Used}
	return imagine.Others(known.GPUs, imagine.Built{Architectures: r.Worker.Built, CUDA: r.Worker.CUDA}, &own, 1), nil
}

// options of the engine, with the defaults of the command line.
func (a *fitAsked) options(env []string) fit.Options {
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	o := fit.Options{Command: a.Command, Env: env, GPU: a.GPU, Memory: a.Memory, Device: a.Device,
		AllocConf: a.AllocConf, Granularity: max(a.Step, 1), Start: a.Start,
		Most: a.Most, Current: a.Current, Headroom: a.Headroom, TargetBatch: a.GradAccum, Price: a.Price,
		Backward: a.Backward}
	o.Model = fit.Model{Model: a.Model, Size: a.Size, DType: or(a.DType, "fp32"), AMP: a.AMP,
		Optimizer: or(a.Optimizer, "none"), Train: a.Train, Inference: a.Inference,
		SeqLen: a.SeqLen, ImageSize: a.ImageSize, Checkpointing: a.Checkpointing, Compile: a.Compile}
	if o.Model.SeqLen == 0 {
		o.Model.SeqLen = 128
	}
	if o.Model.ImageSize == 0 {
		o.Model.ImageSize = 224
	}
	return o
}
