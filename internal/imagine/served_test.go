package imagine

import (
	"strings"
	"testing"
)

// TestServedBy: a command whose memory is not followed excludes no GPU.
func TestServedBy(t *testing.T) {
	for _, test := range []struct {
		command string
		want    Served
		ok      bool
	}{
		{"/venv/bin/vllm serve org/model --port 1 --enforce-eager",
			Served{Model: "org/model", Utilization: 0.92, GPUs: 1}, true},
		{"vllm serve ./m --gpu_memory_utilization=0.8 -tp 2 --kv-cache-dtype fp8",
			Served{Model: "./m", Utilization: 0.8, Cache: "fp8", GPUs: 2}, true},
		{"vllm serve /my_models/a=b --port 1", Served{Model: "/my_models/a=b", Utilization: 0.92, GPUs: 1}, true},
		{"vllm serve --model m --port 1", Served{Model: "m", Utilization: 0.92, GPUs: 1}, true},
		{"vllm serve m --quantization fp8", Served{}, false},
		{"vllm serve m --tensor-parallel-size two", Served{}, false},
		{"vllm serve", Served{}, false},
		{"python3 -m vllm.entrypoints.openai.api_server --model m --gpu-memory-utilization 0.8",
			Served{Model: "m", Utilization: 0.8, GPUs: 1}, true},
		{"python -m sglang.launch_server --model-path ./m --disable-cuda-graph", Served{Model: "./m", Utilization: 1, GPUs: 1, SGLang: true},
			true},
		{"/venv/bin/python -m sglang.launch_server --model m --mem-fraction-static 0.7 --tp-size 2 --kv-cache-dtype fp8_e5m2",
			Served{Model: "m", Utilization: 0.7, Cache: "fp8_e5m2", GPUs: 2, SGLang: true}, true},
		{"python -m sglang.launch_server --model-path m --max-total-tokens 100", Served{}, false},
		{"python sglang.launch_server --model-path m", Served{}, false},
		{"python serve.py m", Served{}, false},
	} {
		got, ok := ServedBy(strings.Fields(test.command))
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: %+v, %v", test.command, got, ok)
		}
	}
}
