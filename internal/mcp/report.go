package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/report"
)

type reportInput struct {
	Run  string `json:"run,omitempty" jsonschema:"id, unique beginning of an id, name, path of a recording, or last; default last"`
	Full bool   `json:"full,omitempty" jsonschema:"with all tables, findings and notes; else at most 4 KB"`
}

// reportAnswer is what a report concludes. Its curves and tables are in the resource hightide://runs/ID/report.
type reportAnswer struct {
	Run      string          `json:"run"`
	Name     string          `json:"name,omitempty"`
	Verb     string          `json:"verb" jsonschema:"how it was recorded: run, attach, imagine"`
	Command  string          `json:"command"`
	Verdict  string          `json:"verdict"`
	Duration int64           `json:"duration_ns"`
	Steps    uint64          `json:"steps"`
	Ended    mem.Ending      `json:"ended" jsonschema:"how it ended; of an imagined run the verdict"`
	Figure   mem.Figure      `json:"figure,omitzero" jsonschema:"the peak by which it is known, as in the list"`
	ExitCode mem.Optional    `json:"exit_code,omitzero"`
	Signal   mem.Optional    `json:"signal,omitzero"`
	Peak     report.Peak     `json:"peak"`
	Growth   mem.Optional    `json:"growth_bytes_per_step,omitzero"`
	Serving  *report.Serving `json:"serving,omitempty" jsonschema:"of an imagined LLM server: tokens of its KV cache, weights, activations, in bytes of one GPU"`
	Findings []finding       `json:"findings" jsonschema:"worst first"`
	Notes    []string        `json:"notes" jsonschema:"what was not observed, and why"`
	Omitted  string          `json:"omitted,omitempty" jsonschema:"what is left out of this answer"`
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
		out = reportAnswer{
			Run: cmp.Or(row.ID, r.Run.ID), Name: r.Run.Name, Verb: r.Run.Verb, Command: mem.CommandLine(r.Run.Command),
			Verdict: h.Verdict, Duration: h.Duration, Steps: h.Steps, Ended: h.Ended, Figure: h.Figure, ExitCode: h.ExitCode,
			Signal: h.Signal, Peak: h.Peak, Growth: h.Growth,
			Findings: findings(r.Findings), Notes: r.Notes,
		}
		if r.Imagined != nil {
			out.Serving = r.Imagined.Serving
		}
		if in.Full {
			return out, r.Markdown(), nil
		}
		return out, out.brief(), nil
	},
}

// briefBytes is what an answer takes at most, its text and its fields together, where all was not asked for.
const briefBytes = 4 << 10

// brief leaves out what is too much, the least important first, and says so. What it returns is the text of the answer.
func (a *reportAnswer) brief() string {
	found, notes := a.Findings, a.Notes
	a.Findings, a.Notes, a.Omitted = []finding{}, []string{}, strings.Repeat(" ", 100) // as long as it may get
	a.Command, a.Verdict = report.Shorten(a.Command, 300), report.Shorten(a.Verdict, 700)
	for _, f := range found {
		f.Title, f.Text = report.Shorten(f.Title, 160), report.Shorten(f.Text, 500)
		f.File = report.Shorten(f.File, 200) // advice is whole: half a setting is none
		if a.Findings = append(a.Findings, f); a.size() > briefBytes {
			a.Findings = a.Findings[:len(a.Findings)-1]
			break
		}
	}
	for _, note := range notes {
		if a.Notes = append(a.Notes, report.Shorten(note, 300)); a.size() > briefBytes {
			a.Notes = a.Notes[:len(a.Notes)-1]
			break
		}
	}
	a.Omitted = "Tables"
	if left := len(found) - len(a.Findings); left > 0 {
		a.Omitted += ", " + report.Counted(int64(left), "finding")
	}
	if left := len(notes) - len(a.Notes); left > 0 {
		a.Omitted += ", " + report.Counted(int64(left), "note")
	}
	a.Omitted += " and the ends of long sentences are left out: full has them."
	return a.text()
}

func (a *reportAnswer) size() int {
	fields, _ := json.Marshal(a)
	return len(fields) + len(a.text())
}

// text is what a person reads of it.
func (a *reportAnswer) text() string {
	lines := []string{a.Verdict}
	for _, f := range a.Findings {
		line := "- " + f.Severity + ": " + f.Title
		if f.File != "" {
			line += " at " + mem.LineName(mem.Location{File: f.File, Line: f.Line})
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, a.Omitted), "\n")
}
