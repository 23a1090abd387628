package mem

import (
	"regexp"
	"strconv"
)

// Serving is what one process of an LLM server said of its start: the adapter of its engine reads it off the engine's
// own objects. Each replaces the one before of the same process. Of a figure that several processes tell, as of the
// ranks of tensor parallelism, the largest stands.
type Serving struct {
	Process uint32 `json:"process"`
	Time    int64  `json:"time_ns"`
	Engine  string `json:"engine"`  // as people write it
	Version string `json:"version"` // of the engine
	// What the start was at last: one of ServingSteps, or ServingReady.
	Step    string `json:"at,omitempty"`
	Answers bool   `json:"answers,omitempty"` // requests can come, over HTTP or by a call
	ServingFigures
}

// ServingFigures are of one GPU where several share a model.
type ServingFigures struct {
	KVTokens       Optional `json:"kv_tokens,omitzero" doc:"How many tokens the KV cache holds."`
	KVBytes        Optional `json:"kv_bytes,omitzero" doc:"The KV cache in bytes, of one GPU."`
	KVHost         Optional `json:"kv_host_bytes,omitzero" doc:"Where a part of the KV cache is kept on the host: its bytes there, for one GPU."`
	KVBlocks       Optional `json:"kv_blocks,omitzero" doc:"The blocks of the KV cache."`
	BlockSize      Optional `json:"block_size,omitzero" doc:"Tokens of a block."`
	KVType         string   `json:"kv_dtype,omitempty" doc:"The type of keys and values, as the engine calls it; auto: that of the model."`
	MaxConcurrency float64  `json:"max_concurrency,omitempty" doc:"How many sequences of the greatest length the KV cache holds, as the engine says it."`
	AskedAtOnce    float64  `json:"asked_concurrency,omitempty" doc:"How many sequences of the length asked it holds, as the engine says it."`
	MaxModelLen    Optional `json:"max_model_len,omitzero" doc:"The greatest length of a sequence, in tokens."`
	MaxSeqs        Optional `json:"max_num_seqs,omitzero" doc:"How many sequences the engine runs at once."`
	MaxBatched     Optional `json:"max_num_batched_tokens,omitzero" doc:"Tokens of the largest batch."`
	MaxCaptured    Optional `json:"max_captured,omitzero" doc:"The largest batch of which a CUDA graph is captured, in tokens."`
	Weights        Optional `json:"weights_bytes,omitzero" doc:"The weights in bytes, as the engine measured them on one GPU."`
	WeightsNeeded  Optional `json:"weights_needed_bytes,omitzero" doc:"Where there was no memory to load them all: what the weights take on one GPU, in bytes, by the model as the engine builds it."`
	Activations    Optional `json:"activation_bytes,omitzero" doc:"Beside the weights, what the engine's profiling pass took at its peak, in bytes."`
	Graphs         Optional `json:"graph_bytes,omitzero" doc:"What capturing CUDA graphs took of the device, in bytes, as the engine measured it."`
	GraphsReserved Optional `json:"graph_reserved_bytes,omitzero" doc:"What the engine took out of the KV cache for CUDA graphs before it captured them, in bytes, by its own estimate."`
	NonTorch       Optional `json:"non_torch_bytes,omitzero" doc:"What the engine found in use beside PyTorch's allocator, in bytes."`
	Utilization    float64  `json:"utilization,omitempty" doc:"The share of the GPU's memory that the engine may use."`
	Budget         Optional `json:"budget_bytes,omitzero" doc:"That share in bytes."`
	Free           Optional `json:"free_bytes,omitzero" doc:"What was free when the engine started, in bytes."`
	KVAvailable    Optional `json:"kv_available_bytes,omitzero" doc:"What is left of the share for the KV cache, in bytes."`
	KVNeeded       Optional `json:"kv_needed_bytes,omitzero" doc:"The KV cache of one sequence of the greatest length, in bytes of one GPU."`
	LongestLen     Optional `json:"longest_model_len,omitzero" doc:"Where that is more than there is: the longest sequence that there is room for, in tokens, as the engine says it."`
	LongestOfModel Optional `json:"longest_of_model,omitzero" doc:"The longest sequence that the model is made for, in tokens."`
	Suggested      Optional `json:"suggested_kv_bytes,omitzero" doc:"The KV cache with which the engine's log promises to use all of the GPU, in bytes."`
	LoadAnswered   Optional `json:"load_answered,omitzero" doc:"Where requests were played: how many were answered."`
	LoadRefused    string   `json:"load_refused,omitempty" doc:"Why one of them was not."`
	LoadRunning    Optional `json:"load_running,omitzero" doc:"How many of them ran at once at most."`
	LoadBlocks     Optional `json:"load_blocks,omitzero" doc:"The blocks of the KV cache that they had at most."`
	LoadPreempted  Optional `json:"load_preemptions,omitzero" doc:"How often one lost its blocks to another, and was computed anew."`
	TensorParallel Optional `json:"tensor_parallel_size,omitzero" doc:"How many GPUs share each layer."`
	CUDAGraphs     bool     `json:"cuda_graphs,omitempty" doc:"Whether the engine is set to capture CUDA graphs."`
}

// Load is requests that a server is to answer at once, each of so many tokens.
type Load struct{ Sequences, Prompt, Output int64 }

var loadText = regexp.MustCompile(`^([1-9]\d{0,3})x([1-9]\d{0,6})\+([1-9]\d{0,5})$`)

// ParseLoad reads 8x512+128: eight requests of 512 tokens and 128 of answer each.
func ParseLoad(text string) (l Load, ok bool) {
	found := loadText.FindStringSubmatch(text)
	if found == nil {
		return l, false
	}
	for i, to := range []*int64{&l.Sequences, &l.Prompt, &l.Output} {
		*to, _ = strconv.ParseInt(found[i+1], 10, 64) // of digits alone
	}
	return l, true
}

// The steps of a server's start, in their order.
const (
	ServingDevice    = "device"    // the engine looks at the GPU's memory
	ServingWeights   = "weights"   // it loads the model
	ServingProfiling = "profiling" // it runs the largest batch, to see what that takes
	ServingKVCache   = "kv_cache"  // it divides what is left into blocks
	ServingWarmUp    = "warm-up"
	ServingGraphs    = "graphs" // it captures CUDA graphs
	ServingReady     = "ready"
)

// StopReady is the text of the "stop" event of a server that answers.
const StopReady = "ready"

func (Serving) frame() {}
