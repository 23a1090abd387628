package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestVisitorsLeaveTheStoreAsItIs: with nobody visiting, a store keeps its contract.
func TestVisitorsLeaveTheStoreAsItIs(t *testing.T) {
	keeps(t, func(t *testing.T) store.Store { return new(store.Visitors).With(store.OpenFiles(t.TempDir())) })
}

// recorded is a finished run in a folder of its own, and the path of its recording.
func recorded(t *testing.T, name string) (id, path string) {
	t.Helper()
	s := store.OpenFiles(t.TempDir())
	defer s.Close()
	w, err := s.Create(mem.RunInfo{Name: name, StartMono: 1, StartWall: 5})
	must(t, err)
	must(t, w.Write(w.Info()))
	must(t, w.Write(mem.End{Time: 9, Reason: "exit"}))
	must(t, w.Close())
	return w.ID(), w.Run().File
}

// TestVisitor: a recording from elsewhere is listed, found, loaded and followed as a run of the store, and changed by
// nothing.
func TestVisitor(t *testing.T) {
	own := store.OpenFiles(t.TempDir())
	defer own.Close()
	visitors := &store.Visitors{}
	s := visitors.With(own)
	w, err := s.Create(mem.RunInfo{Name: "own", StartMono: 1, StartWall: 7})
	must(t, err)
	must(t, w.Write(w.Info()))
	must(t, w.Close())

	id, path := recorded(t, "guest")
	row, known, err := visitors.Add(s, path, store.FromFile, nil)
	must(t, err)
	if known || row.ID != id || row.From != store.FromFile || row.Name != "guest" {
		t.Fatalf("it is listed as %+v", row)
	}
	if _, known, err = visitors.Add(s, path, store.FromFile, nil); !known || err != nil {
		t.Errorf("a second time: known %v, %v", known, err)
	}
	rows, err := s.List(store.Filter{})
	must(t, err)
	if len(rows) != 2 || rows[0].Name != "own" || rows[1].Name != "guest" {
		t.Errorf("the list is %+v", rows)
	}
	if rows, err = s.List(store.Filter{Limit: 1, Before: w.ID()}); err != nil || len(rows) != 1 || rows[0].ID != id {
		t.Errorf("the second page is %+v, %v", rows, err)
	}
	if _, run, err := store.Load(s, id); err != nil || run.End == nil {
		t.Errorf("loaded as %+v, %v", run, err)
	}
	frames := 0
	for batch, err := range s.Follow(t.Context(), id, 0) {
		must(t, err)
		frames += len(batch.Frames)
	}
	if frames < 2 {
		t.Errorf("a follower gets %d frames", frames)
	}

	before, err := os.Stat(path)
	must(t, err)
	name := "other"
	for what, err := range map[string]error{"removing": s.Remove(id), "tagging": store.Tag(s, id, nil, nil, &name)} {
		if !errors.Is(err, store.ErrElsewhere) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size() || after.ModTime() != before.ModTime() {
		t.Errorf("the file changed: %v %v", after, err)
	}
}

// TestVisitorThatIsKnown: a copy of a run that the store has is that run; an older copy of it is a run of its own.
func TestVisitorThatIsKnown(t *testing.T) {
	own := store.OpenFiles(t.TempDir())
	defer own.Close()
	w, err := own.Create(mem.RunInfo{Name: "own", StartMono: 1})
	must(t, err)
	must(t, w.Write(w.Info()))
	must(t, w.Flush())
	older := filepath.Join(t.TempDir(), "older.hightide")
	text, err := os.ReadFile(w.Run().File)
	must(t, err)
	must(t, os.WriteFile(older, text, 0o600))
	must(t, w.Write(mem.End{Time: 9, Reason: "exit"}))
	must(t, w.Close())

	visitors := &store.Visitors{}
	if row, known, err := visitors.Add(own, w.Run().File, store.FromFile, nil); err != nil || !known || row.ID != w.ID() || row.From != "" {
		t.Errorf("the run itself: %+v, %v, %v", row, known, err)
	}
	row, known, err := visitors.Add(own, older, store.FromUpload, func() { os.Remove(older) })
	if err != nil || known || row.ID != w.ID()+"-2" {
		t.Fatalf("an older copy: %+v, %v, %v", row, known, err)
	}
	s := visitors.With(own)
	if found, err := store.Find(s, w.ID()); err != nil || found.From != "" {
		t.Errorf("the id alone is %+v, %v", found, err)
	}
	if found, err := store.Find(s, row.ID); err != nil || found.File != "" {
		t.Errorf("an upload tells where it lies: %+v, %v", found, err)
	}
	must(t, s.Remove(row.ID))
	if _, err := os.Stat(older); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an upload that was deleted is still there: %v", err)
	}
}
