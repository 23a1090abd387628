package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCompressed: a large answer of JSON is compressed for who takes that, and comes out as it was; a stream of
// events is sent on at once.
func TestCompressed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, status := 0, 0
		_, _ = fmt.Sscanf(r.URL.Path, "/api/%d/%d", &size, &status)
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.WriteHeader(status)
		if size > 0 {
			_, _ = io.WriteString(w, strings.Repeat("a", size))
		}
		if status == http.StatusAccepted {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		path   string
		status int
		zipped bool
	}{
		{fmt.Sprintf("/api/%d/200?type=application/json", largeAnswer), 200, true},
		{fmt.Sprintf("/api/%d/404?type=application/json", largeAnswer+9), 404, true},
		{fmt.Sprintf("/api/%d/200?type=application/json", largeAnswer-1), 200, false},
		{fmt.Sprintf("/api/%d/200?type=text/csv", largeAnswer), 200, false},
		{"/api/0/204?type=", 204, false},
	} {
		answer, err := server.Client().Get(server.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		var size int
		_, _ = fmt.Sscanf(c.path, "/api/%d", &size)
		if err != nil || answer.StatusCode != c.status || answer.Uncompressed != c.zipped || len(text) != size {
			t.Errorf("%s: %v, %s, compressed %v, %d bytes", c.path, err, answer.Status, answer.Uncompressed, len(text))
		}
	}
	for _, path := range []string{"/api/5/202?type=text/event-stream", "/api/0/202?type=text/event-stream"} {
		answer, err := server.Client().Get(server.URL + path)
		if err != nil || answer.StatusCode != http.StatusAccepted {
			t.Fatal(path, answer, err)
		}
		_ = answer.Body.Close()
	}
}
