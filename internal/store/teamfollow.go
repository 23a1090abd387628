package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"time"
)

// Follow implements Store. A run that is recorded on another machine is given as that machine sends it.
func (t *Team) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	if _, err := os.Stat(t.outbox.recording(id)); err == nil && validID(id) {
		return t.outbox.Follow(ctx, id, from)
	}
	return func(yield func(Batch, error) bool) {
		runs, err := t.List(Filter{IDs: []string{id}})
		if err != nil || len(runs) == 0 {
			yield(Batch{}, cmp.Or(err, error(notFound(id))))
			return
		}
		defer t.live.watch(id)()
		source := &teamSource{team: t, ctx: ctx, id: id}
		defer source.close()
		follow(ctx, id, source, from)(yield)
	}
}

// teamSource is a recording that the team has, or will have.
type teamSource struct {
	*stored          // the newest; nil: it was not sent yet
	live    *os.File // what there is of one that is being sent; nil: nothing
	team    *Team
	ctx     context.Context
	id      string
	last    look
	asked   time.Time
}

// askEvery is how often the database is asked for more of a run.
const askEvery = time.Second

func (s *teamSource) close() {
	if s.live != nil {
		s.live.Close()
	}
}

// ReadAt implements io.ReaderAt. Who has begun to read what is being sent reads that to its end.
func (s *teamSource) ReadAt(p []byte, at int64) (int, error) {
	if s.live != nil {
		return s.live.ReadAt(p, at)
	}
	return s.stored.ReadAt(p, at)
}

func (s *teamSource) look() (look, error) {
	now, err := s.ask()
	if err != nil || s.stored != nil && s.live == nil {
		return now, err
	}
	if s.live == nil {
		if s.live = s.team.openCopy(s.id); s.live == nil {
			return now, nil
		}
	}
	info, err := s.live.Stat()
	if err != nil {
		return look{}, err
	}
	if now.size = info.Size(); s.stored == nil {
		now.silent = time.Since(info.ModTime())
	}
	return now, nil
}

// ask is what the database says, every second.
func (s *teamSource) ask() (look, error) {
	if !s.asked.IsZero() && time.Since(s.asked) < askEvery {
		return s.last, nil
	}
	s.asked = time.Now()
	runs, err := s.team.listed(Filter{IDs: []string{s.id}})
	if err != nil {
		return look{}, err
	}
	s.last = look{removed: len(runs) == 0, silent: 2 * endedAfter}
	s.last.writing = len(runs) == 1 && runs[0].State == Running
	now, err := s.team.find(s.ctx, s.id, Recording)
	switch {
	case err == nil && (s.stored == nil || s.file != now.file):
		s.stored = now
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return look{}, err
	}
	if s.stored != nil {
		s.last.size = s.stored.size
	}
	return s.last, nil
}
