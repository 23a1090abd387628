package store

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Follow implements Store.
func (s *Files) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		file, err := s.openToFollow(id)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer file.Close() // and with it the mark
		announce(file)
		follow(ctx, id, fileSource{file}, from)(yield)
	}
}

func (s *Files) openToFollow(id string) (*os.File, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !validID(id) {
		return nil, notFound(id)
	}
	file, err := openPlain(s.recording(id), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(id)
	}
	if err != nil {
		return nil, unreadable(s.recording(id), err)
	}
	return file, nil
}

// fileSource is a recording on disk, opened for reading.
type fileSource struct{ *os.File }

func (f fileSource) look() (look, error) {
	writing := f.locked() // first: what is written before the lock is given back is in the size
	info, err := f.Stat()
	if err != nil {
		return look{}, err
	}
	inode, ok := info.Sys().(*syscall.Stat_t)
	return look{size: info.Size(), writing: writing, removed: ok && inode.Nlink == 0, silent: time.Since(info.ModTime())}, nil
}

// locked says whether an engine writes the recording.
func (f fileSource) locked() bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// followMark is the byte, far behind the end of any recording, on which followers hold a shared lock. The
// system gives it back for one that is killed, and a writer sees it in any process. File systems
// without such locks only make followers see frames later.
const followMark = 1 << 62

func mark(kind int16) unix.Flock_t {
	return unix.Flock_t{Type: kind, Start: followMark, Len: 1}
}

// announce tells the writer of a recording that it is followed, until the file is closed.
func announce(file *os.File) {
	lock := mark(unix.F_RDLCK)
	_ = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)
}

func (w *onDisk) followed() bool {
	lock := mark(unix.F_WRLCK)
	return unix.FcntlFlock(w.file.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}
