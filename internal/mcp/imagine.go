package mcp

import (
	"context"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/imagine"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
)

type imagineInput struct {
	Command   []string `json:"command" jsonschema:"the program and its arguments, a word each, as python, train.py, --batch-size, 32"`
	GPU       string   `json:"gpu,omitempty" jsonschema:"GPU as in gpus, or all; default h100-sxm"`
	GPUs      int      `json:"gpu_count,omitempty" jsonschema:"how many the machine has; default 1"`
	Memory    string   `json:"memory,omitempty" jsonschema:"another size of their memory, as 24GiB"`
	Steps     string   `json:"steps,omitempty" jsonschema:"stop after that many optimizer steps; auto (default): once the peak is steady; 0: run to the end"`
	AllocConf string   `json:"alloc_conf,omitempty" jsonschema:"settings of PyTorch's allocator, as expandable_segments:True"`
	Suggest   *bool    `json:"suggest,omitempty" jsonschema:"where it does not fit, try what would make it fit; default true"`
}

// imagineAnswer is the verdict; the rest of the report is what the tool report says of the run.
type imagineAnswer struct {
	Run string `json:"run" jsonschema:"id of the recording, for report, explain and replay"`
	verdict
	ExitCode   mem.Optional      `json:"exit_code,omitzero"`
	Failure    string            `json:"failure,omitempty" jsonschema:"how the program ended, where it failed by itself"`
	Basis      string            `json:"basis,omitempty" jsonschema:"what a fit rests on"`
	Categories []report.Category `json:"categories,omitempty" jsonschema:"of the peak"`
	Lines      []report.HeldLine `json:"peak_lines,omitempty" jsonschema:"of the program, what they held at the peak"`
	Undecided  []string          `json:"undecided,omitempty" jsonschema:"numbers that only a GPU would compute and that decide something, by line"`
	Tries      []try             `json:"tries,omitempty" jsonschema:"runs with one thing changed, to find what makes it fit"`
	All        []verdict         `json:"gpus,omitempty" jsonschema:"with gpu all: each of them"`
	Notes      []string          `json:"notes"`
}

type try struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
	verdict
}

var imagineRun = tool[imagineInput, imagineAnswer]{
	name: "imagine", title: "Run a program on an imaginary GPU", starts: true,
	about: "Run a PyTorch program, unmodified, on GPUs that are not there, and say whether it fits in their memory and " +
		"why not. Runs the command; the user must have allowed that.",
	answer: func(ctx context.Context, d *door, in imagineInput, tell event.Sink) (out imagineAnswer, text string,
		err error) {
		if err := d.mayStart("running a command"); err != nil {
			return out, "", err
		}
		memory, err := bytesOf("memory", in.Memory)
		if err != nil {
			return out, "", err
		}
		result, err := d.engine.Imagine(ctx, engine.ImagineOptions{
			RunOptions: engine.RunOptions{Options: observe.Options{Command: in.Command, Env: d.Env, NoStacks: true,
				Events: tell}},
			Options: imagine.Options{GPU: in.GPU, GPUs: in.GPUs, Memory: memory, Until: in.Steps, AllocConf: in.AllocConf,
				Sizes: "upper", NoSuggest: in.Suggest != nil && !*in.Suggest},
		})
		if err != nil {
			return out, "", err
		}
		if ctx.Err() != nil { // what was cancelled has no verdict
			return out, "", ctx.Err()
		}
		return imagined(result), imaginedText(result), nil
	},
}

func imagined(r *engine.ImagineResult) imagineAnswer {
	a := imagineAnswer{Run: r.ID, ExitCode: r.Outcome.ExitCode, Notes: append([]string{}, r.Notes...)}
	v := r.Verdict
	if v == nil {
		return a
	}
	a.verdict, a.Failure, a.Basis, a.Categories, a.Lines = verdictOf(v.GPUVerdict), v.How, v.Basis, v.Categories, v.Lines
	for _, t := range v.Tries {
		a.Tries = append(a.Tries, try{t.What, t.Command, verdictOf(t.GPUVerdict)})
	}
	for _, one := range v.All {
		a.All = append(a.All, verdictOf(one))
	}
	for i := range v.Undecided {
		a.Undecided = append(a.Undecided, v.Undecided[i].String())
	}
	return a
}

func imaginedText(r *engine.ImagineResult) string {
	if r.Report == nil {
		return "There is no report: the recording could not be read back."
	}
	return r.Report.Markdown()
}
