package mcp

import (
	"context"
	"encoding/json"
	"regexp"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/mem"
	"hightide/internal/options"
)

type fitAnswer struct {
	Label   mem.Label    `json:"label"`
	Device  string       `json:"device"`
	GPU     string       `json:"gpu,omitempty"`
	Total   mem.Optional `json:"total_bytes,omitzero"`
	Largest int          `json:"largest_batch" jsonschema:"0: not even the smallest fits"`
	Fails   int          `json:"fails_at,omitempty" jsonschema:"the smallest batch that was seen to fail"`
	Roomy   int          `json:"largest_with_room,omitempty" jsonschema:"where the largest is tight: the largest batch that is not"`
	Current int          `json:"current_batch"`
	Unused  mem.Optional `json:"unused_at_current_bytes,omitzero"`
	Error   mem.Optional `json:"unused_at_current_error_bytes,omitzero" jsonschema:"of an estimate, where the present batch was not run"`
	Trials  []fitTrial   `json:"trials"`
	Notes   []string     `json:"notes"`
}

type fitTrial struct {
	Batch     int          `json:"batch"`
	OK        bool         `json:"ok"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"`
	Used      mem.Optional `json:"device_used_bytes,omitzero"`
	StepTime  mem.Optional `json:"step_time_ns,omitzero" jsonschema:"only where time was measured"`
	Problem   string       `json:"problem,omitempty"`
}

var fitBatch = tool[json.RawMessage, fitAnswer]{
	name: "fit", title: "Find the largest batch that fits", starts: true, takes: new(fit.Options).Settings(),
	about: "Find the largest batch that fits a GPU's memory, imaginary or real, for a model by name or for a training " +
		"command. A command is run once for each batch tried; the user must have allowed that.",
	answer: func(ctx context.Context, d *door, in json.RawMessage, tell event.Sink) (out fitAnswer, text string, err error) {
		var o fit.Options
		if err := o.Settings().Read(options.MCP, in); err != nil {
			return out, "", err
		}
		if err := allowed(d, &o); err != nil {
			return out, "", err
		}
		o.Env, o.Events = d.Env, tell
		result, err := d.engine.Fit(ctx, o)
		if err != nil {
			return out, "", err
		}
		return fitted(result), result.Text(plain), nil
	},
}

func fitted(r *fit.Result) fitAnswer {
	a := fitAnswer{r.Label, r.Device, r.Slug, r.Total, r.Largest, r.Fails, r.Roomy, r.Current, r.Unused, r.UnusedError,
		[]fitTrial{}, r.Notes}
	for _, t := range r.Trials {
		a.Trials = append(a.Trials, fitTrial{t.Batch, t.OK, t.Allocated, t.Used, t.StepTime, t.Problem})
	}
	return a
}

// builtIn is the name of a model that the worker builds itself; others are files, or modules of the user's that it
// imports.
var builtIn = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func allowed(d *door, o *fit.Options) error {
	switch {
	case len(o.Command) > 0:
		return d.mayStart("running a command")
	case o.Model.Model == "":
		return fail.Usage("give model, as bert, or command with {batch} in it", "there is nothing to fit")
	case !builtIn.MatchString(o.Model.Model):
		return d.mayStart("building a model by a file or module of the user's")
	}
	return nil
}
