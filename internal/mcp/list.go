package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/store"
)

type listInput struct {
	Search  string            `json:"search,omitempty" jsonschema:"only runs whose id, name or command contains this"`
	Tags    map[string]string `json:"tags,omitempty" jsonschema:"only runs with all of these tags; an empty value: whatever the value"`
	Finding string            `json:"finding,omitempty" jsonschema:"only runs with a finding of this kind, as leak or oom"`
	Line    string            `json:"line,omitempty" jsonschema:"only runs with a finding, or much memory, at this place: FILE, FILE:LINE or FILE:FUNCTION, as train.py:12; with finding: such a finding there"`
	State   string            `json:"state,omitempty" jsonschema:"running, finished or cut off"`
	Limit   int               `json:"limit,omitempty" jsonschema:"at most this many; default 20"`
}

type listAnswer struct {
	Runs []runRow `json:"runs"`
	More bool     `json:"more,omitempty" jsonschema:"there are older ones that match; a higher limit lists them"`

	NotSearched int `json:"not_searched,omitempty" jsonschema:"runs of which nothing is known that finding and line could ask for; at most 1,000 are counted"`
}

// runRow is what tells runs apart; the tool report has the rest.
type runRow struct {
	ID       string            `json:"id"`
	Name     string            `json:"name,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	Verb     string            `json:"verb,omitempty"`
	Label    mem.Label         `json:"label,omitempty"`
	Command  string            `json:"command"`
	State    string            `json:"state"`
	Start    time.Time         `json:"start"` // many a reader of JSON rounds nanoseconds since 1970
	Duration int64             `json:"duration_ns"`
	Ended    mem.Ending        `json:"ended" jsonschema:"how it ended; of an imagined run the verdict"`
	ExitCode mem.Optional      `json:"exit_code,omitzero"`
	Steps    uint64            `json:"steps"`
	Figure   mem.Figure        `json:"figure,omitzero" jsonschema:"the peak by which it is known, as in its report"`
	OOMs     int               `json:"ooms"`
	Findings mem.Optional      `json:"findings,omitzero"`
}

const defaultRuns = 20

var list = tool[listInput, listAnswer]{
	name: "list", title: "List recorded runs",
	about: "List recorded runs, newest first: command, peak of memory, how each ended.",
	answer: func(ctx context.Context, d *door, in listInput, _ event.Sink) (out listAnswer, text string, err error) {
		if err := oneOf("state", in.State, []string{string(store.Running), string(store.Finished), string(store.CutOff)}); err != nil {
			return out, "", err
		}
		limit, err := atMost("limit", in.Limit, defaultRuns)
		if err != nil {
			return out, "", err
		}
		filter := store.Filter{Text: in.Search, Tags: in.Tags, State: store.State(in.State), Finding: in.Finding,
			Limit: limit + 1}
		if in.Line != "" {
			at, ok := store.ParseSpot(in.Line)
			if !ok {
				return out, "", fail.Usage("write train.py or train.py:12", "line %q is no file or line", in.Line)
			}
			filter.Line = at
		}
		runs, err := d.engine.Runs(ctx, filter)
		if err == nil {
			out.NotSearched, err = d.engine.Unsearched(ctx, filter)
		}
		out.Runs = []runRow{}
		if out.More = len(runs) > limit; out.More {
			runs = runs[:limit]
		}
		for _, r := range runs {
			out.Runs = append(out.Runs, runRow{r.ID, r.Name, r.Tags, r.Verb, r.Label, mem.CommandLine(r.Command),
				string(r.State), time.Unix(0, r.Start).UTC(), r.Duration,
				r.Ended, r.ExitCode, r.Steps, r.Figure, r.OOMs, r.Findings})
		}
		text = listText(runs, out.More)
		if said := store.UnsearchedText(out.NotSearched); said != "" {
			text += "\n" + said
		}
		return out, text, err
	},
}

func listText(runs []store.Run, more bool) string {
	if len(runs) == 0 {
		return "No run matches."
	}
	var lines []string
	for _, r := range runs {
		line := fmt.Sprintf("%s  %s  %s", r.ID, r.Ended.Text, mem.CommandLine(mem.Program(r.Command)))
		if r.Name != "" {
			line += "  named " + r.Name
		}
		if r.Figure.Known() {
			line += fmt.Sprintf(", peak %v (%s)", r.Figure, r.Figure.Label)
		}
		lines = append(lines, line)
	}
	if more {
		lines = append(lines, "There are older ones that match: a higher limit lists them.")
	}
	return strings.Join(lines, "\n")
}
