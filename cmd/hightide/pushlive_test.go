package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/server"
	"hightide/internal/store"
)

// liveSession is a server whose address stays the same, and anna's machine, which sends what it records.
type liveSession struct {
	*teamSession
	anna           *teamSession
	keys           map[string]string
	python, script string
}

func startLive(t *testing.T) *liveSession {
	t.Helper()
	s := &liveSession{teamSession: startTeam(t, pushFile), keys: map[string]string{}, python: pythonPath(t)}
	at := s.served.at("")
	write(t, s.dir, "team.toml", strings.Replace(pushFile, "127.0.0.1:0", strings.TrimPrefix(at, "http://"), 1))
	for _, who := range []string{"anna", "bob", "carol", "root"} {
		s.keys[who] = s.key(who, "--may", "push")
	}
	s.anna = s.machine(s.keys["anna"])
	s.anna.env = append(s.anna.env, "HIGHTIDE_SERVER="+at, "HIGHTIDE_PROJECT=ranker")
	s.script = write(t, s.anna.dir, "cust-17.py", "import os, time\nheld = bytearray(9 << 20)\n"+
		"while not os.path.exists('go'): time.sleep(0.01)\n")
	return s
}

// run begins a run that goes on until the file "go" is there.
func (s *liveSession) run(name string) *exec.Cmd {
	s.t.Helper()
	c := s.anna.command("run", "--push", "--name", name, "--", s.python, s.script)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() })
	return c
}

// row is how the server lists a run to somebody; an empty one: it does not.
func (s *liveSession) row(who, name string) (row store.Run) {
	s.t.Helper()
	status, text := s.as(s.keys[who], http.MethodGet, "/api/v1/runs?search="+name, "")
	var list server.RunList
	if status != 200 || json.Unmarshal([]byte(text), &list) != nil || len(list.Runs) == 0 {
		return row
	}
	return list.Runs[0]
}

// reaches waits until a run is in a state for longer than it was.
func (s *liveSession) reaches(name string, state store.State, beyond int64) (row store.Run) {
	s.t.Helper()
	waitFor(s.t, func() bool {
		row = s.row("bob", name)
		return row.State == state && row.Duration > beyond
	})
	return row
}

// TestRunIsSeenElsewhere: a run of another machine is listed and followed while it is recorded, without what the
// project does not want, by those of its project. A server that is killed loses nothing of it. Its end is that of the
// whole run.
func TestRunIsSeenElsewhere(t *testing.T) {
	s := startLive(t)
	run := s.run("seen")
	first := s.reaches("seen", store.Running, 0)
	if row := s.row("carol", "seen"); row.ID != "" {
		t.Errorf("another project sees %+v", row)
	}
	if status, _ := s.as(s.keys["carol"], "GET", "/api/v1/runs/"+first.ID+"/live", ""); status != 404 {
		t.Errorf("another project follows: %d", status)
	}
	events := s.follow(first.ID)
	for _, want := range []string{"state", "series", "samples", "samples"} {
		if !events.reach(want) {
			t.Fatalf("no %s; after %q", want, events.said)
		}
	}
	_, text := s.as(s.keys["bob"], "GET", "/api/v1/runs/"+first.ID+"/report", "")
	host, _ := os.Hostname()
	for _, secret := range []string{"cust-17", s.anna.dir, `"` + host + `"`} {
		if strings.Contains(text+events.said, secret) {
			t.Errorf("%s has left the machine", secret)
		}
	}
	if !strings.Contains(text, "***.py") {
		t.Errorf("the report is %.300s", text)
	}
	before := s.reaches("seen", store.Running, first.Duration)
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	s.start()
	s.reaches("seen", store.Running, before.Duration+1e9)
	events = s.follow(first.ID)
	for range 3 {
		if !events.reach("samples") {
			t.Fatalf("after the server was killed: %q", events.said)
		}
	}
	write(t, s.anna.dir, "go", "")
	if err := run.Wait(); err != nil {
		t.Error(err)
	}
	if !events.reach("end") || !strings.Contains(events.last, `"finished"`) {
		t.Errorf("it ends with %s", events.last)
	}
	last := s.reaches("seen", store.Finished, 0)
	if _, text := s.as(s.keys["bob"], "GET", "/api/v1/runs/"+last.ID+"/report", ""); !strings.Contains(text, "***.py") {
		t.Errorf("in the end: %.300s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", "*", "live", "*")); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
	if left, _ := filepath.Glob(filepath.Join(s.anna.dir, "data", "push", ".live*")); len(left) > 0 {
		t.Errorf("left on the machine: %s", left)
	}
	if told := s.must("audit"); strings.Count(told, "/live/") == 0 || strings.Count(told, "/live/") > 4 {
		t.Errorf("the log tells %s", told)
	}
}

// TestKilledRunIsCutOff: of a run whose machine died the others see what came, as cut off. What is deleted is gone.
func TestKilledRunIsCutOff(t *testing.T) {
	s := startLive(t)
	run := s.run("killed")
	row := s.reaches("killed", store.Running, 0)
	events := s.follow(row.ID)
	if !events.reach("samples") {
		t.Fatal(events.said)
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	s.silent(row.ID)
	s.reaches("killed", store.CutOff, 0)
	if !events.reach("end") || !strings.Contains(events.last, `"cut off"`) {
		t.Errorf("it ends with %s", events.last)
	}
	if status, text := s.as(s.keys["bob"], "GET", "/api/v1/runs/"+row.ID+"/report", ""); status != 200 {
		t.Errorf("its report: %d %.300s", status, text)
	}
	if status, text := s.as(s.keys["root"], "DELETE", "/api/v1/runs/"+row.ID, ""); status != 200 {
		t.Errorf("deleting: %d %s", status, text)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", "*", "live", "*")); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// silent has the database believe that nothing was heard of a run for long.
func (s *liveSession) silent(id string) {
	s.t.Helper()
	db, err := sql.Open("postgres", strings.TrimPrefix(s.env[0], "HIGHTIDE_STORE="))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE recorded SET heard = now() - interval '1 hour' WHERE id = $1", id); err != nil {
		s.t.Fatal(err)
	}
}

// eventStream is what somebody follows.
type eventStream struct {
	lines *bufio.Scanner
	said  string
	last  string // the data of the newest
}

// follow has bob look at a run.
func (s *liveSession) follow(id string) *eventStream {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.served.at("/api/v1/runs/"+id+"/live"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.keys["bob"])
	response, err := s.served.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &eventStream{lines: lines}
}

// reach reads up to the next event of a kind.
func (e *eventStream) reach(kind string) bool {
	for e.lines.Scan() {
		line := e.lines.Text()
		e.said += line + "\n"
		if line == "event: "+kind && e.lines.Scan() {
			e.last = e.lines.Text()
			return true
		}
	}
	return false
}

// TestShownAddressIsThere: whoever opens the address of a run as soon as it is printed sees the run.
func TestShownAddressIsThere(t *testing.T) {
	s := startLive(t)
	c := s.anna.command("run", "--push", "--", s.python, s.script)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines, found := bufio.NewScanner(said), false
	for !found && lines.Scan() {
		_, run, there := strings.Cut(lines.Text(), "/runs/")
		if found = there; there {
			if status, text := s.as(s.keys["anna"], "GET", "/api/v1/runs/"+run, ""); status != 200 {
				t.Errorf("%q: %d %s", lines.Text(), status, text)
			}
		}
	}
	if !found {
		t.Error("no address")
	}
	write(t, s.anna.dir, "go", "")
	_, _ = io.Copy(io.Discard, said)
}
