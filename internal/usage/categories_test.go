package usage

import (
	"testing"

	"hightide/internal/mem"
)

// TestRules: what a block is for, by the frames of who allocated it and by its life.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		file, function string
		life           string
		want           string
	}{
		{"/lib/transformers/cache_utils.py", "update", "kept", "KV cache"},
		{"/lib/transformers/cache_utils.py", "__init__", "start", "KV cache"},
		{"/lib/litgpt/model.py", "build_kv_cache", "kept", "KV cache"},
		{"model.py", "setup_caches", "start", "KV cache"},
		{"/lib/vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors", "kept", "KV cache"},
		{"/lib/vllm/v1/worker/utils.py", "allocate_kv_cache", "kept", "KV cache"},
		{"/lib/sglang/srt/mem_cache/memory_pool.py", "_create_buffers", "kept", "KV cache"},
		{"/lib/vllm/v1/engine/core.py", "_initialize_kv_caches", "kept", "unknown"}, // it measures a batch first
		{"/lib/vllm/v1/worker/gpu_model_runner.py", "profile_run", "kept", "activations"},
		{"/lib/vllm/v1/worker/gpu_model_runner.py", "_dummy_sampler_run", "kept", "activations"},
		{"/lib/bitsandbytes/functional.py", "dequantize_4bit", "kept", "temporaries"},
		{"/lib/bitsandbytes/functional.py", "dequantize_4bit", "start", "parameters"},
		{"/lib/transformers/modeling_utils.py", "from_pretrained", "kept", "parameters"},
		{"train.py", "backward", "kept", "gradients"},
	} {
		var m made
		stack := m.calls(mem.Location{File: c.file, Line: 3, Function: c.function},
			mem.Location{File: "train.py", Line: 9, Function: "main"})
		if c.life == "start" {
			block := mem.Block{Address: 1 << 50, Size: mem.MiB, Requested: mem.MiB, State: mem.BlockAllocated, Stack: stack}
			m.Segments = []mem.Segment{{Address: 1 << 50, Size: mem.MiB, Blocks: []mem.Block{block}}}
		} else {
			m.alloc(stack, mem.MiB)
		}
		d := m.device()
		if got := NewCategories(d, nil).Of(0); got != c.want {
			t.Errorf("%s:%s, %s: %s, want %s", c.file, c.function, c.life, got, c.want)
		}
	}
}

// TestBackwardOfTheProgramsOwn: what a backward pass allocates and frees again is not a gradient. That holds, too,
// where a function of the program's own or a recomputation comes amidst the pass, and where the optimizer allocates
// nothing.
func TestBackwardOfTheProgramsOwn(t *testing.T) {
	const layers = 10
	file := "/home/me/model.py"
	of := func(m *made, function string) uint32 {
		return m.calls(mem.Location{File: file, Line: 9, Function: function},
			mem.Location{File: "/x/torch/autograd/function.py", Function: "apply", Line: 7})
	}
	recomputed := func(m *made) uint32 {
		return m.calls(mem.Location{File: file, Line: 20, Function: "gelu"},
			mem.Location{File: "/x/torch/nn/modules/module.py", Function: "_call_impl"},
			mem.Location{File: "/x/torch/utils/checkpoint.py", Function: "backward"})
	}
	for name, own := range map[string]func(*made) uint32{
		"in a function of its own": func(m *made) uint32 { return of(m, "backward") },
		"in a hook":                func(m *made) uint32 { return of(m, "scaled") },
		"in a recomputation":       recomputed,
	} {
		t.Run(name, func(t *testing.T) {
			var m made
			gradient := map[uint64]bool{}
			for range 3 {
				m.forward(3, true)
				var gradients, passing []uint64
				for range layers {
					before := passing // the gradients of activations live on over what the function allocates
					passing = []uint64{m.alloc(0, 4*mem.MiB), m.alloc(0, 4*mem.MiB)}
					for range 4 {
						before = append(before, m.alloc(own(&m), 2*mem.MiB))
					}
					for _, a := range before {
						m.free(a, mem.MiB)
					}
					gradients = append(gradients, m.alloc(0, mem.MiB), m.alloc(0, mem.MiB))
				}
				for _, a := range gradients {
					gradient[a] = true
				}
				for _, a := range append(passing, gradients...) { // the optimizer allocates nothing
					m.free(a, mem.MiB)
				}
			}
			d := m.device()
			sorter := NewCategories(d, nil)
			right, found := 0, 0
			for i := range d.Bytes {
				if d.Stack[i] == 0 && sorter.Of(i) == "gradients" {
					found++
					if gradient[d.AddressOf(i)] {
						right++
					}
				}
			}
			// Of the last layer's two, nothing in the trace tells that they were to outlast the pass.
			if right < 3*2*(layers-1) || found != right {
				t.Errorf("%d blocks are called gradients, %d are, of %d", found, right, 3*2*layers)
			}
		})
	}
}
