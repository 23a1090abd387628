package server

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates are what one caller may take; the zero value: as much as there is.
type Rates struct {
	Requests float64 // a second; for a moment ten times as many
	Bytes    int64   // of bodies, a second
}

// burst is how many seconds' worth one may take at once.
const burst = 10

// callersKept is how many callers' rates are remembered: who was not there for a while has all of its rate again.
const callersKept = 10_000

// rates remembers what callers have taken.
type rates struct {
	mu  sync.Mutex
	all map[string]*taken
}

type taken struct{ requests, bytes *rate.Limiter }

// of is what a caller has taken: one that is known, else an address.
func (rs *rates) of(limits Rates, who string, r *http.Request) *taken {
	if who == "" {
		who, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	t := rs.all[who]
	if t == nil {
		if rs.all == nil || len(rs.all) >= callersKept {
			rs.all = map[string]*taken{}
		}
		t = &taken{rate.NewLimiter(rate.Inf, 0), rate.NewLimiter(rate.Inf, 0)}
		if limits.Requests > 0 {
			t.requests = rate.NewLimiter(rate.Limit(limits.Requests), max(1, int(burst*limits.Requests)))
		}
		if limits.Bytes > 0 {
			t.bytes = rate.NewLimiter(rate.Limit(limits.Bytes), int(max(pieceBytes, burst*limits.Bytes)))
		}
		rs.all[who] = t
	}
	return t
}

// pieceBytes is the most that is read of a body at once.
const pieceBytes = 32 << 10

// slowed is a body that comes no faster than its sender may send.
type slowed struct {
	io.ReadCloser
	of *rate.Limiter
	r  *http.Request
}

func (s *slowed) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p[:min(len(p), pieceBytes)])
	if n > 0 {
		if wait := s.of.WaitN(s.r.Context(), n); wait != nil {
			return n, wait
		}
	}
	return n, err
}

// take counts a request, and slows its body. Where it is one too many it says when to ask again; 0: it may be
// served.
func (rs *rates) take(limits Rates, who string, r *http.Request) (again time.Duration) {
	if limits == (Rates{}) {
		return 0
	}
	t := rs.of(limits, who, r)
	asked := t.requests.Reserve()
	if again = asked.Delay(); again > 0 {
		asked.Cancel()
		return again
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &slowed{r.Body, t.bytes, r}
	}
	return 0
}
