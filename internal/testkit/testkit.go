// Package testkit has what the tests of several packages need. Nothing but tests imports it.
package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/format/torch"
	"hightide/internal/mem"
)

// Path is a file of testdata, by its path there: "real/h100-lm-ctx128-train-step.pickle".
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "testdata", name)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no module above the working folder")
		}
		dir = filepath.Dir(dir)
	}
}

// Data is the content of a file of testdata.
func Data(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Golden compares with a file of testdata, or writes it anew.
func Golden(t testing.TB, name, got string, update bool) {
	t.Helper()
	file := Path(t, name)
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test with -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; go test with -update writes it anew. Got:\n%s", name, got)
	}
}

// Snapshot is an allocator snapshot of testdata, without what may lie beside it.
func Snapshot(t testing.TB, name string) *mem.AllocatorSnapshot {
	t.Helper()
	s, err := torch.Read(bytes.NewReader(Data(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Owned is a snapshot with its owners (docs/formats/imagined.md), which lie beside it.
func Owned(t testing.TB, name string) *mem.AllocatorSnapshot {
	t.Helper()
	s := Snapshot(t, name)
	var err error
	if s.Owners, err = torch.Owners(bytes.NewReader(Data(t, name+".owners.json"))); err != nil {
		t.Fatal(err)
	}
	return s
}

// Torch is the interpreter of the cached environment with PyTorch (scripts/setup torch); where there is none,
// the test is skipped.
func Torch(t testing.TB) string {
	t.Helper()
	path := TorchPath(t)
	if path == "" {
		t.Skip("no environment with PyTorch: scripts/setup torch makes one")
	}
	return path
}

// TorchPath is the same path, and "" where there is none.
func TorchPath(t testing.TB) string {
	t.Helper()
	return environment("torch-" + newestTorch(t))
}

// newestTorch is the first release of PyTorch that requirements/torch.versions lists.
func newestTorch(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(Path(t, "../requirements/torch.versions"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("requirements/torch.versions lists no release")
	return ""
}

// Arrow is the interpreter of the cached environment with pyarrow (scripts/setup api); where there is none, the test is
// skipped.
func Arrow(t testing.TB) string {
	t.Helper()
	path := environment("api")
	if path == "" {
		t.Skip("no environment with pyarrow: scripts/setup api makes one")
	}
	return path
}

// environment is the interpreter of a cached environment; "" where there is none.
func environment(folder string) string {
	cache := os.Getenv("HIGHTIDE_CACHE")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache", "hightide")
	}
	path := filepath.Join(cache, folder, "bin", "python")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
