package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"
	"time"

	"hightide/internal/mem"
	"hightide/internal/wire"

	"golang.org/x/sys/unix"
)

//	Follow ──▶ wire.Tail ──▶ Batch, Batch, …        engine ──▶ Writer ──▶ Flush, more often while Followed
//	              ▲                                              │
//	              └──────────────── run.hightide ◀───────────────┘
//
// A follower reads the recording itself, behind the writer's back: the recording is its queue, so one
// that is slow or stops reading holds up nobody and takes no memory. It lets the writer know that it is
// there (Writer.Followed), and looks whether the recording has grown.

// Batch is what one block of a recording holds; Follow goes on at Next.
type Batch = wire.Batch

// FollowEvery is how often a follower looks for more.
const FollowEvery = 40 * time.Millisecond

// endedAfter is how long a recording without an end must have been silent before it is taken for cut
// off. On file systems without locks nobody sees that it is still written, and after an engine was
// killed another may go on with it.
const endedAfter = 2 * time.Second

// source is a recording as a follower sees it.
type source interface {
	io.ReaderAt
	look() (look, error)
}

// look is the state of a recording at a moment.
type look struct {
	size    int64
	writing bool          // somebody writes it, or did when size was read
	removed bool          // the store has it no more
	silent  time.Duration // since it last grew
}

// follow is Store.Follow for every kind of store.
func follow(ctx context.Context, id string, src source, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		tail := wire.NewTail(src, from)
		ended := false
		again := time.NewTimer(0)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				yield(Batch{}, context.Cause(ctx))
				return
			case <-again.C:
				again.Reset(FollowEvery)
			}
			now, err := src.look()
			for err == nil && ctx.Err() == nil {
				var batch Batch
				if batch, err = tail.Next(now.size); err == nil {
					ended = endedBy(batch, ended)
					if !yield(batch, nil) {
						return
					}
				}
			}
			switch {
			case err != nil && err != io.EOF:
				yield(Batch{}, unreadable("run "+id, err))
				return
			case ctx.Err() != nil: // as above
			case ended && !now.writing:
				return
			case now.removed:
				yield(Batch{}, &Error{Kind: ErrNotFound, Text: fmt.Sprintf("run %s was removed", id)})
				return
			case !now.writing && now.silent > endedAfter:
				return
			}
		}
	}
}

// endedBy says whether a recording has its end, after a batch of it.
func endedBy(batch Batch, before bool) bool {
	for _, f := range batch.Frames {
		if _, end := f.(mem.End); end {
			return true
		}
	}
	return before
}

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
	return look{size: info.Size(), writing: writing, removed: ok &&
		inode.Nlink == 0, silent: time.Since(info.ModTime())}, nil
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
