package plan

import (
	"cmp"
	"os"
	"path/filepath"

	"hightide/internal/fail"
)

// variables are those of the programs that are run, for which nothing is looked for elsewhere: the configuration is here.
// dir is the plan's folder.
func (f *facts) variables(dir string, get func(name string) string) (map[string]string, error) {
	if !f.serves() {
		return map[string]string{"HF_HUB_OFFLINE": "1"}, nil
	}
	return serversVariables(dir, get)
}

// serversVariables have starts of vLLM share what is alike on each GPU. A process of the engine is forked, with what was
// imported. Kernels of Triton are kept where Triton keeps them by itself: they depend on the compute capability alone.
// What torch.compile makes is kept in the plan's folder, as each GPU is to start as a new one does: compiling takes
// memory that vLLM counts, and code from the cache takes none. Variables that are set stay as they are, but the last.
func serversVariables(dir string, get func(name string) string) (map[string]string, error) {
	caches := cmp.Or(get("XDG_CACHE_HOME"), filepath.Join(get("HOME"), ".cache"))
	usual, own := cmp.Or(get("VLLM_CACHE_ROOT"), filepath.Join(caches, "vllm")), filepath.Join(dir, "vllm")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, fail.Environment("is the temporary folder full?", "keep what vLLM compiles: %w", err)
	}
	// What vLLM's classes of models can do a process for each tells. Where it cannot be kept, it is told anew.
	if known := filepath.Join(usual, "modelinfos"); os.MkdirAll(known, 0o755) == nil {
		_ = os.Symlink(known, filepath.Join(own, "modelinfos"))
	}
	set := map[string]string{"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CACHE_ROOT": own}
	for name, value := range map[string]string{"VLLM_WORKER_MULTIPROC_METHOD": "fork", "OMP_NUM_THREADS": "1",
		"HUMMING_DISABLE_PARALLEL_BUILD": "1", "TRITON_CACHE_DIR": filepath.Join(get("HOME"), ".triton", "cache")} {
		if get(name) == "" {
			set[name] = value
		}
	}
	return set, nil
}
