package imagine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// engineSwitch begins the name of a switch that gives an LLM server's engine another setting.
const engineSwitch = "engine:"

// suggestServing tries what could make a server start whose memory did not suffice, and returns what came of each. The
// figures are those of the engine, as far as its start came.
func (s *Session) suggestServing(ctx context.Context, t trial, main *Result) []mem.Try {
	v := main.Serving
	whole := v // with what one sequence takes
	settings := &settings{base: t, engine: v.Engine, version: v.Version}
	var tries []mem.Try
	if v.Step != mem.ServingKVCache && v.Step != mem.ServingDevice {
		roomy := t
		roomy.gpu.Total, roomy.gpu.Lowest = plenty, 0
		if v.AfterCache() {
			roomy.switches = slices.Concat(t.switches, alike(v))
		}
		if r, err := s.attempt(ctx, roomy); err == nil && r.Serving != nil {
			whole = r.Serving
			if try, ok := wholeStart(&t, v, r); ok {
				tries, settings.lack = append(tries, try), mem.Bytes(-try.Headroom.Or(0))
			}
		}
	}
	need, known := needed(whole)
	settings.starts(v, t.gpu.Total)
	if known && need/2 < t.gpu.Total {
		settings.shared(v)
	}
	tries = append(s.tryAll(ctx, settings.list), tries...)
	if known {
		tries = append(tries, s.tryAll(ctx, s.otherGPUs(t, need, 1))...)
	}
	sortTries(tries)
	return tries
}

// alike are switches with which a start on a GPU of another size has the KV cache, the batches and the CUDA graphs of
// this one. Engines take more of each where there is more memory.
func alike(v *report.Serving) (switches []string) {
	cache := v.KVBlocks
	if v.Engine == "SGLang" {
		cache = v.KVTokens
	}
	for _, one := range []struct {
		argument string
		value    mem.Optional
	}{{"num_gpu_blocks_override", cache}, {"max_num_seqs", v.MaxSeqs}, {"max_num_batched_tokens", v.MaxBatched},
		{"max_cudagraph_capture_size", v.MaxCaptured}} {
		if n, ok := one.value.Get(); ok && (one.argument != "max_cudagraph_capture_size" || v.Engine == "SGLang") {
			switches = append(switches, fmt.Sprintf("%s%s=%d", engineSwitch, one.argument, n))
		}
	}
	return switches
}

// wholeStart is a start that had all the memory it wants, and the KV cache of one that failed after that: its headroom
// says what lacks on the GPU that was asked for. ok is false where it did not come to its end, or with another cache.
func wholeStart(t *trial, v *report.Serving, r *Result) (try mem.Try, ok bool) {
	if !v.AfterCache() || !r.Serving.Ready || !v.KVBytes.Known() || r.Serving.KVBytes != v.KVBytes {
		return try, false
	}
	try = mem.Try{Kind: mem.TryMemory, What: t.gpu.Name + " with all the memory it wants, and the same KV cache",
		GPUVerdict: priced(r.noted(), &t.gpu)}
	try.Total, try.Headroom = t.gpu.Total, mem.Some(int64(t.gpu.Total)-try.Used.Or(0))
	if graphs, known := r.Serving.Graphs.Get(); known {
		try.Note = fmt.Sprintf("CUDA graphs took %v of it", mem.Bytes(graphs))
	}
	return try, try.Used.Known() && try.Headroom.Or(0) < 0
}

// varyServing tries what else a server could be given that starts, and returns how many tokens it holds then.
func (s *Session) varyServing(ctx context.Context, t trial, main *Result) []mem.Try {
	v := main.Serving
	if !v.Ready || !v.KVTokens.Known() {
		return nil
	}
	settings := &settings{base: t, engine: v.Engine}
	settings.gains(v, t.gpu.Total)
	settings.shared(v)
	return s.tryAll(ctx, settings.list)
}

// needed is the memory of a GPU on which the KV cache holds one sequence of the greatest length.
func needed(v *report.Serving) (mem.Bytes, bool) {
	one, ok := v.KVNeeded.Get()
	beside := v.Weights.Or(0) + v.Activations.Or(0) + v.NonTorch.Or(0)
	if !ok || v.Utilization <= 0 || !v.Weights.Known() {
		return 0, false
	}
	if budget, had := v.Budget.Get(); had && v.KVAvailable.Known() {
		beside = budget - v.KVAvailable.Or(0) // with what the engine had before its start
	}
	return mem.Bytes(math.Ceil(float64(beside+one) / v.Utilization)), true
}

// engineFlags has the flags of engines other than vLLM, by vLLM's names of the settings. One that is not there is not
// tried.
var engineFlags = map[string]map[string]string{
	"SGLang": {
		"max_model_len": "--context-length", "gpu_memory_utilization": "--mem-fraction-static",
		"max_num_batched_tokens": "--chunked-prefill-size", "max_num_seqs": "--max-running-requests",
		"enforce_eager": "--disable-cuda-graph", "tensor_parallel_size": "--tp-size", "kv_cache_dtype": "--kv-cache-dtype",
		"max_cudagraph_capture_size": "--cuda-graph-max-bs",
	},
}

// settings are starts of an engine with one setting changed. Each is given to the engine's own arguments.
type settings struct {
	base    trial
	engine  string
	version string
	lack    mem.Bytes // of a start that fails after it has its KV cache; 0: not known
	users   int64     // sequences that are to run at once at least
	list    []attempt
}

// try adds a start with an argument of the engine changed; flag is how a user says it.
func (s *settings) try(argument string, value any, flag string, count int) {
	if flags, other := engineFlags[s.engine]; other {
		own, has := flags[argument]
		if !has {
			return
		}
		flag = strings.Replace(flag, "--"+strings.ReplaceAll(argument, "_", "-"), own, 1)
	}
	again := s.base
	name := fmt.Sprintf("%s%s=%v", engineSwitch, argument, value)
	again.switches = append(slices.Clone(s.base.switches), name)
	if count > 0 {
		again.count = count
	}
	s.list = append(s.list, attempt{name, flag, again})
}

// number adds one whose flag takes the value.
func (s *settings) number(argument, flag string, value any) {
	s.try(argument, value, fmt.Sprintf("%s %v", flag, value), 0)
}

// starts are those with which a start may have enough memory, the smallest change first: another share, then what makes
// a server slower, then what bounds its sequences or changes their values.
func (s *settings) starts(v *report.Serving, total mem.Bytes) {
	switch v.Step {
	case mem.ServingDevice:
		if share := shareOf(v.Free.Or(0), total); share > 0 && share < v.Utilization {
			s.utilization(share)
		}
	case mem.ServingProfiling:
		s.smaller(v)
	case mem.ServingKVCache:
		lack := v.KVNeeded.Or(0) - v.KVAvailable.Or(0)
		share := math.Ceil(100*float64(v.Budget.Or(0)+lack)/float64(total)) / 100
		if share > v.Utilization && share*float64(total) <= float64(v.Free.Or(int64(total))) {
			s.utilization(share)
		}
		if v.Activations.Or(0) > lack {
			s.smaller(v)
		}
		if longest := v.LongestLen.Or(0); longest > 0 {
			s.number("max_model_len", "--max-model-len", longest)
		}
		if v.KVType == "auto" && v.KVNeeded.Known() && v.KVNeeded.Or(0)/2 <= v.KVAvailable.Or(0) {
			s.eightBits()
		}
	case mem.ServingWarmUp, mem.ServingGraphs: // beyond the share, which was full before
		lower := math.Round(100*(v.Utilization-0.05)) / 100
		if s.lack > 0 { // with room for what other drivers take
			lower = math.Floor(100*(v.Utilization-float64(s.lack+s.base.gpu.Tight())/float64(total))) / 100
		}
		if lower > 0 {
			s.utilization(lower)
		}
		s.fewerGraphs(v)
		s.smaller(v)
		s.eager(v)
	}
}

// gains are those with which a server that starts may hold more tokens, or longer sequences.
func (s *settings) gains(v *report.Serving, total mem.Bytes) {
	if most := min(v.LongestOfModel.Or(0), v.KVTokens.Or(0)); most > v.MaxModelLen.Or(0) {
		s.number("max_model_len", "--max-model-len", most)
	}
	if share := min(0.95, shareOf(v.Free.Or(0), total)); share > v.Utilization {
		s.utilization(share)
	}
	if bytes, ok := v.Suggested.Get(); ok && bytes > v.KVBytes.Or(0) {
		s.try("kv_cache_memory_bytes", bytes, fmt.Sprintf("--kv-cache-memory=%d, as %s's log suggests", bytes, v.Engine), 0)
	}
	if v.KVType == "auto" {
		s.eightBits()
	}
	s.smaller(v)
	s.eager(v)
}

// smaller are a quarter of the largest batch, and of the sequences at once: what takes less beside the KV cache.
func (s *settings) smaller(v *report.Serving) {
	sequences, batched := v.MaxSeqs.Or(0), v.MaxBatched.Or(0)
	least := sequences
	if s.engine == "SGLang" { // its batches of prompts have no sequence that answers
		least = 1
	}
	if fewer := max(batched/4, least); batched > 0 && fewer < batched {
		s.number("max_num_batched_tokens", "--max-num-batched-tokens", fewer)
	}
	if fewer := max(sequences/4, s.users); sequences >= 8 && fewer < sequences {
		s.number("max_num_seqs", "--max-num-seqs", fewer)
	}
}

// eightBits is a KV cache of 8 bits. Kernels for it are compiled when they are first used, and not every GPU has such
// numbers: a request shows it.
func (s *settings) eightBits() {
	before, kind := len(s.list), "fp8"
	if s.engine == "SGLang" {
		kind = "fp8_e5m2"
	}
	s.number("kv_cache_dtype", "--kv-cache-dtype", kind)
	for i := range s.list[before:] {
		if last := &s.list[before+i].trial; last.load == "" {
			last.load = "1x16+2"
		}
	}
}

func (s *settings) utilization(share float64) {
	value := fmt.Sprintf("%.2f", share)
	s.number("gpu_memory_utilization", "--gpu-memory-utilization", value)
}

// fewerGraphs are a quarter and a sixteenth of the largest batch that is captured, where that is what lacked memory.
func (s *settings) fewerGraphs(v *report.Serving) {
	argument, flag := "max_cudagraph_capture_size", "--max-cudagraph-capture-size"
	if s.engine == "vLLM" && before(s.version, 0, 12) {
		argument, flag = "cuda_graph_sizes", "--cuda-graph-sizes"
	}
	most := v.MaxCaptured.Or(0)
	for _, part := range []int64{4, 16} {
		if v.Step == mem.ServingGraphs && v.CUDAGraphs && most/part > 0 {
			s.number(argument, flag, most/part)
		}
	}
}

// before says whether a version is older than another; one that cannot be read is not.
func before(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}

// eager is a start without CUDA graphs.
func (s *settings) eager(v *report.Serving) {
	if v.CUDAGraphs {
		s.try("enforce_eager", true, "--enforce-eager", 0)
	}
}

// shared is a start on two GPUs that share each layer, where one was asked for.
func (s *settings) shared(v *report.Serving) {
	if v.TensorParallel.Or(0) == 1 && s.base.count == 1 {
		s.try("tensor_parallel_size", 2, fmt.Sprintf("--tensor-parallel-size 2 on 2 × %s", s.base.gpu.Slug), 2)
	}
}

// shareOf is a part of the memory in whole hundredths that are not more than it.
func shareOf(part int64, total mem.Bytes) float64 {
	return math.Floor(100*float64(part)/float64(total)) / 100
}
