package server

import (
	"cmp"
	"context"
	"encoding/json"

	"hightide/internal/analyze/facts"
	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/options"
)

// imagineJob is `hightide imagine`.
var imagineJob = jobKind{"imagine", "run a program on GPUs that are not there", true,
	new(engine.ImagineOptions).Settings(), beginImagine}

func beginImagine(s *Server, text json.RawMessage) (work, error) {
	o := engine.ImagineOptions{RunOptions: engine.RunOptions{HTML: true, Options: observe.Options{Env: s.options.Env}}}
	if err := o.Settings().Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	if len(o.Command) == 0 {
		return work{}, fail.Usage(`as in "command": ["python", "train.py"]`, "no command to imagine")
	}
	if err := o.Options.Check(); err != nil {
		return work{}, err
	}
	title := "imagine " + mem.CommandLine(mem.MaskArgs(o.Command))
	if o.GPU != "" {
		title += " on " + o.GPU
	}
	return work{title, o.Command, func(ctx context.Context, j *job) (any, error) {
		return j.aside(s.engine, func(e *engine.Engine) (any, error) {
			o.Events = j.takeEvent
			done, err := e.Imagine(ctx, o)
			if done == nil {
				return nil, err
			}
			j.change(func() {
				if j.Run = done.ID; done.Elsewhere != "" {
					j.Run = "" // this server does not have it
				}
			})
			others, failed := done.OtherGPUs()
			return imagineOutcome{done.Summary(), others}, cmp.Or(err, failed)
		})
	}}, nil
}

// imagineOutcome is the result of an imagine job.
type imagineOutcome struct {
	engine.ImagineSummary
	Others []mem.GPUVerdict `json:"other_gpus,omitempty" doc:"What other GPUs would leave, as estimated."`
}

func (o imagineOutcome) ended() mem.Ending {
	if o.Imagined == nil {
		return facts.EndOf(mem.VerdictNone)
	}
	return facts.EndOf(o.Verdict)
}

// aside runs a use case with programs that have no terminal; the end of what they write is the job's output.
func (j *job) aside(e *engine.Engine, do func(*engine.Engine) (any, error)) (any, error) {
	apart, output, err := e.Aside()
	if err != nil {
		return nil, err
	}
	result, err := do(apart)
	said := output()
	j.change(func() { j.Output = said })
	return result, err
}
