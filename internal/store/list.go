package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// List implements Store. The index answers, after every recording was looked at and those that have changed
// since were read again: a lost index only costs time.
func (s *Files) List(filter Filter) ([]Run, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	found, err := s.compare(false, filter.IDs, nil)
	if err != nil || found.runs == 0 {
		return nil, err
	}
	runs, err := found.answer(s.index, filter)
	if err != nil {
		if found.fault == nil { // what was current is only in the index
			found, _ = s.compare(true, filter.IDs, nil)
		}
		runs = filter.apply(found.rows())
	}
	for i := range runs {
		s.place(&runs[i])
	}
	return runs, nil
}

// Reindex implements Store.
func (s *Files) Reindex(progress func(done, total int)) error {
	if err := s.prepare(); err != nil {
		return err
	}
	found, err := s.compare(true, nil, progress)
	if err != nil {
		return err
	}
	if err := found.enter(s.index); err != nil {
		return s.noIndex(err)
	}
	return nil
}

func (s *Files) noIndex(err error) error {
	return &Error{Kind: ErrPlace, Text: "cannot write the index " + s.index.path, Err: err,
		Hint: "everything works without it, only slower"}
}

// comparison is how the index and the folder of runs differ.
type comparison struct {
	runs    int     // in the folder
	changed []entry // rows to be entered
	resized []entry // rows of which only size and folder stamp are to be entered
	gone    []string
	fault   error // of reading the index; all runs have changed then
}

// enter brings the index up to date.
func (c *comparison) enter(x *index) error {
	if c.fault != nil {
		return c.fault
	}
	return errors.Join(x.putRuns(c.changed...), x.resize(c.resized...), x.remove(c.gone...))
}

func (c *comparison) answer(x *index, filter Filter) ([]Run, error) {
	if err := c.enter(x); err != nil {
		return nil, err
	}
	return x.list(filter)
}

// rows are what was read, newest first.
func (c *comparison) rows() (runs []Run) {
	for _, e := range c.changed {
		runs = append(runs, e.run)
	}
	slices.SortFunc(runs, newestFirst)
	return runs
}

// compare looks at every run, or at some by their ids; with all it reads every recording of them.
func (s *Files) compare(all bool, ids []string, progress func(done, total int)) (c comparison, err error) {
	some := ids
	if ids == nil {
		if some, err = s.folders(); err != nil || len(some) == 0 {
			return c, err
		}
	}
	known, fault := s.index.states(ids)
	c.fault = fault
	for i, id := range some {
		if validID(id) && s.lookAtRun(&c, id, known[id], all) {
			c.runs++
			delete(known, id)
		}
		if progress != nil {
			progress(i+1, len(some))
		}
	}
	c.gone = slices.Collect(maps.Keys(known))
	return c, nil
}

// folders are what may be runs, by name.
func (s *Files) folders() (names []string, err error) {
	entries, err := os.ReadDir(s.runsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.badPlace("read", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func newestFirst(a, b Run) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), strings.Compare(b.ID, a.ID))
}

// lookAtRun compares one run with its row, and makes the row anew where it is not right any more; false: it is
// no run.
func (s *Files) lookAtRun(c *comparison, id string, known entry, all bool) bool {
	path := s.recording(id)
	file, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.clear(id)
	}
	if err != nil || !validID(id) {
		return false
	}
	now := entry{recording: stampOf(file), folder: s.folderStamp(id)}
	if !all && known.recording == now.recording && known.run.State != Running {
		if known.folder != now.folder {
			now.run.ID, now.run.Size = id, s.size(id)
			c.resized = append(c.resized, now)
		}
		return true
	}
	running := isLocked(path)
	if running && known.run.State == Running && !all {
		return true // its engine keeps the row
	}
	now.run = s.sumUpFile(id, path)
	now.run.Size = s.size(id)
	if running {
		now.run.becomes(Running)
		now.recording = ""
	} else {
		_ = os.Remove(s.reserve(id)) // of an engine that was killed
	}
	c.changed = append(c.changed, now)
	return true
}

// folderStamp changes when files of a run come or go.
func (s *Files) folderStamp(id string) string {
	info, err := os.Stat(s.runDir(id))
	if err != nil {
		return ""
	}
	return strconv.FormatInt(info.ModTime().UnixNano(), 10)
}

// stampOf changes whenever a recording does.
func stampOf(info fs.FileInfo) string {
	return strconv.FormatInt(info.Size(), 10) + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10)
}

// sumUpFile makes a row from a recording; of one that cannot be read it knows the name and place.
func (s *Files) sumUpFile(id, path string) Run {
	row := Run{Damaged: true}
	row.becomes(CutOff)
	if file, err := openPlain(path, os.O_RDONLY); err == nil {
		defer file.Close()
		if roll, _, err := sumUp(file, true); err == nil {
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

// place fills in where people find a run.
func (s *Files) place(row *Run) { row.Dir, row.File = s.runDir(row.ID), s.recording(row.ID) }

// size is that of everything in a run's folder.
func (s *Files) size(id string) (sum int64) {
	_ = filepath.WalkDir(s.runDir(id), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// apply returns those of the runs, newest first, that the filter lets through.
func (f Filter) apply(runs []Run) []Run {
	kept := runs[:0:0]
	passed := f.Before == ""
	for _, r := range runs {
		if f.Limit > 0 && len(kept) == f.Limit {
			break
		}
		if !passed {
			passed = r.ID == f.Before
			continue
		}
		if f.matches(&r) {
			f.hold(&r, f.heldBy(r.found))
			r.found = nil
			kept = append(kept, r)
		}
	}
	return kept
}

// String says for people which runs are let through: text, name and tags; "": all.
func (f Filter) String() string {
	var all []string
	if f.Text != "" {
		all = append(all, fmt.Sprintf("with %q in id, name or command", f.Text))
	}
	if f.Name != "" {
		all = append(all, fmt.Sprintf("named %q", f.Name))
	}
	if text := f.PlaceText(); text != "" {
		all = append(all, text)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		all = append(all, strings.TrimSuffix("tagged "+key+"="+f.Tags[key], "="))
	}
	return strings.Join(all, ", ")
}

// matches is what Filter.sql says to the index.
func (f Filter) matches(r *Run) bool {
	for key, want := range f.Tags {
		if value, ok := r.Tags[key]; !ok || want != "" && value != want {
			return false
		}
	}
	if f.Projects != nil && !slices.Contains(f.Projects, r.Tags[ProjectTag]) {
		return false
	}
	if f.searchesPlaces() && !slices.ContainsFunc(r.found, f.isPlace) || f.Unasked && r.Places.Known() {
		return false
	}
	return (f.IDs == nil || slices.Contains(f.IDs, r.ID)) && (f.Name == "" || f.Name == r.Name) &&
		(f.State == "" || f.State == r.State) && (f.Verb == "" || f.Verb == r.Verb) &&
		(f.Ref == "" || f.Ref == r.ID || f.Ref == r.Name || strings.HasPrefix(r.ID, strings.ToLower(f.Ref))) &&
		strings.Contains(searched(r), strings.ToLower(f.Text))
}

// searched is what Filter.Text looks in.
func searched(r *Run) string {
	return strings.ToLower(r.ID + "\n" + r.Name + "\n" + strings.Join(r.Command, " "))
}
