package server

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// What one request may take of the server: time by time that nothing moves, never as a whole, as a stream of events or the
// upload of a large file may go on for hours.

const (
	stalled  = 10 * time.Second // who takes nothing, or sends nothing, for so long is let go
	bodySize = 1 << 20          // bytes of a request; uploads have their own limit
)

// bounded limits what a request may take.
func (s *Server) bounded(w http.ResponseWriter, r *http.Request) *timely {
	t := &timely{ResponseWriter: w, control: http.NewResponseController(w), status: http.StatusOK}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &timelyBody{r.Body, t.control}
		if !isUpload(r) {
			r.Body = http.MaxBytesReader(w, r.Body, bodySize)
		}
	}
	return t
}

func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/api/v1/snapshots"
}

// timely is an answer that ends where the client does not take it.
type timely struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
}

// Unwrap has http.ResponseController find what it needs.
func (t *timely) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *timely) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

func (t *timely) Write(p []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(stalled)) // a test's recorder has none
	return t.ResponseWriter.Write(p)
}

// timelyBody is a request that fails where the client does not send it on.
type timelyBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timelyBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(stalled))
	n, err := b.ReadCloser.Read(p)
	if err != nil { // from here on the connection is only watched for its end
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// audit tells of a request that asked for a change, whether it was let or not. Nothing of its query or body is told, which may hold
// a token or a command with one.
func (s *Server) audit(w *timely, r *http.Request) {
	if s.options.Audit == nil || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	s.options.Audit(fmt.Sprintf("%s %s %s %q: %d", time.Now().UTC().Format(time.RFC3339), r.RemoteAddr, r.Method, r.URL.Path, w.status))
}
