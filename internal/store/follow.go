package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"hightide/internal/mem"
	"hightide/internal/system"
	"hightide/internal/wire"
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
			case ended && (!now.writing || now.removed): // one that was sent on is removed as its writer ends
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
		system.Follow(file)
		follow(ctx, id, fileSource{file}, from)(yield)
	}
}

// FollowQuietly is Follow for who is in no hurry: the writer does not learn of it, and flushes as if nobody followed.
func (s *Files) FollowQuietly(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		file, err := s.openToFollow(id)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer file.Close()
		follow(ctx, id, fileSource{file}, from)(yield)
	}
}

// Hurry has who writes a run flush often, as for a follower, until what it returns is closed.
func (s *Files) Hurry(id string) (io.Closer, error) {
	file, err := s.openToFollow(id)
	if err == nil {
		system.Follow(file)
	}
	return file, err
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
	return look{size: info.Size(), writing: writing, removed: system.Removed(info),
		silent: time.Since(info.ModTime())}, nil
}

// locked says whether an engine writes the recording.
func (f fileSource) locked() bool {
	err := system.Lock(f.File, true)
	if err == nil {
		_ = system.Unlock(f.File)
	}
	return errors.Is(err, system.ErrLocked)
}

func (w *onDisk) followed() bool { return system.Followed(w.file) }
