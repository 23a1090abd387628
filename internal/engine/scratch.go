package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/store"
)

// What programs leave on disk while they run: allocator snapshots on their way into the recording, and
// helpers where there is no cache for them. None of it is the store's.

// scratch is the folder of a run for that.
func (e *Engine) scratch(id string) string { return filepath.Join(e.scratchDir(), id) }

func (e *Engine) scratchDir() string {
	dir := filepath.Join(e.folder(), "scratch")
	if whole, err := filepath.Abs(dir); err == nil {
		return whole // the program may change its folder
	}
	return dir
}

// folder is the data directory, or where recordings are kept in none, one of this user's for what only
// lasts for a time.
func (e *Engine) folder() string {
	if store.IsFolder(e.Dir()) {
		return e.Dir()
	}
	return temporaryDir()
}

func temporaryDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("hightide-%d", os.Getuid()))
}

// makeScratch makes that folder, for this user alone.
func (e *Engine) makeScratch(id string, result *RunResult) {
	if err := os.MkdirAll(e.scratch(id), 0o700); err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("allocator snapshots cannot be taken: %v", err))
	}
}

// helpersDir is where helpers live if the cache cannot hold them.
func (e *Engine) helpersDir() string { return filepath.Join(e.folder(), "helpers") }

// keep attaches to a run what is left in its scratch folder, for other tools, and removes the folder.
func (e *Engine) keep(s store.Store, id string) error {
	dir := e.scratch(id)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		_, failed := s.Attach(id, entry.Name(), func(w io.Writer) error {
			file, err := os.Open(filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(w, file)
			return err
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		return err // the files stay
	}
	return os.RemoveAll(dir)
}

// remove deletes a run that does not run any more, and what it left.
func (e *Engine) remove(s store.Store, id string) error {
	if err := s.Remove(id); err != nil {
		return err
	}
	return os.RemoveAll(e.scratch(id))
}

// abandoned is the age at which a scratch folder is taken for that of an engine that was killed, if its
// run does not run. Where locks do not work, as on some network file systems, a run looks as if it did not.
const abandoned = 24 * time.Hour

// keepAbandoned attaches what killed engines left in their scratch folders.
func (e *Engine) keepAbandoned(s store.Store) {
	entries, _ := os.ReadDir(e.scratchDir())
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || time.Since(info.ModTime()) < abandoned {
			continue
		}
		switch run, err := store.Resolve(s, entry.Name()); {
		case errors.Is(err, store.ErrNotFound) || err == nil && run.ID != entry.Name():
			_ = os.RemoveAll(e.scratch(entry.Name()))
		case err == nil && run.State != store.Running:
			_ = e.keep(s, run.ID)
		}
	}
}
