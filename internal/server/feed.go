package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// feed gives the same messages to any number of viewers, each at its own pace. A viewer costs a goroutine and a
// number; one that stands still loses its place in the ring, and then its connection.
type feed struct {
	mu      sync.Mutex
	ring    ring
	closed  bool          // no more comes
	changed chan struct{} // closed, and made anew, when one of those above changes
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// change alters the ring and wakes the viewers.
func (f *feed) change(alter func(*ring)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	alter(&f.ring)
	if !f.closed {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// close says that no more comes.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.changed)
	}
}

// end is the number that the next message gets.
func (f *feed) end() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring.end()
}

// behind is ring.behind.
func (f *feed) behind(place int64) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring.behind(place)
}

// since are the messages from a number on, whether that is still there, and what to wait for where there are none;
// nil: for nothing.
func (f *feed) since(number int64) (messages []message, there bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	messages, there = f.ring.since(number)
	if f.closed {
		return messages, there, nil
	}
	return messages, there, f.changed
}

// heartbeat is how often something is sent in any case: a connection that nobody reads any more is found that soon.
const heartbeat = 15 * time.Second

// viewer is one connection to a feed.
type viewer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// answerEvents begins an answer of events.
func answerEvents(w http.ResponseWriter) *viewer {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	return &viewer{w, http.NewResponseController(w)}
}

// send writes what is there, and says whether the viewer still takes it.
func (v *viewer) send(texts ...[]byte) bool {
	for _, text := range texts {
		if _, err := v.w.Write(text); err != nil {
			return false
		}
	}
	return v.control.Flush() == nil
}

// watch sends the messages of a feed from a number on, until there are no more or the viewer goes away. Where a
// viewer has lost its place, again gives what to begin anew with, and where to go on.
func (v *viewer) watch(ctx context.Context, f *feed, number int64, again func() ([]byte, int64)) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		messages, there, changed := f.since(number)
		switch {
		case !there:
			var text []byte
			if text, number = again(); !v.send(text) {
				return
			}
			continue
		case len(messages) > 0:
			texts := make([][]byte, len(messages))
			for i, m := range messages {
				texts[i] = m.text
			}
			if !v.send(texts...) {
				return
			}
			number += int64(len(messages))
			continue
		case changed == nil:
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-beat.C:
			if !v.send([]byte(":\n\n")) {
				return
			}
		}
	}
}
