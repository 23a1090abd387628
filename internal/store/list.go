package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List implements Store. It believes the index only where the recording has not changed since, and
// brings it up to date: a lost index only costs time.
func (s *Files) List(filter Filter) ([]Run, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	runs, err := s.refresh(false, nil)
	if err != nil {
		return nil, err
	}
	return filter.apply(runs), nil
}

// Reindex implements Store.
func (s *Files) Reindex(progress func(done, total int)) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if _, err := s.refresh(true, progress); err != nil {
		return err
	}
	if _, err := s.index.open(); err != nil {
		return s.noIndex(err)
	}
	return nil
}

func (s *Files) noIndex(err error) error {
	return &Error{Kind: ErrPlace, Text: "cannot write the index " + s.index.path, Err: err, Hint: "everything works without it, only slower"}
}

// refresh returns all runs and enters what changed into the index.
func (s *Files) refresh(all bool, progress func(done, total int)) ([]Run, error) {
	folders, err := os.ReadDir(s.runsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.badPlace("read", err)
	}
	known, _ := s.index.all() // without it, everything is read
	var runs []Run
	var changed []entry
	for i, folder := range folders {
		id := folder.Name()
		if e, isNew, ok := s.look(id, known[id], all); ok {
			runs = append(runs, e.run)
			if isNew {
				changed = append(changed, e)
			}
		}
		delete(known, id)
		if progress != nil {
			progress(i+1, len(folders))
		}
	}
	_ = s.index.put(changed...)
	for id := range known {
		_ = s.index.remove(id)
	}
	slices.SortStableFunc(runs, newestFirst)
	return runs, nil
}

func newestFirst(a, b Run) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), strings.Compare(b.ID, a.ID))
}

// look returns the row of one run, from the index if that is still true.
func (s *Files) look(id string, known entry, all bool) (e entry, isNew, ok bool) {
	path := s.recording(id)
	info, err := os.Stat(path)
	if err != nil || !validID(id) {
		return e, false, false
	}
	running := isLocked(path)
	stamp := stampOf(info)
	switch {
	case running && known.run.ID != "" && !all: // its engine keeps the row
		e = known
	case known.stamp == stamp && known.run.State != Running && !all:
		e = known
	default:
		isNew = true
		e = entry{s.sumUpFile(id, path), stamp}
		e.run.Findings = known.run.Findings
	}
	if running {
		e.run.State = Running
	} else if isNew {
		_ = os.Remove(s.reserve(id)) // of an engine that was killed
	}
	s.place(&e.run)
	return e, isNew, true
}

// stampOf changes whenever a recording does.
func stampOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// sumUpFile makes a row from a recording; of one that cannot be read it knows the name and place.
func (s *Files) sumUpFile(id, path string) Run {
	row := Run{State: CutOff, Damaged: true}
	if file, err := os.Open(path); err == nil {
		defer file.Close()
		if roll, _, err := sumUp(file); err == nil {
			row = roll.row()
		}
	}
	row.ID = id
	if row.Start == 0 {
		if info, err := os.Stat(s.runDir(id)); err == nil {
			row.Start = info.ModTime().UnixNano()
		}
	}
	return row
}

// place fills in where a run is and how large.
func (s *Files) place(row *Run) {
	row.Dir, row.File, row.Size = s.runDir(row.ID), s.recording(row.ID), 0
	_ = filepath.WalkDir(row.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				row.Size += info.Size()
			}
		}
		return nil
	})
}

// Note implements Store.
func (s *Files) Note(id string, findings int) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.index.note(id, findings); err != nil {
		return s.noIndex(err)
	}
	return nil
}
