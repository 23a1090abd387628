package server

import (
	"context"
	"encoding/json"

	"hightide/internal/bench"
	"hightide/internal/fail"
)

// benchJob is `hightide bench`.
var benchJob = jobKind{"bench", "measure a matrix, or go on with one", true, beginBench}

// benchAsked are the options of a bench job. The spec is text: no path of a request is opened.
type benchAsked struct {
	Spec    string   `json:"spec"`
	Name    string   `json:"name"`
	Only    []string `json:"only"`
	Repeats int      `json:"repeats"`
	Jobs    int      `json:"jobs"`
	Again   bool     `json:"again"`
}

func beginBench(s *Server, text json.RawMessage) (work, error) {
	asked, err := options[benchAsked](text)
	if err != nil {
		return work{}, err
	}
	if asked.Repeats < 0 || asked.Jobs < 0 {
		return work{}, fail.Usage("leave them out for one at a time, as the spec says", "repeats and jobs cannot be negative")
	}
	o := bench.Options{Text: []byte(asked.Spec), Name: asked.Name, Only: asked.Only, Repeats: asked.Repeats,
		Jobs: asked.Jobs, Again: asked.Again, Env: s.options.Env}
	name, command, err := bench.Named(o)
	if err != nil {
		return work{}, err
	}
	return work{"bench " + name, command, func(ctx context.Context, j *job) (any, error) {
		j.change(func() { j.Matrix = name })
		o.Events = j.tell
		result, err := bench.Run(ctx, s.engine, o)
		if result == nil || result.Result == nil {
			return nil, err
		}
		return benchSummary{name, result.States(), len(result.Trials), result.Notes}, err
	}}, nil
}

// benchSummary is what came of a bench job; the matrix itself is under /matrices.
type benchSummary struct {
	Matrix string   `json:"matrix"`
	States any      `json:"cells_by_state"`
	Trials int      `json:"trials"`
	Notes  []string `json:"notes,omitempty"`
}
