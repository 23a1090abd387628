package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hightide/internal/testkit"
)

// nextMigration is what a next version may do to the schema: it changes the table that everybody reads.
const nextMigration = `-- +goose Up
ALTER TABLE recorded ADD COLUMN next TEXT NOT NULL DEFAULT '';
UPDATE recorded SET next = 'seen';
`

// TestUpgradeUnderReaders: while a next version brings the schema forward and takes over, no reader gets an error: the
// two serve one socket, which outlasts both. A backup that reads the table meanwhile holds up neither for long. A
// restart on the socket refuses nobody.
func TestUpgradeUnderReaders(t *testing.T) {
	s := &teamSession{session: newSession(t)}
	next := nextVersion(t)
	address := testkit.StartPostgres(t).New(t)
	s.env = append(s.env, "HIGHTIDE_STORE="+address, "HIGHTIDE_OBJECTS=file://"+t.TempDir())
	socket, at := keptSocket(t)
	s.config = write(t, s.dir, "team.toml", strings.Replace(teamFile, "127.0.0.1:0", at, 1)+
		"[rates]\nrequests = 10000\n")
	s.must("run", "--quiet", "--tag", "project=ranker", "--name", "shown", "--", "/bin/true")
	old := s.serveOn(socket, "hightide")
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	readers := s.readers("http://"+at, s.key("bob", "--may", "read"))
	readers.more(20)

	backup, err := db.Begin() // which reads for as long as it takes
	if err == nil {
		_, err = backup.Exec("LOCK TABLE recorded IN ACCESS SHARE MODE")
	}
	if err != nil {
		t.Fatal(err)
	}
	upgraded := make(chan *uiProcess)
	go func() { upgraded <- s.serveOn(socket, next) }()
	waitFor(t, func() (waits bool) {
		_ = db.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND " +
			"wait_event_type = 'Lock' AND query LIKE '%ADD COLUMN next%')").Scan(&waits)
		return waits
	})
	readers.more(40) // by the old one, while the migration waits and comes again
	if err := backup.Rollback(); err != nil {
		t.Fatal(err)
	}
	now := <-upgraded
	readers.more(40) // by both
	ends(t, old)
	readers.more(40)
	seen := ""
	if err := db.QueryRow("SELECT next FROM recorded LIMIT 1").Scan(&seen); err != nil || seen != "seen" {
		t.Errorf("the schema is not that of the next version: %q %v", seen, err)
	}

	ends(t, now) // a restart: who comes meanwhile waits in the socket
	now = s.serveOn(socket, next)
	readers.more(40)
	readers.end()
	ends(t, now)
}

// nextVersion builds this program with one more migration.
func nextVersion(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "internal", "store", "migrations")
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(folder, fmt.Sprintf("%05d_next.sql", len(files)+1)): write(t, dir, "next.sql", nextMigration)}})
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, "hightide-next")
	by := write(t, dir, "overlay.json", string(overlay))
	c := exec.Command("go", "build", "-trimpath", "-overlay", by, "-o", built, "./cmd/hightide")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return built
}

// keptSocket is a socket that a test keeps, as systemd does, and its address.
func keptSocket(t *testing.T) (*os.File, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, listener.Addr().String()
}

// serveOn starts a server on a socket that it is handed.
func (s *teamSession) serveOn(socket *os.File, program string) *uiProcess {
	c := exec.Command("/bin/sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"`, program, "serve", "--config",
		s.config)
	like := s.command()
	c.Dir, c.Env, c.ExtraFiles = like.Dir, like.Env, []*os.File{socket}
	return s.serveBy(c)
}

// ends asks a server to end, and waits for it.
func ends(t *testing.T, server *uiProcess) {
	t.Helper()
	if err := server.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = server.process.Wait() // it says by which signal
}

// readers ask without a pause, some by a new connection each time.
type readers struct {
	t      testing.TB
	read   atomic.Int64
	over   chan struct{}
	asking sync.WaitGroup
}

func (s *teamSession) readers(at, key string) *readers {
	r := &readers{t: s.t, over: make(chan struct{})}
	for i, path := range []string{"/api/v1/runs", "/api/v1/runs/shown/report", "/api/v1/trend", "/api/v1/runs/shown"} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		r.asking.Go(func() {
			for {
				select {
				case <-r.over:
					return
				default:
					r.ask(client, key, at+path)
				}
			}
		})
	}
	s.t.Cleanup(r.end)
	return r
}

func (r *readers) ask(client *http.Client, key, address string) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		r.t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+key)
	began := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		r.t.Errorf("after %v: %v", time.Since(began), err)
		return
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		r.t.Errorf("%s, after %v: %d %s %v", address, time.Since(began), answer.StatusCode, text, err)
		return
	}
	r.read.Add(1)
}

// more waits until so much more was read.
func (r *readers) more(n int64) {
	r.t.Helper()
	want := r.read.Load() + n
	waitFor(r.t, func() bool { return r.read.Load() >= want || r.t.Failed() })
}

func (r *readers) end() {
	select {
	case <-r.over:
	default:
		close(r.over)
	}
	r.asking.Wait()
}
