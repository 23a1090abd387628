package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRestOfABodyIsNoRequest: what is left of a body that was refused is never taken for the next request of the
// connection, by which the checks of where a request comes from would be passed by.
func TestRestOfABodyIsNoRequest(t *testing.T) {
	s := newSite(t, Options{})
	inner := "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\n\r\n"
	body := strings.Repeat(inner, 4*bodySize/len(inner))
	for _, of := range []string{"Content-Type: application/json\r\n", "Content-Type: text/plain\r\n",
		"Origin: http://evil.example\r\n"} {
		connection, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			fmt.Fprintf(connection, "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+
				"right\r\n%sContent-Length: %d\r\n\r\n%s", of, len(body), body)
		}()
		answer, _ := io.ReadAll(connection) // until the server closes it, perhaps as a reset
		connection.Close()
		if n := bytes.Count(answer, []byte("HTTP/1.1 ")); n != 1 {
			t.Errorf("%s%d answers to one request:\n%.1000s", of, n, answer)
		}
	}
}

// TestSlowBodies: a client that sends nothing more, or a byte now and then for ever, is let go, whether its body is
// read or not.
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
				guard := &Server{door: newDoor(right, ""), began: time.Now()}
				front := &http.Server{Handler: guard.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						_, _ = io.Copy(io.Discard, r.Body)
					}
				}), func(*http.Request) bool { return true }, refuse)}
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

// TestTooMany: more requests at once than are served are refused, those under way go on, and there is room again once
// they have ended.
func TestTooMany(t *testing.T) {
	s := newSite(t, Options{})
	ends := make([]func(), requestsAtOnce)
	for i := range ends {
		_, ends[i] = s.made.looked.beginRequest(true)
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

// TestRoom: descriptors are kept for files and for refusals, whatever the limit.
func TestRoom(t *testing.T) {
	for _, descriptors := range []int{1, 20, 64, 200, 256, 1024, 1334, 4096, 1 << 20} {
		r := RoomOf(descriptors)
		if r.Streams < 1 || r.Streams >= r.Requests || r.Requests >= r.Connections || r.Requests > requestsAtOnce {
			t.Errorf("%d descriptors: %+v", descriptors, r)
		}
		if descriptors >= 64 && r.Connections > descriptors*9/10 {
			t.Errorf("%d descriptors: %d connections leave none for files", descriptors, r.Connections)
		}
	}
	if r := RoomOf(4096); r.Requests != requestsAtOnce {
		t.Errorf("where descriptors abound: %+v", r)
	}
	small, most := RoomOf(200), Room{}
	for _, test := range []struct {
		room    *Room
		now     int
		stream  bool
		streams int64
		want    string
	}{
		{&small, 150, false, 132, ""},
		{&small, 151, false, 0, "150 requests are under way, as many as 200 open files allow"},
		{&small, 132, true, 132, ""},
		{&small, 133, true, 133, "131 streams"},
		{&most, requestsAtOnce, true, requestsAtOnce, ""},
		{&most, requestsAtOnce + 1, false, 0, "1001 requests are under way, more than this server serves at once"},
	} {
		test.want = strings.Replace(test.want, "131", strconv.Itoa(small.Streams), 1)
		if got := test.room.full(test.now, test.stream, test.streams); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%d, %v, %d: %q, want %q", test.now, test.stream, test.streams, got, test.want)
		}
	}
}

// pipes is a listener to which somebody always comes.
type pipes struct{ accepted int }

func (l *pipes) Accept() (net.Conn, error) {
	l.accepted++
	c, _ := net.Pipe()
	return c, nil
}

func (l *pipes) Close() error   { return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestRoomyListener: no more connections are accepted than there is room for, one that ends makes room for one, and a
// listener that is full can be closed.
func TestRoomyListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(pipes)
		l := Room{Connections: 2}.Listen(inner)
		var open []net.Conn
		ended := make(chan error)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				open = append(open, c)
			}
		}()
		synctest.Wait()
		if inner.accepted != 2 {
			t.Fatalf("%d connections", inner.accepted)
		}
		open[0].Close()
		open[0].Close() // which frees no other's place
		synctest.Wait()
		if inner.accepted != 3 {
			t.Errorf("after one ended: %d connections", inner.accepted)
		}
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed one: %v", err)
		}
	})
}

// TestRefusalsAreProblems: what is refused before the API is asked has the form that its description promises, and
// names no method as one that works.
func TestRefusalsAreProblems(t *testing.T) {
	s := newSite(t, Options{Token: "right"})
	token := []string{"Authorization", "Bearer right"}
	for _, test := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/api/v1/status", []string{"Authorization", "Bearer wrong"}, 401},
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
		response, err := insider.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		problem := response.Header.Get("Content-Type") == "application/problem+json"
		if response.StatusCode != test.want || problem != strings.HasPrefix(test.path, "/api/") {
			t.Errorf("%s %s: %s as %s; want %d", test.method, test.path, response.Status, response.Header.Get("Content-Type"),
				test.want)
		}
	}
}
