package server

import (
	"context"
	"sync"
	"time"

	"hightide/internal/store"
)

// list watches the runs while somebody wants to know of them: one looks for all.
type list struct {
	feed *feed
	ctx  context.Context

	mu      sync.Mutex
	viewers int
	stop    context.CancelFunc // of who looks; nil: nobody does
}

// join begins to look, if nobody does. What changes after it has returned is told.
func (l *list) join(s *Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers++; l.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	l.stop = stop
	known := map[string]store.Run{}
	s.changes(ctx, known)
	go l.look(ctx, s, known)
}

func (l *list) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers--; l.viewers == 0 {
		l.stop()
		l.stop = nil
	}
}

// look tells what changes.
func (l *list) look(ctx context.Context, s *Server, known map[string]store.Run) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if news := s.changes(ctx, known); len(news.Changed)+len(news.Removed) > 0 {
			l.feed.change(func(r *ring) { r.push(message{text: eventText("runs", news, -1)}) })
		}
	}
}

// changes are what differs from the rows that are known, which it brings up to date.
func (s *Server) changes(ctx context.Context, known map[string]store.Run) (news rowsNews) {
	if runs, err := s.engine.Runs(ctx, store.Filter{}); err == nil {
		news.since(known, runs)
	}
	return news
}
