package server

import (
	"context"
	"encoding/json"

	"hightide/internal/analyze/facts"
	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/tune"
)

// tuneJob is `hightide tune`.
var tuneJob = jobKind{"tune", "find the cheapest changes by which a training fits", true,
	new(tune.Options).Settings(), beginTune}

func beginTune(s *Server, text json.RawMessage) (work, error) {
	o := tune.Options{Env: s.options.Env, Dry: true} // the page has the plan's text
	if err := o.Settings().Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	if err := o.Check(); err != nil {
		return work{}, err
	}
	title := "tune " + mem.CommandLine(mem.MaskArgs(o.Command)) + " for " + o.GPU
	return work{title, o.Command, func(ctx context.Context, j *job) (any, error) {
		return j.aside(s.engine, func(e *engine.Engine) (any, error) {
			o.Events = j.takeEvent
			result, err := e.Tune(ctx, o)
			if result == nil {
				return nil, err // an untyped nil: there is no result
			}
			return tuneOutcome{result, err == nil}, err
		})
	}}, nil
}

// tuneOutcome is the result of a tune job.
type tuneOutcome struct {
	*tune.Result
	whole bool
}

func (o tuneOutcome) ended() mem.Ending {
	switch {
	case !o.whole:
		return mem.Ending{}
	case !o.Reached() && o.Server != nil:
		return mem.Ending{Kind: mem.EndOOM, Text: "no settings reach the goal"}
	case !o.Reached():
		return mem.Ending{Kind: mem.EndOOM, Text: "no plan reaches the goal"}
	case o.Server != nil:
		return facts.EndOf(o.Result.Verdict)
	case len(o.Recommended.Levers) == 0:
		return facts.EndOf(o.Result.Verdict)
	}
	end := facts.EndOf(o.Result.Verdict)
	end.Text += " with a plan"
	return end
}
