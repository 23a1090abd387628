package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRestOfABodyIsNoRequest: what is left of a body that was refused is never taken for the next request of the connection, by which
// the checks of where a request comes from would be passed by.
func TestRestOfABodyIsNoRequest(t *testing.T) {
	s := newSite(t, Options{})
	inner := "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
	body := strings.Repeat(inner, 4*bodySize/len(inner))
	for _, of := range []string{"Content-Type: application/json\r\n", "Content-Type: text/plain\r\n", "Origin: http://evil.example\r\n"} {
		connection, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			fmt.Fprintf(connection, "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", of, len(body), body)
		}()
		answer, _ := io.ReadAll(connection) // until the server closes it, perhaps as a reset
		connection.Close()
		if n := bytes.Count(answer, []byte("HTTP/1.1 ")); n != 1 {
			t.Errorf("%s%d answers to one request:\n%.1000s", of, n, answer)
		}
	}
}

// TestSlowBodies: a client that sends nothing more, or a byte now and then for ever, is let go, whether its body is read or not.
func TestSlowBodies(t *testing.T) {
	for _, test := range []struct {
		name, head string
		drips      bool
		within     time.Duration
	}{
		{"nothing comes", "POST /api/v1/jobs HTTP/1.1\r\nContent-Type: application/json\r\n", false, 2 * stalled},
		{"it drips", "POST /api/v1/jobs HTTP/1.1\r\nContent-Type: application/json\r\n", true, 2 * patience},
		{"an upload drips", "POST /api/v1/snapshots HTTP/1.1\r\n", true, 2 * patience},
		{"it is refused", "POST /api/v1/jobs HTTP/1.1\r\nOrigin: http://evil.example\r\n", false, 2 * stalled},
		{"it is refused and drips", "POST /api/v1/jobs HTTP/1.1\r\nOrigin: http://evil.example\r\n", true, 2 * patience},
		{"nobody reads it", "GET /api/v1/status HTTP/1.1\r\n", true, 2 * patience},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard := &Server{began: time.Now()}
				front := &http.Server{Handler: guard.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						_, _ = io.Copy(io.Discard, r.Body)
					}
				}))}
				ours, theirs := net.Pipe()
				listener := &oneConnection{connections: make(chan net.Conn, 1)}
				listener.connections <- theirs
				ended, sent := make(chan struct{}), make(chan struct{})
				go func() { _ = front.Serve(listener); close(ended) }()
				began := time.Now()
				go func() {
					defer close(sent)
					_, err := fmt.Fprintf(ours, "%sHost: localhost\r\nContent-Length: 100000\r\n\r\n", test.head)
					for err == nil && test.drips {
						time.Sleep(time.Second)
						_, err = ours.Write([]byte("x"))
					}
				}()
				_, _ = io.Copy(io.Discard, ours)
				if took := time.Since(began); took > test.within {
					t.Errorf("it was let go after %v", took)
				}
				ours.Close()
				close(listener.connections)
				<-ended
				<-sent
			})
		})
	}
}

// oneConnection is a listener of connections that a test makes.
type oneConnection struct{ connections chan net.Conn }

func (l *oneConnection) Accept() (net.Conn, error) {
	if c, more := <-l.connections; more {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error   { return nil }
func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

// TestTooMany: more requests at once than are served are refused, those under way go on, and there is room again once they have ended.
func TestTooMany(t *testing.T) {
	s := newSite(t, Options{})
	ends := make([]func(), requestsAtOnce)
	for i := range ends {
		_, ends[i] = s.made.looked.begin()
	}
	if got, text := s.ask(http.MethodGet, "/api/v1/status", ""); got != http.StatusServiceUnavailable || !strings.Contains(text, `"detail"`) {
		t.Errorf("%d %s", got, text)
	}
	ends[0]()
	if got, text := s.ask(http.MethodGet, "/api/v1/status", ""); got != http.StatusOK {
		t.Errorf("%d %s", got, text)
	}
	for _, end := range ends[1:] {
		end()
	}
}

// TestRefusalsAreProblems: what is refused before the API is asked has the form that its description promises, and names no method as
// one that works.
func TestRefusalsAreProblems(t *testing.T) {
	s := newSite(t, Options{Token: "right"})
	token := []string{"Authorization", "Bearer right"}
	for _, test := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/api/v1/status", nil, 401},
		{"GET", "/api/v1/status", []string{"Host", "evil.example"}, 421},
		{"GET", "/api/v1/status", append(token, "Origin", "http://evil.example"), 403},
		{"GET", "/api/v1/nothing", token, 404},
		{"PUT", "/api/v1/status", token, 404},
		{"POST", "/", token, 405},
		{"TRACE", "/runs", token, 405},
	} {
		request, err := http.NewRequest(test.method, s.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(test.headers); i += 2 {
			request.Header.Set(test.headers[i], test.headers[i+1])
		}
		if host := request.Header.Get("Host"); host != "" {
			request.Host = host
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		problem := response.Header.Get("Content-Type") == "application/problem+json"
		if response.StatusCode != test.want || problem != strings.HasPrefix(test.path, "/api/") {
			t.Errorf("%s %s: %s as %s; want %d", test.method, test.path, response.Status, response.Header.Get("Content-Type"), test.want)
		}
	}
}
