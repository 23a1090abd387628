package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// TestVanishedFolder: a data directory that was there and is no more is an error, not an empty list; back again it is
// listed.
func TestVanishedFolder(t *testing.T) {
	e := &Engine{DataDir: t.TempDir(), Seen: new(Seen)}
	list := func() error { _, err := e.Runs(t.Context(), store.Filter{}); return err }
	if err := list(); err != nil {
		t.Fatal("nothing was recorded yet: ", err)
	}
	runs := filepath.Join(e.DataDir, "runs")
	for _, step := range []struct {
		do   func() error
		gone bool
	}{{func() error { return os.Mkdir(runs, 0o700) }, false}, {func() error { return os.Remove(runs) }, true},
		{func() error { return os.Mkdir(runs, 0o700) }, false}} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := list(); (err != nil) != step.gone ||
			step.gone && (fail.Code(err) != fail.ExitEnvironment || !strings.Contains(err.Error(), e.DataDir)) {
			t.Errorf("gone %v: %v", step.gone, err)
		}
	}
	if err := list(); err != nil {
		t.Error(err)
	}
}
