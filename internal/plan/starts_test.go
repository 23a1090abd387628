package plan

import (
	"os"
	"path/filepath"
	"testing"
)

// TestServersShareWhatIsAlike: starts of a plan share Triton's kernels and what vLLM knows of models, as the user has
// them; what torch.compile makes goes into the plan's folder. What the user set stays.
func TestServersShareWhatIsAlike(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	asIn := func(env map[string]string) func(string) string { return func(name string) string { return env[name] } }
	set, err := serversVariables(dir, asIn(map[string]string{"HOME": home, "OMP_NUM_THREADS": "4"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"OMP_NUM_THREADS": "", "VLLM_WORKER_MULTIPROC_METHOD": "fork",
		"TRITON_CACHE_DIR": filepath.Join(home, ".triton", "cache"), "VLLM_CACHE_ROOT": filepath.Join(dir, "vllm")} {
		if set[name] != want {
			t.Errorf("%s is %q, not %q", name, set[name], want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "vllm", "modelinfos", "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(home, ".cache", "vllm", "modelinfos", "one")); err != nil {
		t.Error("what vLLM learned of a model is lost with the plan: ", err)
	}
	set, err = serversVariables(t.TempDir(), asIn(map[string]string{"HOME": "/dev/null"}))
	if err != nil || len(set) < 4 {
		t.Errorf("%q, %v", set, err) // a home that cannot be written to
	}
}
