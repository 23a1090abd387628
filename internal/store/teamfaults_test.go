package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// pieces are small, so that a short recording has many.
const pieces = 512

// counted is an object store that says how often something was kept, and does something before the n-th time.
type counted struct {
	objects
	puts   int
	before func(put int) error
}

func (c *counted) put(ctx context.Context, key string, data []byte) error {
	c.puts++
	if c.before != nil {
		if err := c.before(c.puts); err != nil {
			return err
		}
	}
	return c.objects.put(ctx, key, data)
}

// machine is a machine of a team: an outbox of its own.
func machine(t *testing.T, database, objects, outbox string) (*Team, *counted) {
	t.Helper()
	s, err := OpenTeam(database, "file://"+objects, outbox)
	must(t, err)
	c := &counted{objects: s.objects}
	s.objects, s.chunk = c, pieces
	t.Cleanup(func() { _ = s.Close() })
	return s, c
}

// noise is a file that does not compress, the same for one seed.
func noise(seed uint64, size int) string {
	random := rand.NewChaCha8([32]byte{byte(seed)})
	data := make([]byte, size)
	_, _ = random.Read(data)
	return string(data)
}

// noted records a run with a report of 20 pieces, and returns what Close said.
func noted(t *testing.T, s Store, seed uint64) (id string, end error) {
	t.Helper()
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Write(mem.Event{Time: 2, Kind: "log", Text: noise(seed+100, 4*pieces)}))
	must(t, w.Write(mem.End{Time: 1e9, ExitCode: mem.Some(0)}))
	must(t, w.Flush())
	_, err = s.Attach(w.ID(), "report.html", func(w io.Writer) error {
		_, err := io.WriteString(w, noise(seed, 20*pieces))
		return err
	})
	must(t, err)
	return w.ID(), w.Close()
}

func content(t *testing.T, s Store, id, name string) string {
	t.Helper()
	file, err := s.Open(id, name)
	must(t, err)
	defer file.Close()
	data, err := io.ReadAll(file)
	must(t, err)
	return string(data)
}

// isThere checks that another machine has a run whole.
func isThere(t *testing.T, s *Team, id string, seed uint64) {
	t.Helper()
	row, run, err := Load(s, id)
	must(t, err)
	if row.State != Finished || run.End == nil || len(run.Damage) > 0 || content(t, s, id, "report.html") != noise(seed, 20*pieces) {
		t.Errorf("another machine has %+v, %v, damage %v", row, run.End, run.Damage)
	}
}

// isHidden checks that another machine sees a run as one that is not there yet: running or cut off, without a file.
func isHidden(t *testing.T, s *Team, id string) {
	t.Helper()
	for _, name := range []string{Recording, "report.html"} {
		if _, err := s.Open(id, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("half sent, %s: %v", name, err)
		}
	}
	if runs, err := s.List(Filter{State: Finished}); err != nil || len(runs) > 0 {
		t.Errorf("half sent, and listed as finished: %+v %v", runs, err)
	}
}

func left(t *testing.T, dir string) (files []string) {
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// TestTeamCutOff: whatever is cut off while a run is sent, nobody sees half of it, and the next command sends what is
// missing, and only that.
func TestTeamCutOff(t *testing.T) {
	server := testkit.StartPostgres(t)
	broken := errors.New("broken")
	for name, cut := range map[string]func() error{
		"the object store": func() error { return broken },
		"the database":     func() error { server.Kill(t); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			database, objects, outbox := server.New(t), t.TempDir(), t.TempDir()
			here, sent := machine(t, database, objects, outbox)
			sent.before = func(put int) error {
				if put == 8 {
					return cut()
				}
				return nil
			}
			id, err := noted(t, here, 1)
			var typed *Error
			if !errors.Is(err, ErrUnsent) || !errors.As(err, &typed) || !strings.Contains(typed.Text, id) {
				t.Fatalf("the end of a run that cannot be sent: %v", err)
			}
			if name == "the database" {
				server.Start(t)
			}
			there, _ := machine(t, database, objects, t.TempDir())
			isHidden(t, there, id)
			first := sent.puts
			again, rest := machine(t, database, objects, outbox)
			if row, err := Resolve(again, id); err != nil || row.State != Finished {
				t.Errorf("on its own machine: %+v %v", row, err)
			}
			must(t, again.Close()) // waits for what it sends
			isThere(t, there, id, 1)
			total := len(left(t, objects))
			if rest.puts > total-first+2 {
				t.Errorf("%d pieces, %d sent before and %d after", total, first, rest.puts)
			}
			if runs, _ := os.ReadDir(filepath.Join(again.outbox.runsDir())); len(runs) > 0 {
				t.Errorf("left in the outbox: %v", runs)
			}
		})
	}
}

// sendUntilKilled records a run, and dies while it is sent.
func sendUntilKilled(database string) {
	s, err := OpenTeam(database, os.Getenv("HIGHTIDE_TEST_OBJECTS"), os.Getenv("HIGHTIDE_TEST_OUTBOX"))
	if err != nil {
		panic(err)
	}
	s.chunk = pieces
	s.objects = &counted{objects: s.objects, before: func(put int) error {
		if put == 8 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}
	info := example
	info.ID = "killed"
	w, err := s.Create(info)
	if err == nil {
		err = errors.Join(w.Write(mem.End{Time: 1e9}), w.Flush())
	}
	if err == nil {
		_, err = s.Attach("killed", "report.html", func(w io.Writer) error {
			_, err := io.WriteString(w, noise(1, 20*pieces))
			return err
		})
	}
	panic(errors.Join(err, w.Close()))
}

// TestTeamKilled: who is killed while it sends leaves a run that the next command sends.
func TestTeamKilled(t *testing.T) {
	server := testkit.StartPostgres(t)
	database, objects, outbox := server.New(t), t.TempDir(), t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HIGHTIDE_TEST_SENDER="+database, "HIGHTIDE_TEST_OBJECTS=file://"+objects,
		"HIGHTIDE_TEST_OUTBOX="+outbox)
	if out, err := child.CombinedOutput(); err == nil || child.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v\n%s", err, out)
	}
	there, _ := machine(t, database, objects, t.TempDir())
	isHidden(t, there, "killed")
	again, _ := machine(t, database, objects, outbox)
	_, err := again.List(Filter{})
	must(t, err)
	must(t, again.Close())
	isThere(t, there, "killed", 1)
}

// TestTeamAway: without a server a run is recorded as ever, is listed here, and is sent later.
func TestTeamAway(t *testing.T) {
	server := testkit.StartPostgres(t)
	database, objects, outbox := server.New(t), t.TempDir(), t.TempDir()
	server.Kill(t)
	here, _ := machine(t, database, objects, outbox)
	id, err := noted(t, here, 1)
	if !errors.Is(err, ErrUnsent) {
		t.Fatal(err)
	}
	if _, err := here.List(Filter{}); !errors.Is(err, ErrPlace) {
		t.Errorf("a list without the server: %v", err)
	}
	if _, run, err := Load(here, filepath.Join(here.outbox.recording(id))); err != nil || run.End == nil {
		t.Errorf("where the error says it waits: %v", err)
	}
	server.Start(t)
	again, _ := machine(t, database, objects, outbox)
	sent, err := again.SendLeft(t.Context())
	if err != nil || len(sent) != 1 || sent[0] != id {
		t.Errorf("sent %v, %v", sent, err)
	}
	there, _ := machine(t, database, objects, t.TempDir())
	isThere(t, there, id, 1)
}

// TestTeamKeepsEqualPiecesOnce: and deletes them with the last run that has them.
func TestTeamKeepsEqualPiecesOnce(t *testing.T) {
	server := testkit.StartPostgres(t)
	database, objects := server.New(t), t.TempDir()
	here, kept := machine(t, database, objects, t.TempDir())
	first, err := noted(t, here, 1)
	must(t, err)
	alone := kept.puts
	there, also := machine(t, database, objects, t.TempDir())
	second, err := noted(t, there, 1)
	must(t, err)
	if also.puts > alone-20 {
		t.Errorf("%d pieces for a run, %d more for one with an equal report", alone, also.puts)
	}
	must(t, here.Remove(first))
	isThere(t, here, second, 1)
	must(t, here.Remove(second))
	if files := left(t, objects); len(files) > 0 {
		t.Errorf("deleted, and left: %v", files)
	}
}

// TestTeamDamage: what is not what was sent is never shown as if it were.
func TestTeamDamage(t *testing.T) {
	server := testkit.StartPostgres(t)
	database, objects := server.New(t), t.TempDir()
	here, _ := machine(t, database, objects, t.TempDir())
	id, err := noted(t, here, 1)
	must(t, err)
	for _, path := range left(t, objects) {
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, bytes.Repeat([]byte("x"), len(data)), 0o600))
	}
	file, err := here.Open(id, "report.html")
	must(t, err)
	if data, err := io.ReadAll(file); !errors.Is(err, ErrPlace) || len(data) > 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestTeamOfMachines: what one machine records and another changes, all see.
func TestTeamOfMachines(t *testing.T) {
	server := testkit.StartPostgres(t)
	database, objects := server.New(t), t.TempDir()
	here, _ := machine(t, database, objects, t.TempDir())
	there, _ := machine(t, database, objects, t.TempDir())
	id, err := noted(t, here, 1)
	must(t, err)
	w, err := there.Reopen(id)
	must(t, err)
	if _, err := here.Reopen(id); !errors.Is(err, ErrRunning) {
		t.Errorf("written by two: %v", err)
	}
	if err := here.Remove(id); !errors.Is(err, ErrRunning) {
		t.Errorf("removed while another machine writes it: %v", err)
	}
	must(t, w.Close())
	name := "renamed"
	must(t, Tag(there, id, map[string]string{"odd\x00\xff": "\xffvalue"}, nil, &name))
	row, _, err := Load(here, "renamed")
	must(t, err)
	if row.ID != id || len(row.Tags) != 1 || row.State != Finished {
		t.Errorf("%+v", row)
	}
	isThere(t, here, id, 1)
}

// TestTeamMigrations: runs in a database of each earlier version are listed after it was brought forward, and can be
// changed.
func TestTeamMigrations(t *testing.T) {
	server := testkit.StartPostgres(t)
	versions, err := migrationFiles.ReadDir("migrations")
	must(t, err)
	for version := 1; version < len(versions); version++ {
		s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
		db, err := sql.Open("postgres", s.db.url.String())
		must(t, err)
		migrateTo(t, db, int64(version))
		must(t, db.Close())
		if runs, err := s.List(Filter{Name: "train-2"}); err != nil || len(runs) != 1 {
			t.Errorf("from version %d: %+v %v", version, runs, err)
		}
		id, err := noted(t, s, 1)
		must(t, err)
		isThere(t, s, id, 1)
	}
}

// TestTeamSchema: a database of a newer hightide is left alone, and one that many begin to use at once has one schema.
func TestTeamSchema(t *testing.T) {
	server := testkit.StartPostgres(t)
	database := server.New(t)
	done := make(chan error)
	for range 8 {
		go func() {
			s, err := OpenTeam(database, "file:///tmp", t.TempDir())
			if err == nil {
				_, err = s.List(Filter{})
			}
			done <- errors.Join(err, s.Close())
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	s, _ := machine(t, database, t.TempDir(), t.TempDir())
	must(t, s.db.change(t.Context(), func(s *session) error {
		_, err := s.exec("INSERT INTO " + versionTable + " (version_id, is_applied) VALUES (99, TRUE)")
		return err
	}))
	newer, _ := machine(t, database, t.TempDir(), t.TempDir())
	if _, err := newer.List(Filter{}); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "99") {
		t.Errorf("a newer schema: %v", err)
	}
}

// TestTeamKeys: a key is good from when it was made until it is revoked or expires, and is kept nowhere.
func TestTeamKeys(t *testing.T) {
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	secret, err := s.AddKey(t.Context(), Key{Name: "anna", May: "push"}, 0)
	must(t, err)
	good := func(secret string) bool {
		t.Helper()
		k, good, err := s.KeyOf(t.Context(), hashOf([]byte(secret)))
		must(t, err)
		return good && k.Name == "anna"
	}
	if !good(secret) || good("x"+secret) || good("") {
		t.Errorf("good %v, another %v, none %v", good(secret), good("x"+secret), good(""))
	}
	if _, err := s.AddKey(t.Context(), Key{Name: "anna", May: "read"}, 0); !errors.Is(err, ErrAmbiguous) || !good(secret) {
		t.Errorf("two keys of one name: %v", err)
	}
	must(t, s.RevokeKey(t.Context(), "anna"))
	if err := s.RevokeKey(t.Context(), "anna"); !errors.Is(err, ErrNotFound) || good(secret) {
		t.Errorf("revoked: %v", err)
	}
	next, err := s.AddKey(t.Context(), Key{Name: "anna", May: "read"}, time.Hour)
	must(t, err)
	must(t, s.db.change(t.Context(), func(s *session) error {
		_, err := s.exec("UPDATE keys SET expires = expires - interval '30 minutes'")
		return err
	}))
	if !good(next) || good(secret) {
		t.Errorf("the next %v, the one before %v", good(next), good(secret))
	}
	must(t, s.db.change(t.Context(), func(s *session) error {
		_, err := s.exec("UPDATE keys SET expires = now()")
		return err
	}))
	keys, err := s.Keys(t.Context())
	if err != nil || len(keys) != 1 || good(next) || keys[0].Expires == nil || keys[0].Revoked != nil {
		t.Errorf("expired: %+v %v", keys, err)
	}
	var kept string
	must(t, s.db.look(t.Context(), func(s *session) error { return s.row("SELECT string_agg(keys::text, ' ') FROM keys").Scan(&kept) }))
	if strings.Contains(kept, next) {
		t.Error("the key itself is kept")
	}
}
