package tune

import (
	"hightide/internal/frameworks"
	"hightide/internal/mem"
)

// EightBits is what allows an LLM server's KV cache in 8 bits.
const EightBits = "kv_fp8"

// Setting is another value of an argument of an LLM server's engine.
type Setting = frameworks.Setting

// lengthOf is the argument of the greatest length of a sequence.
const lengthOf = "max_model_len"

// asItIs is what a start without other settings is called.
const asItIs = "as it is"

// ServerPoint is a start of a server with some settings.
type ServerPoint struct {
	Settings    []Setting      `json:"settings" doc:"What differs from the command; empty: nothing."`
	What        string         `json:"what" doc:"The same as flags."`
	Verdict     mem.GPUVerdict `json:"verdict" doc:"What came of the imagined start; kv_tokens has the tokens of its KV cache."`
	Length      mem.Optional   `json:"max_model_len,omitzero" doc:"The greatest length of a sequence, in tokens."`
	Held        mem.Optional   `json:"sequences,omitzero" doc:"How many sequences of the length asked, else of the greatest length, it runs at once."`
	Sequences   mem.Optional   `json:"max_num_seqs,omitzero" doc:"What latency depends on: how many sequences run at once at most."`
	Batched     mem.Optional   `json:"max_num_batched_tokens,omitzero" doc:"What latency depends on: tokens of the largest batch, by which prompts are read."`
	KVType      string         `json:"kv_dtype,omitempty" doc:"What latency and numbers depend on: the type of keys and values, as the engine calls it; auto: that of the model."`
	GPUs        int            `json:"gpus" doc:"What latency depends on: how many GPUs share each layer."`
	Graphs      bool           `json:"cuda_graphs" doc:"What latency depends on: whether CUDA graphs are captured."`
	Utilization float64        `json:"utilization,omitempty" doc:"The share of the GPU's memory that the engine may use."`
	Best        bool           `json:"on_frontier" doc:"No other start that ran holds as many tokens at no more cost."`
	Enough      bool           `json:"reaches_goal" doc:"Whether it serves what was asked for, with room to spare."`
	Chosen      bool           `json:"recommended" doc:"It is the one that is recommended."`
	Costs       string         `json:"costs" doc:"What it costs, in words; how long an answer takes is not known."`
}

// Server is what a tune finds of an LLM server: its settings, of which no plan is made.
type Server struct {
	Engine  string         `json:"engine" doc:"The engine."`
	Version string         `json:"engine_version,omitempty" doc:"Its version."`
	Users   int            `json:"users,omitempty" doc:"How many sequences it is to run at once; absent: that was not asked for."`
	Tokens  int            `json:"tokens,omitempty" doc:"How long each is."`
	Points  []*ServerPoint `json:"points" doc:"All starts, the cheapest first."`
	Chosen  *ServerPoint   `json:"recommended,omitempty" doc:"The one that is recommended, started whole with its flags; absent: none reaches the goal."`
	Command []string       `json:"recommended_command,omitempty" doc:"The command with these flags."`
	first   *ServerPoint   // the command as it is
}

// tight says whether it serves what was asked for, with less to spare than the figures are sure of.
func (p *ServerPoint) tight() bool {
	return p.Verdict.Verdict == mem.VerdictTight && p.Verdict.KVTokens.Known()
}
