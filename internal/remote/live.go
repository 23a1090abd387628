package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/redact"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// Live sends a run while it is recorded, for others to look at. At its end the run is sent whole (Send), which takes
// the place of this.
//
//	the recording ──▶ what the project does not want is taken out ──▶ a copy on this disk ──▶ the server, by places
//
// The copy is the queue: a server that is away delays nobody, and gets the rest when it is back. Contents of
// snapshots are left for the end.
type Live struct {
	Client  *Client
	Project string
	Rules   redact.Rules     // beside those of the project
	Folder  string           // for the copy
	Shown   func(run string) // told how the server calls the run, once it lists it; nil: nobody is
}

// Recorded is what a run is recorded into.
type Recorded interface {
	FollowQuietly(ctx context.Context, id string, from int64) iter.Seq2[store.Batch, error]
	Hurry(id string) (io.Closer, error)
}

const (
	liveWatched = 200 * time.Millisecond // between two pieces while somebody looks
	liveAlone   = 2 * time.Second        // while nobody does
	livePatient = 15 * time.Second       // between two tries while the server is away, at most
	liveWithin  = 20 * time.Second       // one piece
	livePiece   = 1 << 20
	liveCopied  = 512 << 20 // the copy takes no more of the disk
)

// liveCopy is the copy of a run as it goes.
type liveCopy struct {
	file  *os.File
	mu    sync.Mutex
	size  int64 // that was written
	known int64 // so much of it says which run it is; 0: not yet
	ended bool  // no more comes
	err   error // why it broke off
}

// Run sends a run until its end, or until the context ends. An error says why others see no more of it.
func (l *Live) Run(ctx context.Context, from Recorded, id string) error {
	rules, err := l.rules(ctx)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(l.Folder, ".live-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	ctx, stop := context.WithCancel(ctx)
	made := &liveCopy{file: file}
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() {
		err := l.copy(ctx, from, id, rules, made)
		made.mu.Lock()
		made.ended, made.err = true, err
		made.mu.Unlock()
	})
	return l.send(ctx, from, id, made)
}

// rules are what is taken out. Nothing leaves the machine before they are known.
func (l *Live) rules(ctx context.Context) (*redact.Redaction, error) {
	for wait := time.Second; ; wait = min(2*wait, livePatient) {
		project, err := l.Client.project(ctx, l.Project)
		if err == nil {
			home, _ := os.UserHomeDir()
			return redact.New(project.Redact.With(l.Rules), home)
		}
		if fail.Code(err) != fail.ExitEnvironment {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// copy writes the recording as it goes, while it is made.
func (l *Live) copy(ctx context.Context, from Recorded, id string, rules *redact.Redaction, made *liveCopy) error {
	out, err := wire.NewWriter(made)
	if err != nil {
		return err
	}
	in := Send{Project: l.Project}
	for batch, err := range from.FollowQuietly(ctx, id, 0) {
		if err != nil {
			return err
		}
		named := false
		for _, f := range batch.Frames {
			if info, is := f.(mem.RunInfo); is {
				f, named = in.inProject(info), true
			}
			if _, snapshot := f.(mem.Snapshot); snapshot {
				continue
			}
			if f, keep := rules.Frame(f); keep {
				if err := out.Write(f); err != nil {
					return err
				}
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if named {
			made.mu.Lock()
			made.known = cmp.Or(made.known, made.size)
			made.mu.Unlock()
		}
	}
	return out.Close()
}

// Write implements io.Writer.
func (c *liveCopy) Write(p []byte) (int, error) {
	c.mu.Lock()
	at := c.size
	c.mu.Unlock()
	if at+int64(len(p)) > liveCopied {
		return 0, fmt.Errorf("what is shown while it is recorded ends at %v", mem.Bytes(liveCopied))
	}
	n, err := c.file.WriteAt(p, at)
	if err == nil {
		c.mu.Lock()
		c.size += int64(n)
		c.mu.Unlock()
	}
	return n, err
}

// state is how long the copy is, and whether it grows.
func (c *liveCopy) state() (size int64, ended bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, c.ended, c.err
}

// named says whether so much of the copy says which run it is: who takes it lists the run then.
func (c *liveCopy) named(at int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known > 0 && at >= c.known
}

// liveAnswer is what the server says to a piece.
type liveAnswer struct {
	Run     string `json:"run"`
	At      int64  `json:"at_bytes"`
	There   bool   `json:"there_already"`
	Watched bool   `json:"watched"`
}

// send sends what the server lacks of a copy, until all is there and no more comes.
func (l *Live) send(ctx context.Context, from Recorded, id string, made *liveCopy) error {
	to := "/projects/" + url.PathEscape(l.Project) + "/pushes/" + url.PathEscape(id) + "/live/"
	stream, data := rand.Text(), make([]byte, livePiece)
	var hurry io.Closer // while somebody looks
	defer func() {
		if hurry != nil {
			hurry.Close()
		}
	}()
	at, failed, answered, shown := int64(0), 0, false, false
	for {
		size, ended, broken := made.state()
		if ended && (broken != nil || at == size && answered) {
			return broken
		}
		piece := data[:min(livePiece, max(size-at, 0))]
		if _, err := made.file.ReadAt(piece, at); err != nil {
			return err
		}
		answer, err := l.piece(ctx, to+strconv.FormatInt(at, 10)+"?stream="+stream, piece)
		if err != nil && (ctx.Err() != nil || fail.Code(err) != fail.ExitEnvironment) {
			return err
		}
		wait := min(liveAlone<<failed, livePatient)
		if err != nil {
			failed = min(failed+1, 3)
		} else {
			if answer.There || answer.At > size {
				return nil
			}
			at, failed, wait, answered = answer.At, 0, liveAlone, true
			if made.named(at) && !shown && l.Shown != nil {
				shown = true
				l.Shown(answer.Run)
			}
			if answer.Watched || !shown {
				wait = liveWatched
			}
			hurry = hurried(from, id, answer.Watched, hurry)
		}
		l.pause(ctx, made, at, wait, err == nil)
	}
}

// pause waits until the next piece is due: at once where there is more than one, and where no more will come.
func (l *Live) pause(ctx context.Context, made *liveCopy, at int64, wait time.Duration, well bool) {
	until := time.Now().Add(wait)
	for time.Now().Before(until) && ctx.Err() == nil {
		size, ended, _ := made.state()
		if well && (ended || size-at >= livePiece) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Until(until), liveWatched/2)):
		}
	}
}

// hurried has the recorder flush often while somebody looks.
func hurried(from Recorded, id string, watched bool, now io.Closer) io.Closer {
	switch {
	case watched && now == nil:
		if mark, err := from.Hurry(id); err == nil {
			return mark
		}
	case !watched && now != nil:
		now.Close()
		return nil
	}
	return now
}

func (l *Live) piece(ctx context.Context, path string, data []byte) (answer liveAnswer, err error) {
	within, done := context.WithTimeout(ctx, liveWithin)
	defer done()
	_, err = l.Client.sendOnce(within, http.MethodPut, path, "application/octet-stream", data, &answer)
	if errors.Is(err, context.Canceled) {
		err = ctx.Err()
	}
	return answer, err
}
