package server

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"hightide/internal/analyze"
	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/imagine"
	"hightide/internal/mem"
	"hightide/internal/observe"
)

// imagineJob is `hightide imagine`.
var imagineJob = jobKind{"imagine", "run a program on GPUs that are not there", true, beginImagine}

// imagineAsked are the options of an imagine job: flags of `hightide imagine` by their names.
type imagineAsked struct {
	Command   []string `json:"command"`
	Name      string   `json:"name"`
	GPU       string   `json:"gpu"`
	GPUs      int      `json:"gpus"`
	Memory    string   `json:"memory"`
	Steps     string   `json:"steps"`
	AllocConf string   `json:"alloc_conf"`
	World     int      `json:"world_size"`
	Play      string   `json:"play"`
	Sizes     string   `json:"data_sizes"`
	Vary      bool     `json:"vary"`
	Suggest   *bool    `json:"suggest"`
	Sandbox   bool     `json:"sandbox"`
	Fake      bool     `json:"fake_weights"`
}

func beginImagine(s *Server, text json.RawMessage) (work, error) {
	asked, err := options[imagineAsked](text)
	if err != nil {
		return work{}, err
	}
	o := engine.ImagineOptions{RunOptions: engine.RunOptions{HTML: true,
		Options: observe.Options{Command: asked.Command, Name: asked.Name, Env: s.options.Env, NoStacks: true}},
		Options: imagine.Options{GPU: asked.GPU, GPUs: asked.GPUs, Until: asked.Steps, AllocConf: asked.AllocConf,
			World: asked.World, PlayList: asked.Play,
			Sizes: asked.Sizes, Vary: asked.Vary, NoSuggest: asked.Suggest != nil &&
				!*asked.Suggest, Sandbox: asked.Sandbox, FakeWeights: asked.Fake}}
	if len(asked.Command) == 0 {
		return work{}, fail.Usage(`as in "command": ["python", "train.py"]`, "no command to imagine")
	}
	if o.Until == "" {
		o.Until = "auto"
	}
	if _, err := strconv.Atoi(o.Until); err != nil && o.Until != "auto" {
		return work{}, fail.Usage(`"auto", or a number of steps`, "steps %s is not a number", o.Until)
	}
	if o.Sizes == "" {
		o.Sizes = "upper"
	}
	if asked.Memory != "" {
		if o.Memory, err = mem.ParseBytes(asked.Memory); err != nil || o.Memory <= 0 {
			return work{}, fail.Usage(`as in "memory": "24GiB"`, "memory %s is not a size", asked.Memory)
		}
	}
	title := "imagine " + mem.CommandLine(mem.MaskArgs(asked.Command))
	if asked.GPU != "" {
		title += " on " + asked.GPU
	}
	return work{title, asked.Command, func(ctx context.Context, j *job) (any, error) {
		return j.aside(s.engine, func(e *engine.Engine) (any, error) {
			o.Events = j.tell
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
	Others []mem.GPUVerdict `json:"other_gpus,omitempty"` // estimates
}

func (o imagineOutcome) ended() mem.Ending {
	if o.Imagined == nil {
		return analyze.EndOf(mem.VerdictNone)
	}
	return analyze.EndOf(o.Verdict)
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
