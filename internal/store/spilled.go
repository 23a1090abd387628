package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
)

// WithSpilled is a store together with some runs of another one. They were meant for it, and it could not be written
// then. New runs go into the store itself.
func WithSpilled(s, other Store, ids []string) Store { return spilled{s, other, ids} }

type spilled struct {
	Store
	other Store
	ids   []string
}

// of is the store that has a run.
func (s spilled) of(id string) Store {
	if slices.Contains(s.ids, id) {
		return s.other
	}
	return s.Store
}

// List implements Store.
func (s spilled) List(filter Filter) ([]Run, error) {
	all := filter
	all.Before, all.Limit = "", 0
	runs, err := s.Store.List(all)
	if err != nil {
		return nil, err
	}
	also, err := s.other.List(all)
	if err != nil {
		return nil, err
	}
	also = slices.DeleteFunc(also, func(r Run) bool { return !slices.Contains(s.ids, r.ID) })
	runs = append(slices.Clip(runs), also...)
	slices.SortFunc(runs, newestFirst)
	return filter.seen().apply(runs), nil
}

// Remove implements Store.
func (s spilled) Remove(id string) error { return s.of(id).Remove(id) }

// Reopen implements Store.
func (s spilled) Reopen(id string) (Writer, error) { return s.of(id).Reopen(id) }

// Attach implements Store.
func (s spilled) Attach(id, name string, write func(io.Writer) error) (string, error) {
	return s.of(id).Attach(id, name, write)
}

// Open implements Store.
func (s spilled) Open(id, name string) (io.ReadCloser, error) { return s.of(id).Open(id, name) }

// Attached implements Store.
func (s spilled) Attached(id string) ([]Attachment, error) { return s.of(id).Attached(id) }

// Follow implements Store.
func (s spilled) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	return s.of(id).Follow(ctx, id, from)
}

// Close implements Store.
func (s spilled) Close() error { return errors.Join(s.Store.Close(), s.other.Close()) }
