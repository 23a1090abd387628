package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"hightide/internal/mem"
	"hightide/internal/system"
	"hightide/internal/wire"
)

// Files is the store in a data directory:
//
//	version                    of this layout, a number
//	index.sqlite               can be rebuilt, may be deleted
//	runs/<id>/run.hightide     locked (flock) while an engine writes it
//	runs/<id>/…                reports, snapshots on their way into the recording
type Files struct {
	dir   string
	index *index
	once  sync.Once // the directory was looked at
	fault error
}

// layoutVersion of a data directory. A directory without the file is version 0: it had the same
// layout and is taken over by writing the file.
const layoutVersion = 1

// OpenFiles is the store in a data directory. Nothing is touched until it is used: then it is made
// if a run is created, and refused if a newer hightide made it.
func OpenFiles(dir string) *Files {
	return &Files{dir: dir, index: newIndex(filepath.Join(dir, "index.sqlite"))}
}

func (s *Files) runsDir() string            { return filepath.Join(s.dir, "runs") }
func (s *Files) runDir(id string) string    { return filepath.Join(s.runsDir(), id) }
func (s *Files) recording(id string) string { return filepath.Join(s.runDir(id), Recording) }

// Close implements Store.
func (s *Files) Close() error { return s.index.close() }

// check refuses a directory that a newer hightide made.
func (s *Files) check() error {
	s.once.Do(func() {
		text, err := os.ReadFile(filepath.Join(s.dir, "version"))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			s.fault = s.badPlace("read", err)
			return
		}
		version, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			s.fault = s.badPlace("use", errors.New("the file version in it is not that of a data directory"))
			return
		}
		if version > layoutVersion {
			s.fault = &Error{Kind: ErrNewer,
				Text: fmt.Sprintf("data directory %s has layout %s and this hightide knows up to %d",
					s.dir, strings.TrimSpace(string(text)), layoutVersion), Hint: "install a newer hightide, or use another folder with --data-dir"}
		}
	})
	return s.fault
}

// leastRoom is what a file system has to have left, in bytes, for a run to begin there: less is full with the first
// seconds.
const leastRoom = 256 << 10

func (s *Files) badPlace(what string, err error) error {
	return &Error{Kind: ErrPlace, Text: fmt.Sprintf("cannot %s the data directory %s", what, s.dir), Err: cause(err),
		Hint: "use another folder: --data-dir FOLDER, or set HIGHTIDE_DATA"}
}

// prepare makes the directory, for this user alone.
func (s *Files) prepare() error {
	if err := s.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.runsDir(), 0o700); err != nil {
		return s.badPlace("make", err)
	}
	path := filepath.Join(s.dir, "version")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	file, err := os.CreateTemp(s.dir, ".version-*")
	if err == nil {
		_, err = fmt.Fprintln(file, layoutVersion)
		if err = errors.Join(err, file.Close()); err == nil {
			err = os.Rename(file.Name(), path)
		}
		if err != nil {
			os.Remove(file.Name())
		}
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) { // then the next run writes it
		return s.badPlace("write to", err)
	}
	return nil
}

// Create implements Store.
func (s *Files) Create(info mem.RunInfo) (Writer, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if free, err := system.FreeBytes(s.dir); err == nil && free < leastRoom {
		return nil, s.badPlace("write to", syscall.ENOSPC)
	}
	id, err := s.makeRunDir(info.ID)
	if err != nil {
		return nil, err
	}
	info.ID = id
	file, err := system.OpenMoving(s.unborn(id), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		os.Remove(s.runDir(id))
		return nil, s.badPlace("write to", err)
	}
	if err := lock(file); err != nil {
		file.Close()
		return nil, s.badPlace("lock a recording in", err)
	}
	out := &blockFile{file: file}
	encoder, err := wire.NewWriter(out)
	if err != nil {
		file.Close()
		os.RemoveAll(s.runDir(id))
		return nil, s.badPlace("write to", err)
	}
	r := s.write(id, file, out, encoder, newRollup(false))
	r.writeInfo(info)
	if err := os.Rename(s.unborn(id), s.recording(id)); err != nil { // from here on it is a run, and says of what
		file.Close()
		os.RemoveAll(s.runDir(id))
		return nil, s.badPlace("write to", err)
	}
	r.place.flushed()
	return r, nil
}

// unborn is a recording that does not say yet of what it is. Who is killed before it does leaves no run.
func (s *Files) unborn(id string) string { return filepath.Join(s.runDir(id), ".begins") }

// unbornFor is how long an engine may take to begin a recording.
const unbornFor = time.Minute

// clear removes the folder of a run that never began. Of one that holds anything else it leaves all.
func (s *Files) clear(id string) {
	folder, err := os.Stat(s.runDir(id))
	if err != nil || !folder.IsDir() || !validID(id) || time.Since(folder.ModTime()) < unbornFor ||
		isLocked(s.unborn(id)) {
		return
	}
	if left, err := os.ReadDir(s.runDir(id)); err != nil || slices.ContainsFunc(left, func(f fs.DirEntry) bool {
		return f.Name() != filepath.Base(s.unborn(id)) && f.Name() != filepath.Base(s.reserve(id))
	}) {
		return
	}
	_, _ = os.Remove(s.unborn(id)), os.Remove(s.reserve(id))
	_ = os.Remove(s.runDir(id))
}

// write makes the Writer of a recording.
func (s *Files) write(id string, file *os.File, out *blockFile, encoder *wire.Writer, roll *rollup) *recording {
	s.holdReserve(id)
	r := &recording{id: id, out: out, wire: encoder, roll: roll}
	r.place = &onDisk{recording: r, store: s, file: file, index: s.index.startIndexer()}
	return r
}

// makeRunDir makes the folder of a new run, with an id of its own where none is given.
func (s *Files) makeRunDir(id string) (string, error) {
	if id != "" {
		if !validID(id) {
			return "", &Error{Kind: ErrNotFound, Text: fmt.Sprintf("%q cannot be the id of a run", id),
				Hint: "use letters, digits, - and _"}
		}
		if err := os.Mkdir(s.runDir(id), 0o700); err != nil {
			return "", s.badPlace("write to", err)
		}
		return id, nil
	}
	for {
		id := NewID(time.Now())
		err := os.Mkdir(s.runDir(id), 0o700)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", s.badPlace("write to", err)
		}
	}
}

// Reopen implements Store.
func (s *Files) Reopen(id string) (Writer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !validID(id) {
		return nil, notFound(id)
	}
	file, err := openPlain(s.recording(id), os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(id)
	}
	if err != nil {
		return nil, s.badPlace("write to", err)
	}
	w, err := s.reopen(id, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return w, nil
}

func (s *Files) reopen(id string, file *os.File) (Writer, error) {
	if err := lock(file); err != nil {
		return nil, stillRunning(id)
	}
	size, err := file.Seek(0, 2)
	if err != nil {
		return nil, s.badPlace("read", err)
	}
	out := &blockFile{file: file, size: size}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, s.badPlace("read", err)
	}
	roll, sequence, err := sumUp(file, false)
	if errors.Is(err, wire.ErrFormat) && size < 1024 { // the engine ended before it had begun
		if err := file.Truncate(0); err != nil {
			return nil, s.badPlace("write to", err)
		}
		out.size, roll = 0, newRollup(false)
		roll.run.Info.ID = id
		_, err = wire.NewWriter(out)
	}
	if err != nil {
		return nil, unreadable(s.recording(id), err)
	}
	return s.write(id, file, out, wire.Append(out, sequence), roll), nil
}

// Remove implements Store.
func (s *Files) Remove(id string) error {
	if err := s.check(); err != nil {
		return err
	}
	if _, err := os.Stat(s.runDir(id)); !validID(id) || err != nil {
		return notFound(id)
	}
	if isLocked(s.recording(id)) {
		return stillRunning(id)
	}
	if err := os.RemoveAll(s.runDir(id)); err != nil {
		return s.badPlace("write to", err)
	}
	_ = s.index.remove(id) // List forgets a run whose folder is gone
	return nil
}

// Attach implements Store.
func (s *Files) Attach(id, name string, write func(io.Writer) error) (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	if _, err := os.Stat(s.recording(id)); err != nil || !validID(id) || !validName(name) {
		return "", notFound(id + "/" + name)
	}
	file, err := os.CreateTemp(s.runDir(id), ".attach-*")
	if err != nil {
		return "", s.badPlace("write to", err)
	}
	path := filepath.Join(s.runDir(id), name)
	err = errors.Join(write(file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("write %s: %w", path, cause(err))
	}
	return path, nil
}

// Detach implements Store.
func (s *Files) Detach(id, name string) error {
	if err := s.check(); err != nil {
		return err
	}
	if !validID(id) || !validName(name) {
		return fs.ErrNotExist
	}
	err := os.Remove(filepath.Join(s.runDir(id), name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.badPlace("write to", err)
	}
	return err
}

// Open implements Store.
func (s *Files) Open(id, name string) (io.ReadCloser, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !validID(id) || name != Recording && !validName(name) {
		return nil, fs.ErrNotExist
	}
	path := filepath.Join(s.runDir(id), name)
	file, err := openPlain(path, os.O_RDONLY)
	if errors.Is(err, errNotPlain) {
		return nil, unreadable(path, err)
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// openPlain opens a file of a run's folder: no link, which may lead out of it, and no pipe or device, which may never
// end. A data directory can come from elsewhere, and a server hands out what lies in it.
func openPlain(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|system.NoFollow|system.NonBlock, 0) // without waiting for who writes a pipe
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: cmp.Or(err, errNotPlain)}
	}
	return file, nil
}

// errNotPlain is of what lies in a run's folder and is never opened.
var errNotPlain = errors.New("a link or a special file")

// Attached implements Store.
func (s *Files) Attached(id string) ([]Attachment, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.runDir(id))
	if err != nil || !validID(id) {
		return nil, notFound(id)
	}
	attached := []Attachment{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && validName(entry.Name()) {
			attached = append(attached, Attachment{entry.Name(), info.Size()})
		}
	}
	return attached, nil
}

// lock takes a recording for writing. A moment is given to those who only look whether it is taken.
func lock(file *os.File) error {
	var err error
	for range 20 {
		if err = system.Lock(file, false); !errors.Is(err, system.ErrLocked) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if system.NoLocks(err) {
		return nil // a file system without locks: runs then look cut off until they have ended
	}
	return err
}

// isLocked says whether an engine is writing a recording.
func isLocked(path string) bool {
	file, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	return fileSource{file}.locked()
}
