package mcp

import (
	"context"
	"strings"

	"hightide/internal/event"
	"hightide/internal/report"
)

type checkInput struct {
	Budget   string `json:"budget" jsonschema:"path of the YAML file of budgets"`
	Of       string `json:"of" jsonschema:"snapshot or run to check"`
	Baseline string `json:"baseline,omitempty" jsonschema:"snapshot or run that relative budgets add to, in place of the one the file names"`
}

type checkAnswer struct {
	OK      bool             `json:"ok"`
	Budgets []report.Checked `json:"budgets"`
}

var check = tool[checkInput, checkAnswer]{
	name: "check", title: "Check memory budgets",
	about: "Hold the peak of a snapshot or run against the budgets of a YAML file, as in CI.",
	answer: func(ctx context.Context, d *door, in checkInput, _ event.Sink) (out checkAnswer, text string, err error) {
		named := []string{in.Budget, in.Of}
		if in.Baseline != "" {
			named = append(named, in.Baseline)
		}
		if err := d.readable(named...); err != nil {
			return out, "", err
		}
		checked, err := d.engine.Check(ctx, in.Budget, in.Of, in.Baseline)
		if err != nil {
			return out, "", err
		}
		out = checkAnswer{true, append([]report.Checked{}, checked...)}
		var lines []string
		for _, c := range checked {
			out.OK = out.OK && !c.Over
			lines = append(lines, c.Sentence())
		}
		return out, strings.Join(lines, "\n"), nil
	},
}
