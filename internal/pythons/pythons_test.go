package pythons

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFind with real interpreters in made-up places: the order of preference, one found under
// several names, one that does not work.
func TestFind(t *testing.T) {
	real, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	if out, err := exec.Command(real, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		real = strings.TrimSpace(string(out))
	}
	dir := t.TempDir()
	venv, broken := filepath.Join(dir, "venv"), filepath.Join(dir, "broken", "python3")
	if out, err := exec.Command(real, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Skipf("no venv module: %v %s", err, out)
	}
	// Packages as an installer leaves them: metadata beside a package that must not be imported.
	site, _ := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages"))
	for path, text := range map[string]string{
		"torch-2.9.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.9\n",
		"torch/__init__.py":              "raise SystemExit('imported')",
		"torch/version.py":               "__version__ = '2.9.9'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n",
	} {
		path = filepath.Join(site[0], path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(broken), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("PATH", strings.Join([]string{filepath.Dir(broken), filepath.Dir(real), filepath.Join(venv, "bin")}, ":"))

	found := Find(context.Background(), "")
	if len(found) != 3 {
		t.Fatalf("%+v", found)
	}
	if p := found[0]; !p.Chosen || p.Frameworks["torch"] != "2.9.9" || p.CUDA != "12.8" || p.ROCm != "" ||
		p.Problem != "" {
		t.Errorf("the one with torch: %+v", p)
	}
	if p := found[2]; p.Path != broken || p.Chosen || !strings.Contains(p.Problem, "no") || p.Version != "" {
		t.Errorf("the broken one: %+v", p)
	}
	if p := Find(context.Background(), real)[0]; p.Source != "--python" || !p.Chosen {
		t.Errorf("the one named: %+v", p)
	}
	cached := filepath.Join(dir, "hightide", "torch-9.9", "bin")
	if err := os.MkdirAll(cached, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(venv, "bin", "python"), filepath.Join(cached, "python")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	if found := Find(context.Background(), ""); len(found) != 0 {
		t.Errorf("an environment that is still being installed: %+v", found)
	}
	if err := os.WriteFile(filepath.Join(cached, "..", "hightide.stamp"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if found := Find(context.Background(), ""); len(found) != 1 || found[0].Source != "cache" {
		t.Errorf("one that is installed: %+v", found)
	}
	t.Setenv("PATH", filepath.Dir(real))
	t.Setenv("VIRTUAL_ENV", venv)
	if p := Find(context.Background(), "")[0]; p.Source != "$VIRTUAL_ENV" || p.Frameworks["torch"] == "" {
		t.Errorf("the active environment: %+v", p)
	}
}
