package testkit

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Postgres is a server of PostgreSQL that ends with a test. It listens on no port: its socket is in its folder.
type Postgres struct {
	bin, dir string
	owner    *syscall.Credential // nil: this user; the server refuses to run as root
	made     atomic.Int32
}

// StartPostgres starts a server of the installed PostgreSQL, or skips the test where scripts/setup team was not run.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	return StartPostgresOn(t, func(string) {})
}

// StartPostgresOn does the same in a folder that is made ready first, as by a file system of its own.
func StartPostgresOn(t testing.TB, ready func(dir string)) *Postgres {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed: scripts/setup team")
	}
	slices.Sort(found)
	dir, err := os.MkdirTemp("/tmp", "hightide-pg-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	p := &Postgres{bin: filepath.Dir(found[len(found)-1]), dir: dir}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ready(dir)
	if os.Getuid() == 0 {
		p.giveAway(t)
	}
	p.run(t, "initdb", "-D", p.data(), "-A", "trust", "-U", "hightide", "-E", "UTF8", "--no-sync")
	p.Start(t)
	t.Cleanup(func() { p.Stop(t) })
	return p
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// giveAway has the server run as somebody who is not root.
func (p *Postgres) giveAway(t testing.TB) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			if err := os.Chown(p.dir, uid, gid); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Skip("PostgreSQL does not run as root, and there is nobody else")
}

func (p *Postgres) run(t testing.TB, name string, args ...string) {
	t.Helper()
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir, c.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.owner}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Start starts the server again after Stop or Kill, and waits until it answers.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	p.run(t, "pg_ctl", "-D", p.data(), "-w", "-l", filepath.Join(p.dir, "log"), "-o",
		fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories='%s' -c fsync=off -c max_wal_size=64MB", p.dir), "start")
}

// Stop ends the server with all of its connections.
func (p *Postgres) Stop(t testing.TB) {
	c := exec.Command(filepath.Join(p.bin, "pg_ctl"), "-D", p.data(), "-m", "immediate", "-w", "stop")
	c.Dir, c.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.owner}
	if out, err := c.CombinedOutput(); err != nil && !strings.Contains(string(out), "PID file") {
		t.Errorf("stop PostgreSQL: %v\n%s", err, out)
	}
}

// pid is the server's process, or was.
func (p *Postgres) pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// Restart starts the server again where it has ended, as its supervisor does.
func (p *Postgres) Restart(t testing.TB) {
	t.Helper()
	if pid, err := p.pid(); err != nil || syscall.Kill(pid, 0) != nil {
		p.Start(t)
	}
}

// Kill ends the server's processes as a machine that loses its power does, and waits until they are gone.
func (p *Postgres) Kill(t testing.TB) {
	t.Helper()
	pid, err := p.pid()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // its children end when they see that it is gone
		t.Fatal(err)
	}
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// New makes an empty database and returns its address.
func (p *Postgres) New(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("team%d", p.made.Add(1))
	p.run(t, "createdb", "-h", p.dir, "-U", "hightide", name)
	return (&url.URL{Scheme: "postgres", User: url.User("hightide"), Path: "/" + name,
		RawQuery: url.Values{"host": {p.dir}, "sslmode": {"disable"}}.Encode()}).String()
}

// Drop deletes a database, also where somebody uses it.
func (p *Postgres) Drop(t testing.TB, database string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p.run(t, "dropdb", "-h", p.dir, "-U", "hightide", "--force", strings.TrimPrefix(u.Path, "/"))
}

// Over is the address of a database of the server as it is reached by a wire.
func (p *Postgres) Over(database string, w *Wire) string {
	u, _ := url.Parse(database)
	query := u.Query()
	query.Set("host", w.Address().IP.String())
	query.Set("port", strconv.Itoa(w.Address().Port))
	u.RawQuery = query.Encode()
	return u.String()
}

// Socket is where the server listens.
func (p *Postgres) Socket() string { return filepath.Join(p.dir, ".s.PGSQL.5432") }
