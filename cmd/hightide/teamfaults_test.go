package main

import (
	"bytes"
	"database/sql"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"hightide/internal/testkit"
)

// faultyTeam is a server of a team, of which every part can fail.
type faultyTeam struct {
	*teamSession
	database                       *testkit.Postgres
	rows                           string  // the database, without a wire
	asked                          *sql.DB // likewise
	objects                        *objectStore
	toDatabase, toObjects, toServe *testkit.Wire
	disks                          []string // of the database, the objects and the server; empty: none can be mounted here
	anna                           *teamSession
	annas, root                    string // keys
}

// disk mounts a file system of its own, where the tests run as root.
func (f *faultyTeam) disk(t *testing.T, dir, size string) {
	if err := testkit.MountSmall(t, dir, size); err != nil {
		t.Logf("full disks are left out: a small file system cannot be mounted here: %v", err)
		return
	}
	f.disks = append(f.disks, dir)
}

func startFaulty(t *testing.T) *faultyTeam {
	f := &faultyTeam{}
	f.database = testkit.StartPostgresOn(t, func(dir string) { f.disk(t, dir, "400m") })
	folder := t.TempDir()
	f.disk(t, folder, "200m")
	f.objects = startObjects(t, folder)
	f.toDatabase = testkit.NewWire(t, "unix", f.database.Socket())
	f.toObjects = testkit.NewWire(t, "tcp", f.objects.address)
	f.teamSession = &teamSession{session: newSession(t)}
	f.rows = f.database.New(t)
	asked, err := sql.Open("postgres", f.rows)
	if err != nil {
		t.Fatal(err)
	}
	f.asked = asked
	t.Cleanup(func() { asked.Close() })
	if err := os.Mkdir(filepath.Join(f.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.disk(t, filepath.Join(f.dir, "data"), "100m")
	f.env = append(f.env, "HIGHTIDE_STORE="+f.database.Over(f.rows, f.toDatabase), "HIGHTIDE_OBJECTS="+over(f.toObjects),
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret")
	f.config = write(t, f.dir, "team.toml", teamFile)
	f.start()
	address := strings.TrimPrefix(f.served.at(""), "http://")
	write(t, f.dir, "team.toml", strings.Replace(teamFile, "127.0.0.1:0", address, 1))
	f.toServe = testkit.NewWire(t, "tcp", address)
	f.annas, f.root = f.key("anna", "--may", "push"), f.key("root", "--may", "admin")
	f.anna = f.machine(f.annas)
	f.anna.env = append(f.anna.env, "HIGHTIDE_SERVER=http://"+f.toServe.Address().String(), "HIGHTIDE_PROJECT=ranker")
	return f
}

// fault is what happens to a team, and what ends it. Nobody else does anything about it.
type fault struct {
	name         string
	strike, mend func()
}

func (f *faultyTeam) faults(t *testing.T) []fault {
	all := []fault{
		{"the server is killed", func() { _ = f.served.process.Process.Kill(); _ = f.served.process.Wait() }, f.start},
		{"the database is killed", func() { f.database.Kill(t) }, func() { f.database.Start(t) }},
		{"the object store is killed", f.objects.kill, func() { f.objects.start(t) }},
	}
	for name, wire := range map[string]*testkit.Wire{"from the server to the database": f.toDatabase,
		"from the server to the object store": f.toObjects, "from the client to the server": f.toServe} {
		all = append(all, fault{"the network is cut " + name, wire.Cut, wire.Mend},
			fault{"the network is silent " + name, wire.Silence, wire.Mend})
	}
	if len(f.disks) == 3 {
		for i, name := range []string{"the database", "the object store", "the server"} {
			all = append(all, fault{"the disk of " + name + " is full", func() { testkit.Fill(t, f.disks[i]) }, func() {
				testkit.Empty(t, f.disks[i])
				f.database.Restart(t)
			}})
		}
	}
	return all
}

// get asks the server itself; 0: it does not answer.
func (f *faultyTeam) get(method, path string) (int, string) {
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.served.at("/api/v1"+path), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.root)
	answer, err := f.served.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, text.String()
}

// seen says whether a run is seen, and checks that it is whole then.
func (f *faultyTeam) seen(name string, kept []byte) bool {
	f.t.Helper()
	status, text := 0, ""
	waitFor(f.t, func() bool { status, text = f.get("GET", "/runs/"+name); return status == 200 || status == 404 })
	if status == 404 || strings.Contains(text, `"running"`) {
		return false
	}
	waitFor(f.t, func() bool {
		status, text = f.get("GET", "/runs/"+name+"/artifacts/big.bin")
		return status == 200 || status == 404
	})
	if text != string(kept) {
		f.t.Errorf("half of run %s is seen: %d, %d bytes of %d", name, status, len(text), len(kept))
	}
	return true
}

// during strikes while something is done, once arrived says so, and mends what is broken soon.
func (f *faultyTeam) during(of fault, arrived func() bool, done <-chan bool) {
	for ended := false; !ended && !arrived(); {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	of.strike()
	time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Second)))) // as long as it lasts
	of.mend()
}

// upload sends a run while something fails.
func (f *faultyTeam) upload(of fault, name string) (kept []byte) {
	t := f.t
	f.anna.both("run", "--quiet", "--name", name, "--", "/bin/sh", "-c",
		`head -c 20000000 /dev/urandom > "$HIGHTIDE_OUT/big.bin"; cp "$HIGHTIDE_OUT/big.bin" kept.bin`)
	kept, err := os.ReadFile(filepath.Join(f.anna.dir, "kept.bin"))
	if err != nil {
		t.Fatal(err)
	}
	push, told := f.anna.command("push", name), new(sentences)
	push.Stdout, push.Stderr = told, told
	if err := push.Start(); err != nil {
		t.Fatal(err)
	}
	done, before := make(chan bool), f.kept()
	go func() { _ = push.Wait(); close(done) }()
	f.during(of, func() bool { return f.kept() >= before+2 }, done)
	f.seen(name, kept)
	<-done
	if !push.ProcessState.Success() {
		t.Errorf("%s in an upload: it does not go on by itself: %s", of.name, told)
	}
	said := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s: the last push said %s; the server %s", of.name, said, f.served.said)
		}
	}()
	waitFor(t, func() bool {
		out, err := f.anna.command("push", name).CombinedOutput()
		said = string(out)
		return err == nil
	})
	if !f.seen(name, kept) {
		t.Errorf("%s: what was acknowledged is lost", name)
	}
	return kept
}

// remove deletes a run while something fails.
func (f *faultyTeam) remove(of fault, name string, kept []byte) {
	done, before := make(chan bool), f.kept()
	go func() { _, _ = f.get("DELETE", "/runs/"+name); close(done) }()
	f.during(of, func() bool { return f.kept() < before }, done)
	<-done
	f.seen(name, kept)
	waitFor(f.t, func() bool { status, _ := f.get("DELETE", "/runs/"+name); return status == 404 })
	f.must("reindex") // what the server does every hour: objects of a deletion that was cut off go
}

// TestTeamFaults: whatever fails in the middle of an upload or a deletion, nothing that was acknowledged is lost,
// nothing half is seen, and it all goes on once the fault is over, without anybody's help. Each fault strikes once, or
// HIGHTIDE_FAULTS times; HIGHTIDE_FAULT chooses those whose names have these words in them.
func TestTeamFaults(t *testing.T) {
	f := startFaulty(t)
	first := f.upload(fault{"nothing", func() {}, func() {}}, "first")
	for _, of := range f.faults(t) {
		if !strings.Contains(of.name, os.Getenv("HIGHTIDE_FAULT")) {
			continue
		}
		for n := range testkit.Faults(1) {
			name := strings.ReplaceAll(of.name, " ", "-") + strconv.Itoa(n)
			f.remove(of, name, f.upload(of, name))
			if !f.seen("first", first) {
				t.Fatalf("%s: a run of before is lost", of.name)
			}
			t.Logf("%s: %d times gone on with", of.name, n+1)
		}
	}
	f.remove(fault{"nothing", func() {}, func() {}}, "first", first)
	f.nothingLeft(t)
}

// kept is of how many objects the database knows: one that is being sent counts. -1: it does not answer.
func (f *faultyTeam) kept() (n int) {
	if err := f.asked.QueryRowContext(f.t.Context(), "SELECT count(*) FROM objects").Scan(&n); err != nil {
		return -1
	}
	return n
}

// nothingLeft: what was cut off, and is not gone on with, is swept away.
func (f *faultyTeam) nothingLeft(t *testing.T) {
	_ = f.served.process.Process.Kill()
	_ = f.served.process.Wait()
	if _, err := f.asked.ExecContext(t.Context(), "UPDATE files SET begun = begun - interval '31 days'"); err != nil {
		t.Fatal(err)
	}
	f.start()
	rows := 1
	waitFor(t, func() bool {
		err := f.asked.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM objects) + (SELECT count(*) FROM files) + "+
			"(SELECT count(*) FROM recorded)").Scan(&rows)
		return err == nil && rows == 0
	})
	if n := f.objects.objects(t); n > 0 {
		t.Errorf("%d objects are left that no row has", n)
	}
}
