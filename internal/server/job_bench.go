package server

import (
	"context"
	"encoding/json"

	"hightide/internal/bench"
	"hightide/internal/options"
)

// benchJob is `hightide bench`.
var benchJob = jobKind{"bench", "measure a matrix, or go on with one", true, new(bench.Options).Settings(), beginBench}

func beginBench(s *Server, text json.RawMessage) (work, error) {
	o := bench.Options{Env: s.options.Env}
	if err := o.Settings().Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	name, command, err := bench.Named(o)
	if err != nil {
		return work{}, err
	}
	return work{"bench " + name, command, func(ctx context.Context, j *job) (any, error) {
		j.change(func() { j.Matrix = name })
		o.Events = j.takeEvent
		result, err := bench.Run(ctx, s.engine, o)
		if result == nil || result.Result == nil {
			return nil, err
		}
		return benchSummary{name, result.States(), len(result.Trials), result.Notes}, err
	}}, nil
}

// benchSummary is what came of a bench job; the matrix itself is under /matrices.
type benchSummary struct {
	Matrix string   `json:"matrix" doc:"The name of the matrix."`
	States any      `json:"cells_by_state" doc:"How many cells are in each state."`
	Trials int      `json:"trials" doc:"How many trials were made."`
	Notes  []string `json:"notes,omitempty" doc:"What else is to be known, for people."`
}
