package engine

import (
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/gpus"
	"hightide/internal/launch"
)

// TestSearchLeavesNothing: two searches at once have device state of their own, a third removes what a
// killed one left, and none that of another that lives.
func TestSearchLeavesNothing(t *testing.T) {
	e := &Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Shared: filepath.Join(t.TempDir(), "shared")}}
	killed := filepath.Join(e.Runtime.Shared, "fit-killed")
	if err := os.MkdirAll(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, "owner"), []byte("\n\nelsewhere\nelsewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	var states []string
	for range 2 {
		environment, remove, err := e.fitDevice(&gpus.GPU{Slug: "a10"}, "")
		if err != nil {
			t.Skip(err) // a build without the device
		}
		defer remove()
		states = append(states, filepath.Dir(launch.Lookup(environment(nil), "HIGHTIDE_DEVICE_TABLE")))
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("what a killed search left stays")
	}
	for _, dir := range states {
		if _, err := os.Stat(dir); err != nil || states[0] == states[1] {
			t.Errorf("device states in %q: %v", states, err)
		}
	}
}
