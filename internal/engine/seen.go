package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// Seen remembers that a data directory was there. Without it a folder that was deleted or unmounted looks like one in which nothing was
// recorded yet. The zero value works.
type Seen struct{ runs atomic.Bool }

// gone says that the data directory was there and is no more.
func (e *Engine) gone() error {
	if e.Seen == nil || e.Store != nil || !store.IsFolder(e.Dir()) {
		return nil
	}
	switch _, err := os.Stat(filepath.Join(e.Dir(), "runs")); {
	case err == nil:
		e.Seen.runs.Store(true)
	case errors.Is(err, fs.ErrNotExist) && e.Seen.runs.Load():
		return fail.Environment("bring it back, or start again with another: --data-dir FOLDER", "the data directory %s is gone: it was deleted or unmounted", e.Dir())
	}
	return nil
}
