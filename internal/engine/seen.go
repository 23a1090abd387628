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

// Unread says why the data directory cannot be read: it was there and is no more, or may not be opened. nil: it can, or nothing was
// recorded in it yet.
func (e *Engine) Unread() error {
	if e.Seen == nil || e.Store != nil || !store.IsFolder(e.Dir()) {
		return nil
	}
	switch folder, err := os.Open(filepath.Join(e.Dir(), "runs")); {
	case err == nil:
		folder.Close()
		e.Seen.runs.Store(true)
	case errors.Is(err, fs.ErrPermission):
		return fail.Environment("let it be read, or start again with another: --data-dir FOLDER", "the data directory %s may not be read: permission denied", e.Dir())
	case errors.Is(err, fs.ErrNotExist) && e.Seen.runs.Load():
		return fail.Environment("bring it back, or start again with another: --data-dir FOLDER", "the data directory %s is gone: it was deleted or unmounted", e.Dir())
	}
	return nil
}
