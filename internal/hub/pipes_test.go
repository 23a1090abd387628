//go:build unix

package hub

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesAreNotOpened: to open one would wait for who writes it. Nor is a file looked at that may not be read: whether it
// is there is not told.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "model.safetensors")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, pipe} {
		place, err := Open(t.Context(), name, Options{Offline: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := place.Files.Open("model.safetensors"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused := Options{Offline: true, MayRead: func(string) error { return errors.New("no") }}
	for _, name := range []string{pipe, pipe + "-none"} {
		if _, err := Open(t.Context(), name, refused); err == nil || err.Error() != "no" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
