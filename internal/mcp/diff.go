package mcp

import (
	"context"

	"hightide/internal/analyze"
	"hightide/internal/event"
)

type diffInput struct {
	A   string `json:"a" jsonschema:"snapshot or run before"`
	B   string `json:"b" jsonschema:"snapshot or run after"`
	By  string `json:"by,omitempty" jsonschema:"match blocks by site (default), module or category"`
	Top int    `json:"top,omitempty" jsonschema:"how many groups to list, largest change first; default 10"`
}

var diff = tool[diffInput, analyze.Difference]{
	name: "diff", title: "Why two peaks differ",
	about: "Explain to the byte why the peak of two snapshots or runs differs, by the functions that allocated.",
	answer: func(ctx context.Context, d *door, in diffInput, _ event.Sink) (out analyze.Difference, text string, err error) {
		if err := oneOf("by", in.By, analyze.Differences); err != nil {
			return out, "", err
		}
		if err := readable(in.A, in.B); err != nil {
			return out, "", err
		}
		found, err := d.engine.Diff(ctx, in.A, in.B, in.By)
		if err != nil {
			return out, "", err
		}
		out, top := *found, in.Top
		if top <= 0 {
			top = defaultTop
		}
		out.Rows = out.Rows[:min(top, len(out.Rows))]
		table := out.Table()
		return out, table.Text(plain) + "  " + table.Note, nil
	},
}
