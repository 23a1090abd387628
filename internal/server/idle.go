package server

import (
	"context"
	"sync"
	"time"
)

// looked is who looks at the server, and when somebody did last.
type looked struct {
	mu    sync.Mutex
	now   int // requests under way
	until time.Time
}

// beginRequest notes that a request began, and says how many are under way with it; call end when that has ended. Who is not
// known does not look.
func (l *looked) beginRequest(known bool) (now int, end func()) {
	add := func(n int) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now += n
		if known {
			l.until = time.Now()
		}
		return l.now
	}
	return add(1), func() { add(-1) }
}

// left is how long the server still has to wait for somebody to look.
func (l *looked) left(idle time.Duration, began time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now > 0 {
		return idle
	}
	if l.until.Before(began) {
		l.until = began
	}
	return idle - time.Since(l.until)
}

// WaitIdle returns when nobody has looked for a time and no job is under way, or the context ends.
func (s *Server) WaitIdle(ctx context.Context, idle time.Duration) {
	for {
		left := s.looked.left(idle, s.began)
		if s.work.busy() {
			left = idle
		}
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// busy says whether a job is under way or waits for its turn.
func (js *jobs) busy() bool {
	for _, j := range js.list() {
		if !j.State.over() {
			return true
		}
	}
	return false
}
