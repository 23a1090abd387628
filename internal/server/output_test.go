package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// TestOutput: what a program prints is told while it runs and can be read in parts, at whose edges no character is
// torn.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	kept, err := store.Open(store.Place{Store: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	made, handler := New(&engine.Engine{DataDir: dir, Store: kept}, Options{Token: right})
	s := &site{httptest.NewServer(handler), t, nil, made}
	t.Cleanup(s.stop)
	w, err := kept.Create(mem.RunInfo{Verb: "run", Command: []string{"x"}, StartMono: 1, StartWall: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "scratch", w.ID(), engine.OutputFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	v := s.watch("/api/v1/runs/last/live", "")
	v.until("processes")
	heard, saying := make(chan struct{}), make(chan error)
	go func() { // again and again: what was said before the server listened is not told
		defer close(saying)
		for {
			select {
			case <-heard:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if _, err := file.WriteString("\x1b[31mépisode\n"); err != nil {
				saying <- err
				return
			}
		}
	}()
	if e, _ := v.until("output"); !strings.Contains(decode[printed](t, e.data).Text, "\x1b[31mépisode\n") {
		t.Errorf("told %s", e.data)
	}
	close(heard)
	if err := <-saying; err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ query, want string }{
		{"?from=0&limit=100", "\x1b[31mabcdé"}, {"?from=0&limit=10", "\x1b[31mabcd"}, {"?from=-2", "é"}, {"?from=99", ""},
	} {
		if err := os.WriteFile(path, []byte("\x1b[31mabcdé"), 0o600); err != nil {
			t.Fatal(err)
		}
		var got Output
		s.get("/api/v1/runs/last/output"+test.query, &got)
		if got.Text != test.want || got.Size != 11 || got.Next != got.At+int64(len(test.want)) {
			t.Errorf("%s: %+v; want %q", test.query, got, test.want)
		}
	}
	var listed Artifacts
	if s.get("/api/v1/runs/last/artifacts", &listed); len(listed.Artifacts) != 1 || listed.Artifacts[0].Name != engine.OutputFile {
		t.Errorf("while it is written it is not listed: %+v", listed)
	}
	lines := strings.Repeat("\x1b[32mépisode\n", 40000) // of which rows are told block by block, and of what came since
	if err := os.WriteFile(path, []byte(lines[:len(lines)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	var rows OutputRows
	s.get("/api/v1/runs/last/output/rows", &rows)
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	s.get("/api/v1/runs/last/output/rows?from=1", &rows)
	if rows.Rows != 40001 || rows.Size != int64(len(lines)) || rows.Seen != rows.Size || rows.From != 1 ||
		len(rows.At) != 2 || rows.Styles["2"] != "\x1b[32m" || rows.Row[0] != rows.At[0]/14 {
		t.Errorf("rows %+v", rows)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if status, text := s.ask(http.MethodGet, "/api/v1/runs/nothing/output", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
}
