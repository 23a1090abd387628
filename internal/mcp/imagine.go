package mcp

import (
	"context"
	"encoding/json"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
)

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
	Serving    *report.Serving   `json:"serving,omitempty" jsonschema:"of an LLM server: tokens of its KV cache, weights, activations, in bytes of one GPU"`
	Tries      []try             `json:"tries,omitempty" jsonschema:"runs with one thing changed, to find what makes it fit"`
	All        []verdict         `json:"gpus,omitempty" jsonschema:"with gpu all: each of them"`
	Notes      []string          `json:"notes"`
}

type try struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
	verdict
}

var imagineRun = tool[json.RawMessage, imagineAnswer]{
	name: "imagine", title: "Run a program on an imaginary GPU", starts: true,
	takes: new(engine.ImagineOptions).Settings(),
	about: "Run a PyTorch program, unmodified, on GPUs that are not there, and say whether it fits in their memory and " +
		"why not. Runs the command; the user must have allowed that.",
	answer: func(ctx context.Context, d *door, in json.RawMessage, tell event.Sink) (out imagineAnswer, text string,
		err error) {
		if err := d.mayStart("running a command"); err != nil {
			return out, "", err
		}
		o := engine.ImagineOptions{}
		if err := o.Settings().Read(options.MCP, in); err != nil {
			return out, "", err
		}
		o.Env, o.Events = d.Env, tell
		result, err := d.engine.Imagine(ctx, o)
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
	a.Serving = v.Serving
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
