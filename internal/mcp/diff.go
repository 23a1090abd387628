package mcp

import (
	"context"

	"hightide/internal/analyze/trace"
	"hightide/internal/event"
	"hightide/internal/report"
)

type diffInput struct {
	A   string `json:"a" jsonschema:"snapshot or run before"`
	B   string `json:"b" jsonschema:"snapshot or run after"`
	By  string `json:"by,omitempty" jsonschema:"match blocks by site (default), module or category"`
	Top int    `json:"top,omitempty" jsonschema:"how many groups to list, largest change first; default 10"`
}

type diffAnswer struct {
	Verdict string            `json:"verdict"`
	Blocks  *trace.Difference `json:"blocks,omitempty" jsonschema:"by the blocks alive at both peaks, to the byte; absent where a side has no snapshot"`
	Tables  []report.Table    `json:"tables,omitempty" jsonschema:"where a side has no snapshot: peaks, what the processes held, functions that held the heap"`
	Notes   []string          `json:"notes,omitempty"`
}

var diff = tool[diffInput, diffAnswer]{
	name: "diff", title: "Why two peaks differ",
	about: "Explain why the peak of two snapshots or runs differs: to the byte by the functions that allocated where " +
		"both have a snapshot, else by what both measured.",
	answer: func(ctx context.Context, d *door, in diffInput, _ event.Sink) (out diffAnswer, text string, err error) {
		if err := oneOf("by", in.By, trace.Differences); err != nil {
			return out, "", err
		}
		if err := d.readable(in.A, in.B); err != nil {
			return out, "", err
		}
		top, err := atMost("top", in.Top, defaultTop)
		if err != nil {
			return out, "", err
		}
		found, err := d.engine.Differ(ctx, in.A, in.B, in.By)
		if err != nil {
			return out, "", err
		}
		if compared := found.Report; compared != nil {
			return diffAnswer{Verdict: compared.Headline.Verdict, Tables: compared.Tables, Notes: compared.Notes},
				compared.Markdown(), nil
		}
		blocks := *found.Blocks
		table := blocks.Table() // whose note is of all rows
		blocks.Rows = blocks.Rows[:min(top, len(blocks.Rows))]
		table.Rows = table.Rows[:len(blocks.Rows)]
		return diffAnswer{Verdict: table.Title + ".", Blocks: &blocks}, table.Text(plain) + "  " + table.Note, nil
	},
}
