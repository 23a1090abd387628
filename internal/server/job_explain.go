package server

import (
	"context"
	"encoding/json"

	"hightide/internal/analyze/trace"
	"hightide/internal/options"
	"hightide/internal/report"
)

// explainJob is `hightide explain` of a run: for those that are too large for a request.
var explainJob = jobKind{"explain", "explain a run and its snapshots", false, runToExplain(new(string)), beginExplain}

func runToExplain(to *string) options.List {
	return options.List{{Name: "run", Help: "id of the run", To: to}}
}

func beginExplain(s *Server, text json.RawMessage) (work, error) {
	var id string
	if err := runToExplain(&id).Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	run, err := s.findRun(context.Background(), id)
	if err != nil {
		return work{}, err
	}
	return work{"explain " + run.ID, nil, func(ctx context.Context, j *job) (any, error) {
		j.change(func() { j.Run = run.ID })
		var r *report.Report
		if r, err = s.engine.Explain(ctx, []string{run.ID}, trace.Options{}); err != nil {
			return nil, err
		}
		return r, nil
	}}, nil
}
