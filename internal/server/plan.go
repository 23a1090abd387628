package server

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/plan"
)

// planInput is what a plan is asked for. The configuration is sent: no file of this machine is named, and no hub asked.
type planInput struct {
	Body struct {
		Config    json.RawMessage `json:"config" doc:"A config.json of Hugging Face, as it is."`
		Name      string          `json:"name,omitempty" maxLength:"200" doc:"How to call the model."`
		For       string          `json:"for,omitempty" doc:"serve (the default), infer, full, lora, qlora, dpo or grpo."`
		Seq       int             `json:"seq,omitempty" minimum:"0" doc:"Tokens of a sequence; default 4096, or what the model has."`
		Users     int             `json:"users,omitempty" minimum:"0" doc:"Sequences that a server holds at once; default 1."`
		Batch     int             `json:"batch,omitempty" minimum:"0" doc:"Sequences in a batch on each GPU, of other uses; default 1."`
		GPUs      int             `json:"gpus,omitempty" minimum:"0" doc:"GPUs that hold it together; default 1."`
		GPU       []string        `json:"gpu,omitempty" maxItems:"200" doc:"Names of GPUs; default all."`
		Weights   string          `json:"dtype,omitempty" doc:"Type of the weights: auto, bf16, fp16, fp32, fp8 or int4."`
		Cache     string          `json:"kv_dtype,omitempty" doc:"Type of the cache: auto or fp8."`
		Optimizer string          `json:"optimizer,omitempty" doc:"adamw, adamw-8bit or sgd."`
		Rank      int             `json:"lora_rank,omitempty" minimum:"0" doc:"Rank of the adapters; default 16."`
		KeepAll   bool            `json:"no_checkpointing,omitempty" doc:"Whether all activations are kept for the backward pass."`
		Share     float64         `json:"utilization,omitempty" doc:"The part of a GPU's memory that the server takes; default 0.9."`
		Instances bool            `json:"instances,omitempty" doc:"Whether to plan with machines that clouds rent."`
	}
}

func (s *Server) plan(api huma.API) {
	change(api, "POST", "/plan", "Which GPUs serve, run or train the model of a config.json: arithmetic, nothing is run",
		func(_ context.Context, in *planInput) (*plan.Result, error) {
			b := &in.Body
			r, err := plan.OfConfig(b.Config, plan.Options{Model: cmp.Or(b.Name, "config.json"), GPU: b.GPU,
				Instances: b.Instances, Use: plan.Use{For: b.For, Seq: b.Seq, Users: b.Users, Batch: b.Batch, GPUs: b.GPUs,
					Weights: b.Weights, Cache: b.Cache, Optimizer: b.Optimizer, Rank: b.Rank, KeepAll: b.KeepAll,
					Utilization: b.Share}})
			if fail.Code(err) == fail.ExitBadInput { // it stands in the request
				err = huma.Error422UnprocessableEntity(line(err))
			}
			return r, err
		})
}
