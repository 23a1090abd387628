package imagine

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
)

// TestOtherValuesCompileAnew: where the first run compiled, the one with other numbers has empty caches of the
// compiler, so that a difference is not the compiler's own memory. Where it found its graphs, it has the same caches.
func TestOtherValuesCompileAnew(t *testing.T) {
	for cache, anew := range map[string]bool{"cold": true, "warm": false, "": false} {
		var folder string
		s := &Session{Record: func(_ context.Context, o *observe.Options, _ observe.Sink) (observe.Outcome, error) {
			for _, entry := range o.Env {
				if name, value, _ := strings.Cut(entry, "="); name == "TORCHINDUCTOR_CACHE_DIR" {
					folder = value
				}
			}
			if files, err := os.ReadDir(folder); folder != "" && (err != nil || len(files) > 0) {
				t.Errorf("%s: %v, %v", cache, files, err)
			}
			return observe.Outcome{}, errors.New("this is enough")
		}}
		main := &Result{Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFits},
			Conditions: map[string]string{"compile cache": cache}, Undecided: []report.Undecided{{}}}, run: mem.NewRun()}
		s.otherValues(context.Background(), trial{command: []string{"python", "train.py"}, count: 1}, main)
		if (folder != "") != anew {
			t.Errorf("%q: caches in %q", cache, folder)
		}
		if _, err := os.Stat(folder); folder != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: the folder stays: %v", cache, err)
		}
	}
}
