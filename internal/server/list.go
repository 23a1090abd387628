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

// startLooking begins to look, if nobody does. What changes after it has returned is told.
func (l *list) startLooking(s *Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers++; l.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	l.stop = stop
	known := map[string]store.Run{}
	problem := ""
	if _, err := s.changes(ctx, known); err != nil {
		problem = line(err) // whoever joins is told as it asks for the runs
	}
	go l.watchRuns(ctx, s, known, problem)
}

func (l *list) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers--; l.viewers == 0 {
		l.stop()
		l.stop = nil
	}
}

// While somebody has the list open, looking at all runs takes at most a tenth of a processor, however many they are.
// What a look takes is time that passed, which is more on a busy machine; so the pause has an end.
const (
	listRest     = 9
	longestPause = 10 * time.Second
)

// watchRuns tells what changes, and why nothing is known of it where the runs cannot be listed.
func (l *list) watchRuns(ctx context.Context, s *Server, known map[string]store.Run, problem string) {
	next := time.NewTimer(listEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		tell := func(event string, data any) {
			l.feed.change(func(r *ring) { r.push(message{text: eventText(event, data, -1)}) })
		}
		began := time.Now()
		news, err := s.changes(ctx, known)
		next.Reset(max(listEvery, min(listRest*time.Since(began), longestPause)))
		switch was := problem; {
		case ctx.Err() != nil:
		case err != nil:
			if problem = line(err); problem != was {
				tell("problem", listProblem{problem})
			}
		case was != "":
			problem = ""
			tell("open", struct{}{})
		case len(news.Changed)+len(news.Removed) > 0:
			tell("runs", news)
		}
	}
}

// changes are what differs from the rows that are known, which it brings up to date.
func (s *Server) changes(ctx context.Context, known map[string]store.Run) (news rowsNews, err error) {
	runs, err := s.engine.Runs(ctx, store.Filter{})
	if err == nil {
		news.since(known, runs)
	}
	return news, err
}

// listProblem says why the runs cannot be listed.
type listProblem struct {
	Text string `json:"text"`
}
