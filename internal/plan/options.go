package plan

import (
	"fmt"
	"strconv"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/options"
)

// Use is what a model is used for, and how.
type Use struct {
	For         string  `json:"for" doc:"serve, infer, full, lora, qlora, dpo or grpo."`
	Seq         int     `json:"seq" doc:"Tokens of a sequence."`
	Users       int     `json:"users,omitempty" doc:"Sequences that are held at once, when served."`
	Batch       int     `json:"batch,omitempty" doc:"Sequences in a batch on each GPU, otherwise."`
	GPUs        int     `json:"gpus" doc:"GPUs together."`
	Weights     string  `json:"dtype" doc:"Type of the weights: auto, bf16, fp16, fp32, fp8, int4."`
	Cache       string  `json:"kv_dtype" doc:"Type of the cache: auto, fp8."`
	Optimizer   string  `json:"optimizer,omitempty" doc:"Of a training: adamw, adamw-8bit or sgd."`
	Rank        int     `json:"lora_rank,omitempty" doc:"Rank of the adapters."`
	KeepAll     bool    `json:"no_checkpointing,omitempty" doc:"Whether a training keeps all activations for the backward pass."`
	Utilization float64 `json:"utilization,omitempty" doc:"The part of a GPU's memory that the server takes."`
	SGLang      bool    `json:"-"` // it is the server, of which weights and cache alone are planned
}

// Options say what to plan.
type Options struct {
	Model     string
	GPU       []string
	Catalogue []string
	Instances bool
	Offline   bool
	Imagine   string // one of ImagineModes; "": everything is estimated
	Python    string // for Imagine; empty: as pythons.WithTorch chooses
	Use

	Host   Host       // for Imagine
	Events event.Sink // Progress and Imagined in turn

	// MayRead says why a file may not be read; nil: any may.
	MayRead func(path string) error
}

// The uses.
const (
	Serve = "serve"
	Infer = "infer"
	Full  = "full"
	LoRA  = "lora"
	QLoRA = "qlora"
	DPO   = "dpo"
	GRPO  = "grpo"
)

var uses = []string{Serve, Infer, Full, LoRA, QLoRA, DPO, GRPO}

// Settings are what a user can set of a plan.
func (o *Options) Settings() options.List {
	list := options.List{
		{Name: "model", Help: "a folder or file: config.json, safetensors, GGUF, ONNX, TFLite, pt2, pte; or a name of the Hugging Face hub", To: &o.Model,
			Required: true, Not: options.Command, Why: "it is the command's argument", Label: "Model", First: true,
			Example: "org/model"},
		{Name: "for", Help: "`use`: serve, infer, full, lora, qlora, dpo or grpo", To: &o.For, Default: Serve, Among: uses,
			Label: "Use", First: true, Hint: "serve: vLLM, of a GGUF llama.cpp; infer: a batch; the others train."},
		{Name: "seq", Help: "`tokens` of a sequence, prompt and answer together (default 4096, or what the model has)",
			To: &o.Seq, Least: 1, Label: "Tokens", First: true, Example: "4096"},
		{Name: "users", Help: "`number` of sequences that a server holds at once", To: &o.Users, Default: "1", Least: 1,
			Label: "Users", First: true, Example: "1"},
		{Name: "batch", Help: "`number` of sequences in a batch on each GPU, of other uses", To: &o.Batch, Default: "1", Least: 1,
			Label: "Batch", First: true, Example: "1"},
		{Name: "gpus", Help: "`number` of GPUs that hold it together", To: &o.GPUs, Default: "1", Least: 1, Label: "GPUs together",
			First: true, Example: "1"},
		{Name: "gpu", Help: "`names` of GPUs, as hightide gpus lists them, separated by commas; or all (the default)",
			To: &o.GPU, Commas: true, Label: "GPUs", Example: "l4 h100-sxm", Hint: "Names with spaces between; none: all."},
		{Name: "dtype", Help: "`type` of the weights: auto (as stored), bf16, fp16, fp32, fp8 or int4", To: &o.Weights,
			Default: "auto", Among: []string{"auto", "bf16", "fp16", "fp32", "fp8", "int4"}, Label: "Weights"},
		{Name: "kv-dtype", Help: "`type` of the cache: auto (16 bits) or fp8", To: &o.Cache, Default: "auto",
			Among: []string{"auto", "fp8"}, Label: "Cache"},
		{Name: "optimizer", Help: "`name` of the optimizer: adamw, adamw-8bit or sgd", To: &o.Optimizer, Default: "adamw",
			Among: []string{"adamw", "adamw-8bit", "sgd"}, Label: "Optimizer"},
		{Name: "lora-rank", Help: "`rank` of the adapters", To: &o.Rank, Default: strconv.Itoa(usualRank), Least: 1, Label: "Rank", Example: "16"},
		{Name: "no-checkpointing", Help: "keep all activations for the backward pass", To: &o.KeepAll, Label: "No checkpointing"},
		{Name: "utilization", To: &o.Utilization,
			Help:  "`part` of a GPU's memory that the server takes (default 0.9; vLLM 0.33 takes 0.92 by itself)",
			Label: "Part of the GPU", Example: "0.9"},
		{Name: "instances", Help: "plan with machines that clouds rent, their host memory and prices, in place of GPUs; with --gpus so many of theirs",
			To: &o.Instances, Label: "Machines to rent"},
		{Name: "offline", Help: "ask no hub: files and the local cache alone", To: &o.Offline, Label: "Offline",
			Not: options.MCP, Why: "an assistant's plans ask no hub"},
		{Name: "imagine", Help: "run it on GPUs that are not there, the cheapest that may do it first, up to the first that does; " +
			"--imagine `all`: all that may; off: none; auto, which is so on a terminal: where vLLM or torch is there",
			To: &o.Imagine, Among: ImagineModes, Not: options.CommandOnly, Why: "it starts programs, for minutes"},
		{Name: "python", Help: "`interpreter` for --imagine: with vLLM to serve, with transformers otherwise (default: vllm on PATH, that of " +
			"$VIRTUAL_ENV, else the first with torch)", To: &o.Python, Not: options.CommandOnly, Why: "it is for --imagine"},
		options.Catalogue(&o.Catalogue),
	}
	return list.Without(options.Python, "the command, the page and assistants plan")
}

// usualRank is that of adapters where none is given.
const usualRank = 16

// mostOfAny is the largest number of tokens, users or sequences that is planned with.
const mostOfAny = 1 << 24

// check refuses what makes no sense.
func (o *Options) check() error {
	if o.Model == "" {
		return fail.Usage("as in hightide plan ./Llama-3.1-8B --for serve --users 20", "there is no model to plan")
	}
	if o.Utilization < 0 || o.Utilization > 1 {
		return fail.Usage("as in --utilization 0.9", "--utilization %v is no part of one", o.Utilization)
	}
	for name, n := range map[string]int{"seq": o.Seq, "users": o.Users, "batch": o.Batch} {
		if n > mostOfAny {
			return fail.Usage(fmt.Sprintf("at most %d", mostOfAny), "--%s %d is more than hightide plans with", name, n)
		}
	}
	switch {
	case o.GPUs > 1024:
		return fail.Usage("at most 1024", "--gpus %d is more than hightide plans with", o.GPUs)
	case o.Rank > 1<<14:
		return fail.Usage("at most 16384", "--lora-rank %d is more than hightide plans with", o.Rank)
	}
	return o.Settings().Verify()
}
