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

	"hightide/internal/mem"
	"hightide/internal/wire"
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

// Resolve implements Store.
func (s *Files) Resolve(ref string) (Run, error) {
	if path := recordingPath(ref); path != "" {
		return s.resolveFile(path)
	}
	runs, err := s.List(Filter{})
	if err != nil {
		return Run{}, err
	}
	return pick(runs, ref)
}

// recordingPath says whether a reference is meant as a file: it has a slash, ends like one, or is
// there. A folder means the recording in it.
func recordingPath(ref string) string {
	info, err := os.Stat(ref)
	if err == nil && info.IsDir() {
		inside := filepath.Join(ref, recordingName)
		if _, err := os.Stat(inside); err == nil {
			return inside
		}
	}
	if strings.ContainsRune(ref, filepath.Separator) || strings.HasSuffix(ref, ".hightide") || err == nil && info.Mode().IsRegular() {
		return ref
	}
	return ""
}

func (s *Files) resolveFile(path string) (Run, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, noFile(path)
	}
	if err != nil {
		return Run{}, &Error{Kind: ErrUnreadable, Text: "cannot read " + path, Err: cause(err), Hint: "make it readable"}
	}
	defer file.Close()
	roll, _, err := sumUp(file)
	if err != nil {
		return Run{}, unreadable(path, err)
	}
	return rowOfFile(roll, path), nil
}

func rowOfFile(roll *rollup, path string) Run {
	row := roll.row()
	row.File, row.Dir = path, filepath.Dir(path)
	if info, err := os.Stat(path); err == nil {
		row.Size = info.Size()
	}
	if row.State == CutOff && isLocked(path) {
		row.State = Running
	}
	return row
}

// Open is Resolve and Load, with a recording that stands alone read only once.
func (s *Files) Open(ref string) (row Run, run *mem.Run, err error) {
	path := recordingPath(ref)
	if path == "" {
		if row, err = s.Resolve(ref); err != nil {
			return row, nil, err
		}
		path = row.File
	}
	if run, err = s.load(path); err != nil || row.File != "" {
		return row, run, err
	}
	roll := newRollup()
	for f := range wire.Frames(run) {
		roll.add(f)
	}
	roll.damaged = len(run.Damage) > 0
	return rowOfFile(roll, path), run, nil
}

// Load implements Store.
func (s *Files) Load(ref string) (*mem.Run, error) {
	path := recordingPath(ref)
	if path == "" {
		run, err := s.Resolve(ref)
		if err != nil {
			return nil, err
		}
		path = run.File
	}
	return s.load(path)
}

func (s *Files) load(path string) (*mem.Run, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noFile(path)
	}
	if err != nil {
		return nil, &Error{Kind: ErrUnreadable, Text: "cannot read " + path, Err: cause(err), Hint: "make it readable"}
	}
	defer file.Close()
	run, err := wire.Load(file)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return run, nil
}

func noFile(path string) error {
	hint := "is it written as it is called? hightide ls shows the runs that were recorded"
	if dir := filepath.Dir(path); !isFolder(dir) {
		hint = "there is no folder " + dir + " either: is it written as it is called?"
	}
	return &Error{Kind: ErrNotFound, Text: "there is no file " + path, Hint: hint}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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

// Prune implements Store.
func (s *Files) Prune(limits Limits) ([]Run, error) {
	runs, err := s.List(Filter{})
	if err != nil {
		return nil, err
	}
	return prune(runs, limits, s.Remove)
}
