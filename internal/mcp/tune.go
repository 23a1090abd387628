package mcp

import (
	"context"
	"encoding/json"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/tune"
)

// tuneAnswer is the frontier, and what is recommended of it.
type tuneAnswer struct {
	Label       mem.Label         `json:"label"`
	GPU         string            `json:"gpu"`
	Total       mem.Bytes         `json:"total_bytes"`
	Need        mem.Optional      `json:"need_bytes,omitzero" jsonschema:"what the unchanged program takes where there is plenty"`
	Sentence    string            `json:"recommendation"`
	Frontier    []tunePoint       `json:"frontier" jsonschema:"plans than which no other takes less at no more cost, the cheapest first"`
	Plan        string            `json:"plan,omitempty" jsonschema:"the text of the plan, for hightide run --plan FILE"`
	Patch       string            `json:"patch,omitempty" jsonschema:"the plan as a unified diff of the program's files; a copy with it was imagined"`
	PatchFolder string            `json:"patch_folder,omitempty" jsonschema:"where git apply takes it"`
	PatchSays   string            `json:"patch_says,omitempty" jsonschema:"the peak of the copy beside the plan's, and what was not written"`
	Refused     map[string]string `json:"refused,omitempty" jsonschema:"levers that cannot be used, and why"`
	Server      *tune.Server      `json:"server,omitempty" jsonschema:"of an LLM server: the settings that were tried, and the command that is recommended"`
	Runs        int               `json:"imagined_runs"`
	Notes       []string          `json:"notes"`
}

type tunePoint struct {
	What       string       `json:"what"`
	Verdict    mem.Verdict  `json:"verdict"`
	Used       mem.Optional `json:"peak_device_used_bytes,omitzero"`
	Recomputed float64      `json:"recomputed_share" jsonschema:"of the forward pass's FLOPs"`
	Moved      mem.Bytes    `json:"offloaded_bytes" jsonschema:"a step, over PCIe twice"`
	Exact      bool         `json:"numbers_stay" jsonschema:"losses and gradients stay the same bit for bit"`
	Enough     bool         `json:"reaches_goal"`
}

var tuneRun = tool[json.RawMessage, tuneAnswer]{
	name: "tune", title: "Find changes by which a training fits", starts: true, takes: new(tune.Options).Settings(),
	about: "Find the cheapest changes by which a training of PyTorch or JAX fits on a GPU that is not there: what was run, the plan, " +
		"and with patch the change of the program's own files. Writes nothing. Runs the command; the user must have allowed that.",
	answer: func(ctx context.Context, d *door, in json.RawMessage, tell event.Sink) (out tuneAnswer, text string, err error) {
		if err := d.mayStart("running a command"); err != nil {
			return out, "", err
		}
		var o tune.Options
		if err := o.Settings().Read(options.MCP, in); err != nil {
			return out, "", err
		}
		o.Env, o.Events, o.Dry = d.Env, tell, true
		result, err := d.engine.Tune(ctx, o)
		if err != nil {
			return out, "", err
		}
		return tuned(result), result.Text(plain), nil
	},
}

func tuned(r *tune.Result) tuneAnswer {
	a := tuneAnswer{Label: r.Label, GPU: r.GPU, Total: r.Total, Need: r.Need, Sentence: r.Answer, Frontier: []tunePoint{},
		Refused: r.Refused, Server: r.Server, Runs: r.Runs, Notes: r.Notes}
	for i, p := range r.Points {
		if i == 0 || p.Best || p.Plan == r.Recommended {
			a.Frontier = append(a.Frontier, tunePoint{p.What, p.Verdict.Verdict, p.Verdict.Used, p.Plan.Planned.Recomputed,
				p.Plan.Planned.Moved, p.Exact, p.Enough})
		}
	}
	if r.Recommended != nil && len(r.Recommended.Levers) > 0 {
		a.Plan = r.Recommended.Text()
	}
	if r.Patch != nil {
		a.Patch, a.PatchFolder, a.PatchSays = r.Patch.Text, r.Patch.Folder, r.Patch.Says
	}
	return a
}
