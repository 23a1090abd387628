package store

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"sync"

	"hightide/internal/system"
)

// Visitors are recordings that lie outside a store and are to be looked at as if they were in it. The zero value has
// none. All methods may be called by several goroutines.
type Visitors struct {
	mu  sync.Mutex
	all []*visitor
}

type visitor struct {
	row  Run // as the file was when it was added
	path string
	drop func() // takes the file away; nil: it is not ours
}

// Where a recording of Visitors comes from.
const (
	FromFile   = "file"
	FromUpload = "upload"
)

// Add takes in a recording by its path, and says how it is listed. One that the store has already is that of the
// store, known tells. drop is called when the run is deleted; where it is nil, deleting is refused.
func (v *Visitors) Add(s Store, path, from string, drop func()) (row Run, known bool, err error) {
	row, err = resolveFile(path)
	if err != nil {
		return row, false, err
	}
	own, err := s.List(Filter{})
	if err != nil {
		return row, false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		if one.path == path {
			return one.row, true, nil
		}
		own = append(own, one.row)
	}
	taken := map[string]Run{}
	for _, run := range own {
		taken[run.ID] = run
	}
	if same, ok := taken[row.ID]; ok && sameContent(same.File, path) {
		return same, true, nil
	}
	id := row.ID
	if !validID(id) {
		id = "file"
	}
	row.ID = id
	for n := 2; taken[row.ID].ID != ""; n++ { // another recording of that run, as an older copy
		row.ID = id + "-" + strconv.Itoa(n)
	}
	row.From = from
	v.all = append(v.all, &visitor{row: row, path: path, drop: drop})
	return row, false, nil
}

// sameContent says whether two paths lead to one file, or to recordings of one length.
func sameContent(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && (os.SameFile(x, y) || x.Size() == y.Size())
}

// With is a store that has the visitors too.
func (v *Visitors) With(s Store) Store { return visited{s, v} }

type visited struct {
	Store
	also *Visitors
}

func (v *Visitors) findVisitor(id string) *visitor {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		if one.row.ID == id {
			return one
		}
	}
	return nil
}

// rows are those of the visitors as they stand: another engine may still write one.
func (v *Visitors) rows() []Run {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := make([]Run, 0, len(v.all))
	for _, one := range v.all {
		if info, err := os.Stat(one.path); err == nil && (info.Size() != one.row.Size || one.row.State == Running) {
			if row, err := resolveFile(one.path); err == nil {
				row.ID, row.From = one.row.ID, one.row.From
				one.row = row
			}
		}
		row := one.row
		if row.From == FromUpload { // where an upload lies is nobody's business
			row.File, row.Dir = "", ""
		}
		rows = append(rows, row)
	}
	return rows
}

// List implements Store.
func (s visited) List(filter Filter) ([]Run, error) {
	also := s.also.rows()
	if len(also) == 0 {
		return s.Store.List(filter)
	}
	all := filter
	all.Before, all.Limit = "", 0
	runs, err := s.Store.List(all)
	if err != nil {
		return nil, err
	}
	runs = append(slices.Clip(runs), all.apply(also)...)
	slices.SortFunc(runs, newestFirst)
	return filter.seen().apply(runs), nil
}

// Remove implements Store.
func (s visited) Remove(id string) error {
	one := s.also.findVisitor(id)
	switch {
	case one == nil:
		return s.Store.Remove(id)
	case one.drop == nil:
		return elsewhere("delete the file itself: " + one.path)
	}
	s.also.mu.Lock()
	s.also.all = slices.DeleteFunc(s.also.all, func(v *visitor) bool { return v == one })
	s.also.mu.Unlock()
	one.drop()
	return nil
}

func elsewhere(hint string) error {
	return &Error{Kind: ErrElsewhere, Text: "the recording lies outside the data directory, so it is only looked at",
		Hint: hint}
}

// Reopen implements Store.
func (s visited) Reopen(id string) (Writer, error) {
	if s.also.findVisitor(id) != nil {
		return nil, elsewhere("copy its folder into the data directory")
	}
	return s.Store.Reopen(id)
}

// Attach implements Store.
func (s visited) Attach(id, name string, write func(io.Writer) error) (string, error) {
	if s.also.findVisitor(id) != nil {
		return "", elsewhere("copy its folder into the data directory")
	}
	return s.Store.Attach(id, name, write)
}

// Detach implements Store.
func (s visited) Detach(id, name string) error {
	if s.also.findVisitor(id) != nil {
		return elsewhere("copy its folder into the data directory")
	}
	return s.Store.Detach(id, name)
}

// Open implements Store.
func (s visited) Open(id, name string) (io.ReadCloser, error) {
	one := s.also.findVisitor(id)
	switch {
	case one == nil:
		return s.Store.Open(id, name)
	case name != Recording:
		return nil, fs.ErrNotExist
	}
	return os.Open(one.path)
}

// Attached implements Store.
func (s visited) Attached(id string) ([]Attachment, error) {
	if s.also.findVisitor(id) != nil {
		return []Attachment{}, nil
	}
	return s.Store.Attached(id)
}

// Follow implements Store.
func (s visited) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	one := s.also.findVisitor(id)
	if one == nil {
		return s.Store.Follow(ctx, id, from)
	}
	return func(yield func(Batch, error) bool) {
		file, err := openFile(one.path)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer file.Close()
		system.Follow(file)
		follow(ctx, id, fileSource{file}, from)(yield)
	}
}
