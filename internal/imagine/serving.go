package imagine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// engineSwitch begins the name of a switch that gives an LLM server's engine another setting.
const engineSwitch = "engine:"

// suggestServing tries what could make a server start whose memory did not suffice, and returns what came of each. The
// figures are those of the engine, as far as its start came.
func (s *Session) suggestServing(ctx context.Context, t trial, main *Result) []mem.Try {
	v, total := main.Serving, t.gpu.Total
	if v.Step != mem.ServingKVCache && v.Step != mem.ServingDevice { // how much it takes is not known yet
		roomy := t
		roomy.gpu.Total, roomy.gpu.Lowest = plenty, 0
		r, err := s.attempt(ctx, roomy)
		if err != nil || r.Serving == nil || !r.Serving.Ready {
			return nil
		}
		v = r.Serving
	}
	tries := s.tryAll(ctx, s.engineSettings(t, v, total))
	if need, ok := needed(v); ok {
		tries = append(tries, s.tryAll(ctx, s.otherGPUs(t, need))...)
	}
	slices.SortStableFunc(tries, func(a, b mem.Try) int {
		switch {
		case a.Fits() == b.Fits():
			return 0
		case a.Fits():
			return -1
		}
		return 1
	})
	return tries
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

// engineSettings are those with which a start may have enough memory.
func (s *Session) engineSettings(t trial, v *report.Serving, total mem.Bytes) (list []attempt) {
	try := func(setting, flag string) {
		again := t
		again.switches = append(slices.Clone(t.switches), engineSwitch+setting)
		list = append(list, attempt{engineSwitch + setting, flag, again})
	}
	budget, one, left := v.Budget.Or(0), v.KVNeeded.Or(0), v.KVAvailable.Or(0)
	switch v.Step {
	case mem.ServingDevice:
		if share := math.Floor(100*float64(v.Free.Or(0))/float64(total)) / 100; share > 0 && share < v.Utilization {
			try(fmt.Sprintf("gpu_memory_utilization=%.2f", share), fmt.Sprintf("--gpu-memory-utilization %.2f", share))
		}
	case mem.ServingKVCache:
		if longest := v.LongestLen.Or(0); longest > 0 {
			try(fmt.Sprintf("max_model_len=%d", longest), fmt.Sprintf("--max-model-len %d", longest))
		}
		share := math.Ceil(100*float64(budget+one-left)/float64(total)) / 100
		if share*float64(total) <= float64(v.Free.Or(int64(total))) {
			try(fmt.Sprintf("gpu_memory_utilization=%.2f", share), fmt.Sprintf("--gpu-memory-utilization %.2f", share))
		}
		if v.KVType == "auto" && one/2 <= left {
			try("kv_cache_dtype=fp8", "--kv-cache-dtype fp8")
		}
	}
	return list
}
