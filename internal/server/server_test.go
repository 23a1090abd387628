package server

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// right is the token of the servers of tests.
const right = "right"

// insider asks with the token, where a request says nothing else of who asks.
var insider = &http.Client{Transport: withToken{}}

type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, said := r.Header["Authorization"]; !said {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+right)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// site is a server over a store in memory, listening on the loopback.
type site struct {
	*httptest.Server
	t     *testing.T
	store *store.Memory
	made  *Server
}

func newSite(t *testing.T, o Options) *site {
	t.Helper()
	return siteOf(t, new(store.Memory), o)
}

func siteOf(t *testing.T, kept *store.Memory, o Options) *site {
	t.Helper()
	o.Token = cmp.Or(o.Token, right)
	made, handler := New(&engine.Engine{DataDir: t.TempDir(), Store: kept}, o)
	s := &site{httptest.NewServer(handler), t, kept, made}
	t.Cleanup(s.stop)
	return s
}

// stop ends the server, and may be called again.
func (s *site) stop() {
	s.CloseClientConnections()
	s.Close()
	s.made.Close()
}

// begin records a run with one process, one curve and so many readings of it.
func (s *site) begin(name string, readings int) store.Writer {
	s.t.Helper()
	w, err := s.store.Create(mem.RunInfo{Name: name, Verb: "run", Label: mem.Measured,
		Command: []string{"python", "train.py"}, StartMono: 1000, StartWall: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(w, mem.Process{ID: 1, PID: 4711, Role: "main", Start: 1000},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured})
	for i := range readings {
		s.write(w, reading(i))
	}
	return w
}

// reading is the i-th of the curve of begin.
func reading(i int) mem.Samples {
	return mem.Samples{Series: 1, Times: []int64{1000 + int64(i)*1e8}, Values: []int64{1<<20 + int64(i)}}
}

func (s *site) write(w store.Writer, frames ...mem.Frame) {
	s.t.Helper()
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		s.t.Fatal(err)
	}
}

// finish ends a recording in good order.
func (s *site) finish(w store.Writer) {
	s.t.Helper()
	s.write(w, mem.End{Time: 2e9, ExitCode: mem.Some(0), Reason: "exit"})
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request and gives the status and the body.
func (s *site) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := insider.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// get asks for JSON that must come.
func (s *site) get(path string, into any) {
	s.t.Helper()
	status, text := s.ask(http.MethodGet, path, "")
	if status != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("GET %s: %v in %s", path, err, text)
	}
}

// received is one server-sent event.
type received struct{ name, data, id string }

// watching is what a viewer gets.
type watching struct {
	t    *testing.T
	body io.ReadCloser
	text *bufio.Reader
}

// watch opens a stream of events.
func (s *site) watch(path, last string) *watching {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := insider.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("GET %s: %s %s", path, response.Status, response.Header.Get("Content-Type"))
	}
	return &watching{s.t, response.Body, bufio.NewReader(response.Body)}
}

// next is the next event; false: the stream has ended.
func (s *watching) next() (e received, ok bool) {
	for {
		line, err := s.text.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case err != nil:
			return e, false
		case line == "" && e.name != "":
			return e, true
		case key == "event":
			e.name = value
		case key == "data":
			e.data = value
		case key == "id":
			e.id = value
		}
	}
}

// until reads up to an event of that name, which must come, and gives it and the names of those before.
func (s *watching) until(name string) (received, []string) {
	s.t.Helper()
	var before []string
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended after %v, without %s", before, name)
		}
		if e.name == name {
			return e, before
		}
		before = append(before, e.name)
	}
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}
