package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
)

// fitJob is `hightide fit`.
var fitJob = jobKind{"fit", "find the largest batch that fits", true, new(fit.Options).Settings(), beginFit}

func beginFit(s *Server, text json.RawMessage) (work, error) {
	o := fit.Options{Env: s.options.Env}
	if err := o.Settings().Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	title := "fit " + o.Model.Model
	if len(o.Command) > 0 {
		title = "fit " + mem.CommandLine(mem.MaskArgs(o.Command))
	} else if o.Model.Model == "" {
		return work{}, fail.Usage(`as in "model": "bert", or "command": ["python", "train.py", "--batch-size", "{batch}"]`,
			"neither a model nor a command to fit")
	}
	if o.GPU != "" {
		title += " on " + o.GPU
	}
	return work{title, o.Command, func(ctx context.Context, j *job) (any, error) {
		return j.aside(s.engine, func(e *engine.Engine) (any, error) {
			o.Events = j.takeEvent
			result, err := e.Fit(ctx, o)
			if result == nil {
				return nil, err // an untyped nil: there is no result
			}
			on, failed := others(result)
			return fitOutcome{result, on}, cmp.Or(err, failed)
		})
	}}, nil
}

// fitOutcome is the result of a fit job.
type fitOutcome struct {
	*fit.Result
	Others []mem.GPUVerdict `json:"other_gpus,omitempty" doc:"What other GPUs would leave, as estimated."`
}

func (o fitOutcome) ended() mem.Ending {
	if o.Largest == 0 {
		return mem.Ending{Kind: mem.EndOOM, Text: "no batch fits"}
	}
	return mem.Ending{Kind: mem.EndDone, Text: "at most " + report.Count(int64(o.Largest))}
}

// others estimates what other GPUs leave at the largest batch that was found on an imagined one.
func others(r *fit.Result) ([]mem.GPUVerdict, error) {
	at := slices.IndexFunc(r.Trials, func(t fit.Trial) bool { return t.Batch == r.Largest && t.OK })
	if at < 0 || r.GPU == nil {
		return nil, nil
	}
	known, err := gpus.Load()
	if err != nil {
		return nil, err
	}
	t := &r.Trials[at]
	own := mem.GPUVerdict{GPU: r.Slug, Verdict: mem.VerdictFits, Context: r.GPU.Overhead, Allocated: t.Allocated,
		Reserved: t.Reserved, Used: t.Used}
	return imagine.Others(known.Common(), imagine.Built{Architectures: r.Worker.Built, CUDA: r.Worker.CUDA}, &own, 1), nil
}
