package engine

import (
	"errors"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// listing is a store that counts how often all of its runs were asked for.
type listing struct {
	store.Store
	whole int
}

func (l *listing) List(filter store.Filter) ([]store.Run, error) {
	if filter.IDs == nil {
		l.whole++
	}
	return l.Store.List(filter)
}

// TestUnknownSnapshotListsNothing: an id that names no run is told from that alone, however many runs there are.
func TestUnknownSnapshotListsNothing(t *testing.T) {
	s := &listing{Store: &store.Memory{}}
	e := &Engine{DataDir: t.TempDir(), Store: s}
	opened := e.Open(nil)
	for _, id := range []string{"06frxy7rv0-0", "no-such-file", "../etc-1"} {
		_, err := opened.Info(t.Context(), id)
		if err == nil || fail.Hint(err) == "" {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := opened.OfRun(t.Context(), "06frxy7rv0"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that is not there: %v", err)
	}
	if s.whole > 0 {
		t.Errorf("all runs were listed %d times", s.whole)
	}
}
