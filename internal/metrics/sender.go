package metrics

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"

	dto "github.com/prometheus/client_model/go"
)

// longestWait is between two tries.
const longestWait = time.Minute

// queuesBeside is how many processes may send to one address from one data directory.
const queuesBeside = 16

// sender sends what is in a queue to one receiver.
type sender struct {
	protocol
	*Push
	url   string
	queue *queue
	of    origin

	sent, refused, failures atomic.Uint64 // requests sent and refused, tries that failed
	failing                 bool
	refusing                bool // what was refused last was said
	lost                    int  // times that nothing could be kept, since something last was
}

// newSender opens the queue for an address, or another one beside it where a process sends from that.
func newSender(p protocol, address string, push *Push) (*sender, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := &sender{protocol: p, Push: push, url: address, of: origin{host, time.Now().UnixNano()}}
	limit := cmp.Or(push.Limit, defaultLimit)
	place := func(n int) string {
		return filepath.Join(push.Dir, fmt.Sprintf("%s-%x-%d", p.name, sha256.Sum256([]byte(address)), n))
	}
	for n := range queuesBeside {
		if err = os.MkdirAll(place(n), 0o700); err == nil {
			s.queue, err = openQueue(place(n), limit)
		}
		if !errors.Is(err, errTaken) {
			break
		}
	}
	for n := range queuesBeside { // of processes that ran beside others, none of which is there any more
		if s.queue != nil && place(n) != s.queue.dir {
			s.queue.takeOver(place(n))
		}
	}
	if err != nil {
		return nil, fail.Environment("is there room, and can it be written to?", "keep what is to be sent: %w", err)
	}
	return s, nil
}

func (s *sender) add(families []*dto.MetricFamily, at int64) {
	body, err := s.encode(families, at, s.of)
	if err == nil {
		err = s.queue.putRequest(body)
	}
	switch {
	case err != nil:
		if s.lost++; s.lost == 1 { // a full disk is full at the next push too
			s.Say("metrics for " + s.place() + " are lost: " + err.Error())
		}
	case s.lost > 0:
		s.Say(fmt.Sprintf("metrics for %s are kept again; those of %d times are lost", s.place(), s.lost))
		s.lost = 0
	}
}

// run sends what is in the queue until the context ends, or until the queue is empty once nothing more is gathered.
func (s *sender) run(ctx context.Context, gathered <-chan struct{}) {
	defer s.queue.close()
	for {
		s.drain(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.queue.filled:
			continue
		case <-gathered:
		}
		s.drain(ctx)
		return
	}
}

// drain sends until the queue is empty.
func (s *sender) drain(ctx context.Context) {
	wait := s.first()
	for {
		number, body, ok := s.queue.first()
		if !ok || ctx.Err() != nil {
			return
		}
		again, err := s.post(ctx, body)
		switch {
		case err == nil:
			s.sent.Add(1)
			s.answers()
			s.queue.done(number)
			wait = s.first()
		case again < 0:
			s.refused.Add(1)
			if !s.refusing {
				s.refusing = true
				s.Say(fmt.Sprintf("%s does not want these metrics, they are dropped: %v", s.place(), err))
			}
			s.queue.done(number)
		default:
			s.fails(ctx, err)
			if !sleep(ctx, max(again, wait/2+rand.N(wait))) {
				return
			}
			wait = min(2*wait, longestWait)
		}
	}
}

func (s *sender) first() time.Duration {
	if s.firstWait > 0 {
		return s.firstWait
	}
	return time.Second
}

// post sends one request. With an error, again says how long the receiver wants us to wait; below 0: it will never
// take it.
func (s *sender) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	within := cmp.Or(s.within, 30*time.Second)
	ctx, done := context.WithTimeout(ctx, within)
	defer done()
	request, err := s.request(ctx, body)
	if err != nil {
		return -1, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, bare(err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode < 300:
		s.refused.Add(s.rejected(answer))
		return 0, nil
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= 500:
		return retryAfter(answer), said(answer)
	}
	return -1, said(answer)
}

// client follows no redirection: metrics go to the address that was named.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// retryAfter is how long a receiver wants us to wait, but no longer than makes sense.
func retryAfter(answer *http.Response) time.Duration {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// said is an answer as an error, with the beginning of what it says.
func said(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	if len(text) == 0 {
		return errors.New("it answers " + answer.Status)
	}
	return fmt.Errorf("it answers %s: %q", answer.Status, text)
}

// bare takes the address off an error of the client, as it may hold a password.
func bare(err error) error {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fails says once that a receiver does not answer, and answers that it does again.
func (s *sender) fails(ctx context.Context, err error) {
	s.failures.Add(1)
	if !s.failing && ctx.Err() == nil {
		s.failing = true
		s.Say(fmt.Sprintf("%s does not take metrics, they wait on disk: %v", s.place(), err))
	}
}

func (s *sender) answers() {
	s.refusing = false
	if s.failing {
		s.failing = false
		s.Say(s.place() + " takes metrics again")
	}
}

// place is the receiver for people, without a password.
func (s *sender) place() string {
	to, err := url.Parse(s.url)
	if err != nil {
		return s.name
	}
	return to.Redacted()
}

// request is a request with its headers and, where there is one, a token; a name and password in the URL are sent by
// the client itself.
func (s *sender) request(ctx context.Context, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, bare(err)
	}
	for _, header := range s.Headers {
		name, value, _ := strings.Cut(header, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	for name, value := range s.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", "hightide/"+engine.Version)
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	return r, nil
}
