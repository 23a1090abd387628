package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hightide/internal/store"
)

// What one request may take of the server: time by time that nothing moves and by how slowly it moves, never as a
// whole, as a stream of events or the upload of a large file may go on for hours.

const (
	stalled  = 10 * time.Second // who takes nothing, or sends nothing, for so long is let go
	patience = time.Minute      // how long a body may come more slowly than slowest
	slowest  = 1 << 10          // bytes a second
	bodySize = 1 << 20          // bytes of a request; uploads have their own limit
)

// bounded limits what a request may take. What it gives is to be served in place of the request: that one keeps the
// body that net/http knows, which else would not see that a body was left unread, and take its rest for the next
// request.
func (s *Server) bounded(w http.ResponseWriter, r *http.Request) (*timely, *http.Request) {
	t := &timely{ResponseWriter: w, control: http.NewResponseController(w), status: http.StatusOK}
	if r.Body == nil || r.Body == http.NoBody {
		return t, r
	}
	of := *r
	body := &timelyBody{ReadCloser: r.Body, control: t.control, began: time.Now()}
	t.body = body
	body.wait() // also for net/http, which takes what a handler leaves
	if of.Body = body; !isUpload(r) {
		of.Body = http.MaxBytesReader(w, body, mostOf(r))
	}
	return t, &of
}

// mostOf is how many bytes the body of a request may have that is no upload.
func mostOf(r *http.Request) int64 {
	if r.Method == http.MethodPost && r.URL.Path == "/api/v1/plan" {
		return sentBytes
	}
	if isPart(r) {
		return store.PartBytes + 1
	}
	return bodySize
}

func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/api/v1/snapshots"
}

// timely is an answer that ends where the client does not take it.
type timely struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	body    *timelyBody // of the request; nil: it has none
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
	began   time.Time
	got     int64
}

func (b *timelyBody) Read(p []byte) (int, error) {
	b.wait()
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	if errors.Is(err, io.EOF) { // from here on the connection is only watched for its end
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// wait sets how long is waited for the next piece.
func (b *timelyBody) wait() {
	slow := patience + time.Duration(b.got/slowest)*time.Second - time.Since(b.began)
	_ = b.control.SetReadDeadline(time.Now().Add(min(stalled, slow)))
}

// auditPath is how much is told of a path, which may have 64 KiB.
const auditPath = 200

// audit tells of a request that asked for a change, whether it was let or not, and who asked. Nothing of its query or
// body is told, which may hold a secret.
func (s *Server) audit(w *timely, r *http.Request, known caller) {
	if s.options.Audit == nil || reads(r) || r.Method == http.MethodOptions ||
		w.status == http.StatusOK && (isReport(r) || isPart(r) && !strings.HasSuffix(r.URL.Path, "/live/0")) {
		// of a file and of a stream the beginning is told, and of a file the end
		return
	}
	if person, is := forgets(r); is {
		s.options.Audit(forgetAct(r, known, person, w.status))
		return
	}
	s.options.Audit(store.Act{Time: time.Now(), Who: cmp.Or(known.name, "nobody"), From: r.RemoteAddr,
		What: fmt.Sprintf("%.20s %q", r.Method, clip(r.URL.Path, auditPath)), Status: w.status})
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
