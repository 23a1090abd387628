package store

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"hightide/internal/mem"
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
