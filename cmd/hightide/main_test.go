package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/testkit"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts a command hightide, which is this very program, on PATH, and a store of objects.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hightide": main, "objectstore": serveObjects})
}

// TestScripts runs the commands as a person types them: testdata/script, one file each.
func TestScripts(t *testing.T) {
	interpreter := pythonPath(t)
	torch := testkit.TorchPath(t)
	testscript.Run(t, testscript.Params{
		Dir:       filepath.Join("testdata", "script"),
		Condition: func(name string) (bool, error) { return imaginable(name, torch) },
		Setup: func(env *testscript.Env) error {
			env.Setenv("HIGHTIDE_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("GOCACHE", goCache(t)) // else `go tool` builds itself anew, for minutes
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("PYTHON", interpreter)
			env.Setenv("TORCH", torch)
			env.Setenv("PYTHON314", python314())
			if repo, err := filepath.Abs(filepath.Join("..", "..")); err == nil {
				env.Setenv("REPO", repo)
			}
			return nil
		},
	})
}

// TestTeamScripts does the same with the store of a team, in a PostgreSQL of the test.
func TestTeamScripts(t *testing.T) {
	server, interpreter := testkit.StartPostgres(t), pythonPath(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "team"),
		Setup: func(env *testscript.Env) error {
			database := server.New(t)
			for name, value := range map[string]string{"HIGHTIDE_DATA": filepath.Join(env.WorkDir, "data"),
				"XDG_CACHE_HOME": filepath.Join(env.WorkDir, "cache"), "XDG_CONFIG_HOME": filepath.Join(env.WorkDir, "config"),
				"PYTHON": interpreter, "TEAM": database, "HIGHTIDE_STORE": database,
				"HIGHTIDE_OBJECTS": "file://" + filepath.Join(env.WorkDir, "objects")} {
				env.Setenv(name, value)
			}
			return nil
		},
	})
}

func goCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// python314 is a CPython that takes in code from outside: $HIGHTIDE_TEST_PYTHON314, else one of the cache or on PATH;
// "" where there is none.
func python314() string {
	home, _ := os.UserHomeDir()
	for _, path := range []string{os.Getenv("HIGHTIDE_TEST_PYTHON314"),
		filepath.Join(home, ".cache", "hightide", "python-3.14", "bin", "python3.14"), "python3.14"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// imaginable answers the conditions [python314]; [torch]: there is a PyTorch; [device]: this build has the imaginary
// GPU.
func imaginable(name, torch string) (bool, error) {
	switch name {
	case "torch":
		return torch != "", nil
	case "device":
		return engine.CanImagine(), nil
	case "python314":
		return python314() != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
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
