package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hightide/internal/mem"
	"hightide/internal/wire"
	"hightide/internal/words"
)

// What people call a run, in every kind of store.

// Resolve finds a run by id, unique prefix of an id, name (the newest of that name), "last" (the
// newest of all). Or by the path of a recording, which need not be in the store.
func Resolve(s Store, ref string) (Run, error) {
	if path := recordingPath(ref); path != "" {
		run, err := resolveFile(path)
		if errors.Is(err, ErrNotFound) { // a name may look like a path
			if named, other := s.List(Filter{Name: ref}); other == nil && len(named) > 0 {
				return named[0], nil
			}
		}
		return run, err
	}
	run, err := Find(s, ref)
	switch {
	case err == errUnknown, err == errNone && isFolder(ref):
		return run, unresolved(s, ref)
	}
	return run, err
}

// Find is Resolve for a reference of a stranger's, as one in a request: it looks among the runs of the store alone, and
// at no file of that name.
func Find(s Store, ref string) (Run, error) {
	filter := Filter{Ref: ref}
	switch {
	case ref == "last":
		filter = Filter{Limit: 1}
	case validID(ref): // most are ids, and of an id no other run need be looked at
		if runs, err := s.List(Filter{IDs: []string{ref}}); err != nil {
			return Run{}, err
		} else if len(runs) == 1 {
			return runs[0], nil
		}
	}
	runs, err := s.List(filter)
	if err != nil {
		return Run{}, err
	}
	if len(runs) == 0 && !isPath(ref) {
		if any, err := s.List(Filter{Limit: 1}); err == nil && len(any) == 0 {
			return Run{}, errNone
		}
	}
	return pick(runs, ref)
}

// errUnknown says that no run is called so, errNone that there is none at all.
var (
	errUnknown = &Error{Kind: ErrNotFound, Text: "there is no such run", Hint: "hightide ls lists the runs"}
	errNone    = &Error{Kind: ErrNotFound, Text: "there is no run yet",
		Hint: "hightide run -- python train.py records one"}
)

// Load reads the whole recording of what Resolve understands. Damage is in mem.Run.Damage, not an error.
func Load(s Store, ref string) (Run, *mem.Run, error) {
	if path := recordingPath(ref); path != "" { // read once, not for its row first
		row, run, err := loadFile(path)
		if !errors.Is(err, ErrNotFound) {
			return row, run, err
		}
	}
	row, err := Resolve(s, ref)
	if err != nil {
		return row, nil, err
	}
	file, err := s.Open(row.ID, Recording)
	if err != nil {
		return row, nil, unreadable(row.where(), err)
	}
	defer file.Close()
	run, err := wire.Load(file)
	if err != nil {
		return row, nil, unreadable(row.where(), err)
	}
	return row, run, nil
}

// where is what an error calls the recording.
func (r *Run) where() string {
	return cmp.Or(r.File, "run "+r.ID)
}

// pick finds the run that a reference means among those that fit it, newest first.
func pick(runs []Run, ref string) (Run, error) {
	if ref == "last" && len(runs) > 0 {
		return runs[0], nil
	}
	for _, r := range runs {
		if r.ID == ref {
			return r, nil
		}
	}
	var found []Run
	for _, r := range runs {
		if r.Name == ref && ref != "" {
			found = append(found, r)
		}
	}
	if len(found) > 0 {
		found[0].Namesakes = len(found) - 1
		return found[0], nil
	}
	for _, r := range runs {
		if ref != "" && strings.HasPrefix(r.ID, strings.ToLower(ref)) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return Run{}, errUnknown
	case 1:
		return found[0], nil
	}
	var names []string
	for _, r := range found[:min(len(found), 5)] {
		names = append(names, r.ID)
	}
	if len(found) > len(names) {
		names = append(names, fmt.Sprintf("and %d more", len(found)-len(names)))
	}
	return Run{}, &Error{Kind: ErrAmbiguous, Text: fmt.Sprintf("%q could be %d runs", ref, len(found)),
		Hint: "write more of it: " + strings.Join(names, ", ")}
}

// unresolved says that a reference means nothing, and what it may have meant: a run's name, or a file in the same
// folder.
func unresolved(s Store, ref string) error {
	if isFolder(ref) {
		return &Error{Kind: ErrNotFound, Text: fmt.Sprintf("%s is a folder that holds no recording", ref),
			Hint: "name the files in it"}
	}
	choices := []string{"last"}
	if runs, err := s.List(Filter{}); err == nil {
		for _, r := range runs {
			choices = append(choices, r.Name)
		}
	}
	near := words.Near(ref, choices)
	if isPath(ref) {
		near = nearFile(ref)
	}
	e := notFound(ref)
	if near != "" {
		e.Text += "; did you mean " + near + "?"
	}
	return e
}

func notFound(ref string) *Error {
	if isPath(ref) {
		return &Error{Kind: ErrNotFound, Text: fmt.Sprintf("there is neither a file %q nor a run of that name", ref),
			Hint: "check the spelling; hightide ls lists the runs"}
	}
	return &Error{Kind: ErrNotFound, Text: fmt.Sprintf("there is no run %q", ref), Hint: "hightide ls lists the runs"}
}

func isFolder(ref string) bool {
	info, err := os.Stat(ref)
	return err == nil && info.IsDir()
}

// nearFile is the file beside a missing one whose name is nearest to its; "" for none.
func nearFile(path string) string {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder + "."))
	if err != nil {
		return ""
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if near := words.Near(name, names); near != "" {
		return folder + near
	}
	return ""
}

// isPath says whether a reference looks like the name of a file.
func isPath(ref string) bool { return strings.ContainsAny(ref, "/.") }

// recordingPath says whether a reference is meant as a file: it has a slash, ends like one, or is
// there. A folder means the recording in it.
func recordingPath(ref string) string {
	info, err := os.Stat(ref)
	if err == nil && info.IsDir() {
		inside := filepath.Join(ref, Recording)
		if _, err := os.Stat(inside); err == nil {
			return inside
		}
	}
	if strings.ContainsRune(ref, filepath.Separator) || strings.HasSuffix(ref, ".hightide") ||
		err == nil && info.Mode().IsRegular() {
		return ref
	}
	return ""
}

func resolveFile(path string) (Run, error) {
	file, err := openFile(path)
	if err != nil {
		return Run{}, err
	}
	defer file.Close()
	roll, _, err := sumUp(file, true)
	if err != nil {
		return Run{}, unreadable(path, err)
	}
	return rowOfFile(roll, path), nil
}

func loadFile(path string) (Run, *mem.Run, error) {
	file, err := openFile(path)
	if err != nil {
		return Run{}, nil, err
	}
	defer file.Close()
	run, err := wire.Load(file)
	if err != nil {
		return Run{}, nil, unreadable(path, err)
	}
	roll := newRollup(true)
	for f := range wire.Frames(run) {
		roll.add(f)
	}
	roll.damaged = len(run.Damage) > 0
	return rowOfFile(roll, path), run, nil
}

func openFile(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noFile(path)
	}
	if err != nil {
		return nil, &Error{Kind: ErrUnreadable, Text: "cannot read " + path, Err: cause(err), Hint: "make it readable"}
	}
	return file, nil
}

func noFile(path string) error {
	hint := "check the spelling; hightide ls lists the runs"
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		hint = "there is no folder " + dir + " either: check the spelling"
	}
	e := &Error{Kind: ErrNotFound, Text: "there is no file " + path, Hint: hint}
	if near := nearFile(path); near != "" {
		e.Text += "; did you mean " + near + "?"
	}
	return e
}

func rowOfFile(roll *rollup, path string) Run {
	row := roll.row()
	row.File, row.Dir = path, filepath.Dir(path)
	if info, err := os.Stat(path); err == nil {
		row.Size = info.Size()
	}
	if row.State == CutOff && isLocked(path) {
		row.becomes(Running)
	}
	return row
}

// unreadable explains why a file gives no run.
func unreadable(path string, err error) error {
	var newer wire.ErrNewer
	if errors.As(err, &newer) {
		return &Error{Kind: ErrNewer, Text: path, Err: err, Hint: "install a newer hightide"}
	}
	if errors.Is(err, syscall.EISDIR) {
		return &Error{Kind: ErrUnreadable, Text: path + " is a folder without a recording",
			Hint: "name a file in it, or a run"}
	}
	if errors.Is(err, errNotPlain) {
		return &Error{Kind: ErrUnreadable, Text: path +
			" is a link or a special file, which is not followed in the folder of a run",
			Hint: "put the file itself in its place"}
	}
	return &Error{Kind: ErrUnreadable, Text: path, Err: err,
		Hint: "this command reads what hightide run records; for other files: hightide explain " + path}
}
