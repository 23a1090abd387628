package mcp

import (
	"context"
	"encoding/json"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/plan"
)

type planAnswer struct {
	Label    mem.Label          `json:"label"`
	Weights  mem.Bytes          `json:"weights_bytes" jsonschema:"as stored"`
	PerToken mem.Bytes          `json:"cache_bytes_per_token,omitempty"`
	Cheapest string             `json:"cheapest,omitempty" jsonschema:"of the GPUs that fit, the one with the lowest known price"`
	Smallest string             `json:"smallest,omitempty" jsonschema:"of the GPUs that fit, the one with the least memory"`
	GPUs     []planRow          `json:"gpus" jsonschema:"those that fit first, the cheapest first"`
	Changes  []plan.Alternative `json:"changes" jsonschema:"with which a cheaper GPU would do; each was computed"`
	Notes    []string           `json:"notes"`
}

type planRow struct {
	GPU     string       `json:"gpu"`
	Machine string       `json:"instance,omitempty"`
	Count   int          `json:"gpus"`
	Verdict plan.Verdict `json:"verdict" jsonschema:"fits, likely, unlikely or no"`
	Room    mem.Bytes    `json:"room_low_bytes" jsonschema:"what is left at least"`
	Tokens  *plan.Range  `json:"tokens,omitempty" jsonschema:"that a server's cache holds"`
	Users   *plan.Range  `json:"users,omitempty"`
	Batch   *plan.Range  `json:"largest_batch,omitempty"`
	Price   float64      `json:"price_usd_per_hour,omitempty"`
	Note    string       `json:"note,omitempty"`
}

var planModel = tool[json.RawMessage, planAnswer]{
	name: "plan", title: "Which GPU a model needs", takes: new(plan.Options).Settings(),
	about: "Which GPUs serve, run or train a model, from its files on this machine alone: config.json, safetensors, GGUF. " +
		"Arithmetic and estimates with intervals; nothing is run.",
	answer: func(ctx context.Context, d *door, in json.RawMessage, _ event.Sink) (out planAnswer, text string, err error) {
		var o plan.Options
		if err := o.Settings().Read(options.MCP, in); err != nil {
			return out, "", err
		}
		o.Offline = true
		r, err := d.engine.Plan(ctx, o)
		if err != nil {
			return out, "", err
		}
		out = planAnswer{Label: mem.Estimated, Weights: r.Model.Bytes, PerToken: r.Model.PerToken, Cheapest: r.Cheapest,
			Smallest: r.Smallest, GPUs: []planRow{}, Changes: r.Changes, Notes: r.Notes}
		for i := range r.Rows {
			row := &r.Rows[i]
			machine := ""
			if row.Machine != nil {
				machine = row.Machine.Name
			}
			out.GPUs = append(out.GPUs, planRow{row.GPU, machine, row.Count, row.Verdict, row.Room.Low, row.Tokens, row.Users, row.Batch, row.Price,
				row.Note})
		}
		return out, r.Text(plain), nil
	},
}
