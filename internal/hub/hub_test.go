package hub

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hightide/internal/fail"
)

// server is a hub with one repository, which answers as the real one does: a list of the files, and the files by a
// redirect to another host, in ranges.
type server struct {
	*httptest.Server
	files    map[string]string
	requests atomic.Int64 // of files
	sent     atomic.Int64 // bytes of files
	leaked   atomic.Bool  // the token came to the other host
	whole    bool         // it knows no ranges
}

func newServer(t *testing.T, files map[string]string) *server {
	t.Helper()
	s := &server{files: files}
	stores := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.Header.Get("Authorization") != "" {
			s.leaked.Store(true)
		}
		if s.whole {
			r.Header.Del("Range")
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		counted := &counter{w, &s.sent}
		http.ServeContent(counted, r, name, time.Time{}, strings.NewReader(s.files[name]))
	}))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/api/models/org/model/revision/main":
			list := []map[string]string{}
			for name := range s.files {
				list = append(list, map[string]string{"rfilename": name})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"sha": "abc", "siblings": list})
		case strings.HasPrefix(r.URL.Path, "/org/model/resolve/abc/"):
			// another name of the same machine is another host
			to := strings.Replace(stores.URL, "127.0.0.1", "localhost", 1)
			http.Redirect(w, r, to+strings.TrimPrefix(r.URL.Path, "/org/model/resolve/abc"), http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(stores.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_TOKEN", "secret")
	t.Setenv("HF_HOME", t.TempDir())
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		t.Setenv(name, "")
	}
	return s
}

type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// TestRangesOfTheHub: of a large file what is read is fetched, and no more than a few stretches of it; the token stays
// with the hub.
func TestRangesOfTheHub(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 4<<20) // 64 MiB
	s := newServer(t, map[string]string{"config.json": `{"model_type":"llama"}`, "model.safetensors": large})
	place, err := Open(t.Context(), "org/model", Options{})
	if err != nil || place.Source != "hub" {
		t.Fatalf("%+v, %v", place, err)
	}
	if text, err := fs.ReadFile(place.Files, "config.json"); err != nil || string(text) != s.files["config.json"] {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := fs.Stat(place.Files, "model.safetensors.index.json"); err == nil {
		t.Error("there is no index")
	}
	f, err := place.Files.Open("model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(large)) {
		t.Errorf("%v, %v", info, err)
	}
	for _, at := range []int64{0, 100, firstFetch - 3, 20 << 20, int64(len(large)) - 5} {
		got := make([]byte, 5)
		if _, err := f.(io.ReaderAt).ReadAt(got, at); err != nil || string(got) != large[at:at+5] {
			t.Errorf("at %d: %q, %v", at, got, err)
		}
	}
	if _, err := f.(io.ReaderAt).ReadAt(make([]byte, 6), int64(len(large))-5); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
	if sent := s.sent.Load(); sent > 16<<20 || s.requests.Load() > 8 {
		t.Errorf("%d bytes in %d requests", sent, s.requests.Load())
	}
	if s.leaked.Load() {
		t.Error("the token left the hub")
	}
}

// TestHubWithoutRanges: a small file is read from a hub that sends only whole ones; of a large one that is said.
func TestHubWithoutRanges(t *testing.T) {
	s := newServer(t, map[string]string{"config.json": `{}`, "model.gguf": strings.Repeat("x", 1<<20)})
	s.whole = true
	place, err := Open(t.Context(), "org/model", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(place.Files, "config.json"); err != nil || string(text) != "{}" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := fs.ReadFile(place.Files, "model.gguf"); err == nil || !strings.Contains(err.Error(), "only whole files") {
		t.Errorf("%v", err)
	}
}

// TestWhatTheHubRefuses: one line each, and what to do.
func TestWhatTheHubRefuses(t *testing.T) {
	s := newServer(t, map[string]string{"a-Q4_K_M.gguf": "GGUF", "a-Q8_0.gguf": "GGUF"})
	for name, want := range map[string]struct {
		text string
		code int
	}{
		"org/other":         {"the hub has no org/other at main", fail.ExitBadInput},
		"org/model@v9":      {"the hub has no org/model at v9", fail.ExitBadInput},
		"org/model:Q3":      {"has no GGUF whose name has Q3 in it", fail.ExitBadInput},
		"no such name":      {"there is no file no such name", fail.ExitBadInput},
		"org/model/../etc":  {"", 0},
		"org/model:q4_k_m":  {"", 0},
		"org/model/a-Q.txt": {"", 0},
	} {
		place, err := Open(t.Context(), name, Options{})
		if want.text == "" && err == nil {
			continue // found, or refused when it is read: its name is checked by fs.FS
		}
		if err == nil || !strings.Contains(err.Error(), want.text) || fail.Code(err) != want.code || fail.Hint(err) == "" {
			t.Errorf("%s: %+v, %v", name, place, err)
		}
	}
	place, err := Open(t.Context(), "org/model:q8_0", Options{})
	if err != nil || place.Name != "a-Q8_0.gguf" {
		t.Errorf("%+v, %v", place, err)
	}
	t.Setenv("HF_TOKEN", "")
	if _, err := Open(t.Context(), "org/model", Options{}); err == nil || !strings.Contains(fail.Hint(err), "HF_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	s.Close()
	if _, err := Open(t.Context(), "org/model", Options{}); err == nil || fail.Code(err) != fail.ExitEnvironment ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("nobody answers: %v", err)
	}
	for by, option := range map[string]bool{"--offline": true, "HF_HUB_OFFLINE": false, "TRANSFORMERS_OFFLINE": false} {
		if !option {
			t.Setenv(by, "1")
		}
		_, err := Open(t.Context(), "org/model", Options{Offline: option})
		if err == nil || fail.Code(err) != fail.ExitBadInput || !strings.Contains(err.Error(), "the hub was not asked ("+by+")") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("offline by %s: %v", by, err)
		}
		if !option {
			t.Setenv(by, "")
		}
	}
}

// TestCacheBeforeTheHub: files that were downloaded are used; where only a configuration was, the hub is asked for the
// rest, and what is here does where that fails.
func TestCacheBeforeTheHub(t *testing.T) {
	s := newServer(t, map[string]string{"config.json": `{}`, "model.safetensors": "x"})
	dir := filepath.Join(os.Getenv("HF_HOME"), "hub", "models--org--model")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := func(o Options) string {
		place, err := Open(t.Context(), "org/model", o)
		if err != nil {
			return err.Error()
		}
		return place.Source
	}
	write("refs/main", "abc")
	write("snapshots/abc/config.json", "{}")
	if got := source(Options{}); got != "hub" {
		t.Errorf("a configuration alone: %s", got)
	}
	if got := source(Options{Offline: true}); got != "cache" {
		t.Errorf("the same, offline: %s", got)
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	if got := source(Options{}); got != "cache" {
		t.Errorf("the same, with HF_HUB_OFFLINE: %s", got)
	}
	t.Setenv("HF_HUB_OFFLINE", "0")
	write("snapshots/abc/model.safetensors", "x")
	if got := source(Options{}); got != "cache" {
		t.Errorf("with weights: %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "snapshots/abc/model.safetensors")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := source(Options{}); got != "cache" {
		t.Errorf("nobody answers: %s", got)
	}
	refuse := Options{Offline: true, MayRead: func(path string) error { return fmt.Errorf("%s may not be read", path) }}
	if got := source(refuse); !strings.Contains(got, "may not be read") {
		t.Errorf("files that may not be read: %s", got)
	}
}
