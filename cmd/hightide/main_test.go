package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts a command hightide, which is this very program, on PATH.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hightide": main})
}

// TestScripts runs the commands as a person types them: testdata/script, one file each.
func TestScripts(t *testing.T) {
	interpreter := pythonPath(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("HIGHTIDE_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("PYTHON", interpreter)
			return nil
		},
	})
}

// pythonPath is an interpreter itself, not a script that looks for one.
func pythonPath(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("these tests watch Python programs, and there is no python3: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// write puts a file into a folder and returns its path.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
