package mcp

import (
	"cmp"
	"context"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/report"
)

type reportInput struct {
	Run string `json:"run,omitempty" jsonschema:"id, unique beginning of an id, name, path of a recording, or last; default last"`
}

// reportAnswer is what a report concludes. Its curves and tables are in the resource hightide://runs/ID/report.
type reportAnswer struct {
	Run      string       `json:"run"`
	Name     string       `json:"name,omitempty"`
	Verb     string       `json:"verb" jsonschema:"how it was recorded: run, attach, imagine"`
	Command  string       `json:"command"`
	Verdict  string       `json:"verdict"`
	Duration int64        `json:"duration_ns"`
	Steps    uint64       `json:"steps"`
	ExitCode mem.Optional `json:"exit_code,omitzero"`
	Signal   mem.Optional `json:"signal,omitzero"`
	Peak     report.Peak  `json:"peak"`
	Growth   mem.Optional `json:"growth_bytes_per_step,omitzero"`
	Findings []finding    `json:"findings" jsonschema:"worst first"`
	Notes    []string     `json:"notes" jsonschema:"what was not observed, and why"`
}

var showReport = tool[reportInput, reportAnswer]{
	name: "report", title: "Report of a run",
	about: "What is known of a recorded run: peak memory and who holds it, leaks and growth with their lines, advice.",
	answer: func(ctx context.Context, d *door, in reportInput, _ event.Sink) (out reportAnswer, text string, err error) {
		ref := cmp.Or(in.Run, "last")
		if err := d.readable(ref); err != nil {
			return out, "", err
		}
		r, row, err := d.engine.Report(ctx, ref)
		if err != nil {
			return out, "", err
		}
		h := &r.Headline
		return reportAnswer{
			Run: cmp.Or(row.ID, r.Run.ID), Name: r.Run.Name, Verb: r.Run.Verb, Command: mem.CommandLine(r.Run.Command),
			Verdict: h.Verdict, Duration: h.Duration, Steps: h.Steps, ExitCode: h.ExitCode, Signal: h.Signal, Peak: h.Peak, Growth: h.Growth,
			Findings: findings(r.Findings), Notes: r.Notes,
		}, r.Markdown(), nil
	},
}
