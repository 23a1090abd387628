package imagine

import (
	"slices"
	"syscall"
	"testing"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestEngineSettings: what is tried follows from the step that lacked memory, and from by how much.
func TestEngineSettings(t *testing.T) {
	some, gib := mem.Some, int64(mem.GiB)
	figures := func(step string) *report.Serving {
		return &report.Serving{Engine: "vLLM", Step: step, ServingFigures: mem.ServingFigures{Utilization: 0.9, KVType: "auto",
			CUDAGraphs: true, MaxCaptured: some(512), MaxSeqs: some(256), MaxBatched: some(8192), Budget: some(18 * gib),
			Free:           some(19 * gib),
			TensorParallel: some(1), MaxModelLen: some(8192)}}
	}
	cache := figures(mem.ServingKVCache)
	cache.KVNeeded, cache.KVAvailable, cache.LongestLen, cache.Activations = some(2*gib), some(1*gib), some(4096), some(2*gib)
	little := figures(mem.ServingKVCache)
	little.KVNeeded, little.KVAvailable, little.Activations = some(16*gib), some(1*gib), some(2*gib)
	busy := figures(mem.ServingDevice)
	busy.Free = some(15 * gib)
	served := figures(mem.ServingReady)
	served.KVTokens, served.KVBytes, served.LongestOfModel, served.Suggested = some(20000), some(3*gib), some(131072), some(4*gib)
	for _, test := range []struct {
		name string
		of   *report.Serving
		want []string
	}{
		{"one sequence is too long", cache, []string{"--gpu-memory-utilization 0.95",
			"--max-num-batched-tokens 2048", "--max-num-seqs 64", "--max-model-len 4096", "--kv-cache-dtype fp8"}},
		{"by more than anything but the GPU gives", little, nil},
		{"others use the GPU", busy, []string{"--gpu-memory-utilization 0.75"}},
		{"the largest batch", figures(mem.ServingProfiling), []string{"--max-num-batched-tokens 2048", "--max-num-seqs 64"}},
		{"CUDA graphs", figures(mem.ServingGraphs), []string{"--gpu-memory-utilization 0.85",
			"--max-cudagraph-capture-size 128", "--max-cudagraph-capture-size 32", "--max-num-batched-tokens 2048",
			"--max-num-seqs 64", "--enforce-eager"}},
		{"warm-up", figures(mem.ServingWarmUp), []string{"--gpu-memory-utilization 0.85",
			"--max-num-batched-tokens 2048", "--max-num-seqs 64", "--enforce-eager"}},
		{"the weights", figures(mem.ServingWeights), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := settings{base: trial{count: 1, gpu: gpus.GPU{Slug: "a10"}}}
			s.starts(test.of, 20*mem.GiB)
			compareFlags(t, s.list, test.want)
		})
	}
	s := settings{base: trial{count: 1, gpu: gpus.GPU{Slug: "a10"}}}
	s.gains(served, 20*mem.GiB)
	s.shared(served)
	compareFlags(t, s.list, []string{"--max-model-len 20000", "--gpu-memory-utilization 0.95",
		"--kv-cache-memory=4294967296, as vLLM's log suggests", "--kv-cache-dtype fp8", "--max-num-batched-tokens 2048",
		"--max-num-seqs 64", "--enforce-eager", "--tensor-parallel-size 2 on 2 × a10"})
	if last := s.list[len(s.list)-1].trial; last.count != 2 ||
		!slices.Equal(last.switches, []string{"engine:tensor_parallel_size=2"}) {
		t.Errorf("two GPUs: %d, %q", last.count, last.switches)
	}
}

// TestGraphsThatAreTooLarge: what a whole start takes with the same KV cache says what lacks, and which share leaves that
// and room for other drivers. The flag is that of the engine's version.
func TestGraphsThatAreTooLarge(t *testing.T) {
	some, gib := mem.Some, int64(mem.GiB)
	gpu := gpus.GPU{Slug: "a10", Name: "NVIDIA A10", Total: 20 * mem.GiB}
	failed := &report.Serving{Engine: "vLLM", Version: "0.11.0", Step: mem.ServingGraphs}
	failed.ServingFigures = mem.ServingFigures{Utilization: 0.9, CUDAGraphs: true, MaxSeqs: some(4), MaxCaptured: some(8),
		KVBytes: some(9 * gib), KVBlocks: some(600)}
	same := []string{"engine:num_gpu_blocks_override=600", "engine:max_num_seqs=4"}
	if got := alike(failed); !slices.Equal(got, same) {
		t.Errorf("the same start: %q", got)
	}
	ready := &report.Serving{Ready: true, ServingFigures: failed.ServingFigures}
	ran := &Result{Imagined: &report.Imagined{Serving: ready}}
	ran.Verdict, ran.Used, ran.Serving.Graphs = mem.VerdictFits, some(21*gib), some(2*gib)
	base := trial{count: 1, gpu: gpu}
	try, ok := wholeStart(&base, failed, ran)
	if !ok || try.Headroom != some(-gib) || try.Total != gpu.Total || try.Note != "CUDA graphs took 2.00 GiB of it" {
		t.Errorf("%v, %+v", ok, try)
	}
	s := settings{base: base, engine: "vLLM", version: failed.Version, lack: mem.GiB}
	s.starts(failed, gpu.Total)
	if gpu.Tight() != mem.GiB {
		t.Fatalf("the test is made for a room of 1 GiB, not %v", gpu.Tight())
	}
	compareFlags(t, s.list, []string{"--gpu-memory-utilization 0.80", "--cuda-graph-sizes 2", "--enforce-eager"})
	ran.Serving.KVBytes = some(8 * gib)
	if _, ok := wholeStart(&base, failed, ran); ok {
		t.Error("a start with another KV cache says nothing of this one")
	}
}

// TestOtherEngine: SGLang's settings have flags of their own; what it has not is not tried.
func TestOtherEngine(t *testing.T) {
	some := mem.Some
	v := &report.Serving{Engine: "SGLang", Step: mem.ServingReady, ServingFigures: mem.ServingFigures{Utilization: 0.83,
		KVType: "auto", CUDAGraphs: true, MaxSeqs: some(256), MaxBatched: some(8192), TensorParallel: some(1),
		Free: some(20 << 30), MaxModelLen: some(8192), KVTokens: some(20000)}}
	s := settings{base: trial{count: 1, gpu: gpus.GPU{Slug: "a10"}}, engine: v.Engine}
	s.gains(v, 20*mem.GiB)
	s.shared(v)
	compareFlags(t, s.list, []string{"--mem-fraction-static 0.95", "--kv-cache-dtype fp8_e5m2",
		"--chunked-prefill-size 2048", "--max-running-requests 64", "--disable-cuda-graph", "--tp-size 2 on 2 × a10"})
	failed := *v
	failed.Step = mem.ServingKVCache // its figures do not say what one sequence lacks
	s = settings{base: s.base, engine: v.Engine}
	s.starts(&failed, 20*mem.GiB)
	compareFlags(t, s.list, nil)
}

// TestServerThatKillsItself: SGLang sends itself SIGKILL where its scheduler lacks memory, and what helps is tried. A run
// that somebody ends is not repeated.
func TestServerThatKillsItself(t *testing.T) {
	server := &report.Serving{Engine: "SGLang", Step: mem.ServingGraphs}
	for _, test := range []struct {
		signal      syscall.Signal
		verdict     mem.Verdict
		serving     *report.Serving
		interrupted bool
	}{
		{syscall.SIGKILL, mem.VerdictOOM, server, false}, {syscall.SIGINT, mem.VerdictOOM, server, true},
		{syscall.SIGKILL, mem.VerdictFailed, server, true}, {syscall.SIGKILL, mem.VerdictOOM, nil, true},
	} {
		r := &Result{Imagined: &report.Imagined{Serving: test.serving}}
		r.Outcome.Signal = mem.Some(int64(test.signal))
		if r.Verdict = test.verdict; r.interrupted() != test.interrupted {
			t.Errorf("%v after %q, %v: interrupted is %v", test.signal, test.verdict, test.serving, r.interrupted())
		}
	}
}

func compareFlags(t *testing.T, list []attempt, want []string) {
	t.Helper()
	var got []string
	for _, a := range list {
		got = append(got, a.what)
		if !slices.Contains(a.trial.switches, a.kind) {
			t.Errorf("%s: the engine is not given %s", a.what, a.kind)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
}
