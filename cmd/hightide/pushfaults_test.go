package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/testkit"
)

// TestPushSurvivesKills: the server, or its database, is killed in the middle of an upload. Nobody sees half of the
// run; the next push goes on, and every byte is there. With -short each is killed once.
func TestPushSurvivesKills(t *testing.T) {
	database := testkit.StartPostgres(t)
	s := &teamSession{session: newSession(t)}
	objects := t.TempDir()
	s.env = append(s.env, "HIGHTIDE_STORE="+database.New(t), "HIGHTIDE_OBJECTS=file://"+objects)
	s.config = write(t, s.dir, "team.toml", teamFile)
	s.start()
	at := s.served.at("")
	write(t, s.dir, "team.toml", strings.Replace(teamFile, "127.0.0.1:0", strings.TrimPrefix(at, "http://"), 1))
	key := s.key("anna", "--may", "push")
	anna := s.machine(key)
	anna.env = append(anna.env, "HIGHTIDE_SERVER="+at, "HIGHTIDE_PROJECT=ranker")
	for killed, kill := range map[string]func(){
		"server":   func() { _ = s.served.process.Process.Kill(); _ = s.served.process.Wait() },
		"database": func() { database.Kill(t) },
	} {
		for n := range testkit.Faults(5) {
			if n > 0 && testing.Short() {
				break
			}
			name := killed + strconv.Itoa(n)
			anna.both("run", "--quiet", "--name", name, "--", "/bin/sh", "-c",
				`head -c 30000000 /dev/urandom > "$HIGHTIDE_OUT/big.bin"; cp "$HIGHTIDE_OUT/big.bin" kept.bin`)
			push := anna.cutOff(objects, name, kill)
			if killed == "database" {
				database.Start(t)
			} else {
				s.start()
			}
			_ = push.Wait() // it may go on by itself
			if push.ProcessState.Success() {
				t.Logf("%s: the push went on by itself", name)
			} else if _, text := s.as(key, "GET", "/api/v1/runs?search="+name, ""); strings.Contains(text, name) {
				t.Errorf("%s: half of a run is seen: %s", name, text)
			}
			waitFor(t, func() bool { return anna.command("push", name).Run() == nil })
			kept, err := os.ReadFile(filepath.Join(anna.dir, "kept.bin"))
			if err != nil {
				t.Fatal(err)
			}
			if status, text := s.as(key, "GET", "/api/v1/runs/"+name+"/artifacts/big.bin", ""); status != 200 ||
				!bytes.Equal([]byte(text), kept) {
				t.Errorf("%s: %d and %d bytes of %d", name, status, len(text), len(kept))
			}
		}
	}
	if runs := s.must("ls", "--json"); strings.Count(runs, `"finished"`) < 2 || strings.Contains(runs, `"damaged"`) {
		t.Errorf("in the end: %s", runs)
	}
}

// TestDatabaseAway: who has a good key is told to try again while the database is away, and not that the key is unknown.
func TestDatabaseAway(t *testing.T) {
	database := testkit.StartPostgres(t)
	s := &teamSession{session: newSession(t)}
	s.env = append(s.env, "HIGHTIDE_STORE="+database.New(t), "HIGHTIDE_OBJECTS=file://"+t.TempDir())
	s.config = write(t, s.dir, "team.toml", teamFile)
	s.start()
	key := s.key("anna", "--may", "push")
	ask := func() int { status, _ := s.as(key, "GET", "/api/v1/runs", ""); return status }
	if status := ask(); status != 200 {
		t.Fatalf("with the database: %d", status)
	}
	database.Kill(t)
	for range 3 {
		if status := ask(); status != 503 {
			t.Errorf("while the database is away: %d", status)
		}
	}
	database.Start(t)
	waitFor(t, func() bool { return ask() == 200 })
	if status, _ := s.as("x"+key, "GET", "/api/v1/runs", ""); status != 401 {
		t.Errorf("a key that is not known: %d", status)
	}
}

// cutOff begins to push a run, and kills something once two parts of it have arrived.
func (s *teamSession) cutOff(objects, name string, kill func()) *exec.Cmd {
	s.t.Helper()
	arrived := func() (n int) {
		_ = filepath.WalkDir(objects, func(_ string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	before := arrived()
	push := s.command("push", name)
	if err := push.Start(); err != nil {
		s.t.Fatal(err)
	}
	waitFor(s.t, func() bool { return arrived() >= before+2 })
	kill()
	return push
}

// TestPushOutlastsAway: a server that is away for some requests in the middle of an upload is waited for, and one whose
// answer is lost on the way has shown the run once.
func TestPushOutlastsAway(t *testing.T) {
	s := startTeam(t, teamFile)
	to, err := url.Parse(s.served.at(""))
	if err != nil {
		t.Fatal(err)
	}
	refused, lost := 0, 0
	between := httputil.NewSingleHostReverseProxy(to)
	between.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.Method == http.MethodPost && lost == 0 {
			lost++
			return errors.New("the answer is lost")
		}
		return nil
	}
	between.ErrorLog = log.New(io.Discard, "", 0)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/parts/") && refused < 4 {
			refused++
			http.Error(w, "it is being started again", http.StatusServiceUnavailable)
			return
		}
		r.Host = to.Host
		between.ServeHTTP(w, r)
	}))
	defer front.Close()
	anna := s.machine(s.key("anna", "--may", "push"))
	anna.both("run", "--quiet", "--name", "patient", "--", "/bin/true")
	said := anna.both("push", "patient", "--server", front.URL, "--project", "ranker")
	if refused != 4 || lost != 1 || !strings.Contains(said, "sent into ranker") {
		t.Errorf("%d refused, %d answers lost: %s", refused, lost, said)
	}
	if runs := s.must("ls", "--json"); strings.Count(runs, `"finished"`) != 1 {
		t.Errorf("in the end: %s", runs)
	}
}
