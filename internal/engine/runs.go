package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// What List and its neighbours speak of, so that front doors need only this package.
type (
	Run         = store.Run    // one row of the list
	RunFilter   = store.Filter // which rows
	PruneLimits = store.Limits
)

// States of a run.
const (
	Running  = store.Running
	Finished = store.Finished
	CutOff   = store.CutOff
)

// KeepTag protects a run from Prune.
const KeepTag = store.KeepTag

// store is the place of the recordings; close it after use.
func (e *Engine) store() (store.Store, error) {
	if e.Store != nil {
		return lent{e.Store}, nil
	}
	return store.Open(e.Dir())
}

// lent is a store that stays open: others use it too.
type lent struct{ store.Store }

func (lent) Close() error { return nil }

// explain gives a failure of the store its exit code and hint.
func explain(err error) error {
	var typed *store.Error
	if err == nil || !errors.As(err, &typed) {
		return err
	}
	if errors.Is(err, store.ErrPlace) {
		return fail.Environment(typed.Hint, "%w", err)
	}
	return fail.Input(typed.Hint, "%w", err)
}

// with runs one piece of work on the store.
func (e *Engine) with(ctx context.Context, work func(store.Store) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := e.store()
	if err != nil {
		return explain(err)
	}
	e.recover(s)
	err = work(s)
	if closing := s.Close(); err == nil && closing != nil {
		err = fmt.Errorf("close index: %w", closing)
	}
	return explain(err)
}

// Runs lists the runs that a filter lets through, newest first.
func (e *Engine) Runs(ctx context.Context, filter RunFilter) (runs []Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		runs, err = s.List(filter)
		return err
	})
	return runs, err
}

// Resolve finds a run by id, unique prefix, name, "last", or file.
func (e *Engine) Resolve(ctx context.Context, ref string) (run Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		run, err = store.Resolve(s, ref)
		return err
	})
	return run, err
}

// Load reads the recording of what Resolve understands.
func (e *Engine) Load(ctx context.Context, ref string) (row Run, run *mem.Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		row, run, err = store.Load(s, ref)
		return err
	})
	return row, run, err
}

// Batch is what one block of a recording holds.
type Batch = store.Batch

// Follow gives the frames of a run as they are written, from a position of the recording on, 0 for all,
// until the run ends or the context does. A reader that is slow holds up nobody.
func (e *Engine) Follow(ctx context.Context, ref string, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		err := e.with(ctx, func(s store.Store) error {
			run, err := store.Resolve(s, ref)
			if err != nil {
				return err
			}
			for batch, err := range s.Follow(ctx, run.ID, from) {
				if err != nil {
					return err
				}
				if !yield(batch, nil) {
					return errStopped
				}
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(Batch{}, err)
		}
	}
}

// errStopped: the reader has had enough.
var errStopped = errors.New("stopped reading")

// Remove deletes runs and returns those that it did. All are looked up before the first is deleted.
func (e *Engine) Remove(ctx context.Context, refs ...string) (removed []Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		runs, err := e.own(s, refs)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := e.remove(s, run.ID); err != nil {
				return err
			}
			removed = append(removed, run)
		}
		return nil
	})
	return removed, err
}

// own finds runs that are kept in the data directory, each once.
func (e *Engine) own(s store.Store, refs []string) ([]Run, error) {
	var runs []Run
	seen := map[string]bool{}
	for _, ref := range refs {
		run, err := store.Resolve(s, ref)
		if err != nil {
			return nil, err
		}
		kept, err := store.Resolve(s, run.ID)
		if err != nil || !sameFile(kept.File, run.File) {
			return nil, InputError("delete or copy the file itself", "%s is a file outside the data directory %s", run.File, e.Dir())
		}
		if !seen[kept.ID] {
			seen[kept.ID] = true
			runs = append(runs, kept)
		}
	}
	return runs, nil
}

func sameFile(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// Tag changes the tags of a run, and its name where one is given.
func (e *Engine) Tag(ctx context.Context, ref string, set map[string]string, remove []string, name *string) (run Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		runs, err := e.own(s, []string{ref})
		if err != nil {
			return err
		}
		if err := store.Tag(s, runs[0].ID, set, remove, name); err != nil {
			return err
		}
		run, err = store.Resolve(s, runs[0].ID)
		return err
	})
	return run, err
}

// Prune removes runs that are too old, or too much, and returns them.
func (e *Engine) Prune(ctx context.Context, limits PruneLimits) (runs []Run, err error) {
	if limits.Now.IsZero() {
		limits.Now = e.Runtime.Time()
	}
	err = e.with(ctx, func(s store.Store) error {
		runs, err = store.Prune(s, limits)
		return err
	})
	return runs, err
}

// Reindex rebuilds the index from the recordings and returns how many runs there are.
func (e *Engine) Reindex(ctx context.Context, events event.Sink) (count int, err error) {
	err = e.with(ctx, func(s store.Store) error {
		if err := s.Reindex(func(done, all int) { events.Tell(event.Progress{Done: done, All: all}) }); err != nil {
			return err
		}
		runs, err := s.List(RunFilter{})
		count = len(runs)
		return err
	})
	return count, err
}
