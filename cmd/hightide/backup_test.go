package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/testkit"
)

// TestBackup: a copy that is made while runs are written and deleted is restored into another database and folder; each
// run of it that was there all the time has the same content, by hash, and none has half of its files.
func TestBackup(t *testing.T) {
	database := testkit.StartPostgres(t)
	s := newSession(t)
	store := func(env []string) *session {
		other := *s
		other.env = append([]string{}, env...)
		return &other
	}
	source := store([]string{"HIGHTIDE_STORE=" + database.New(t), "HIGHTIDE_OBJECTS=file://" + t.TempDir()})
	target := store([]string{"HIGHTIDE_STORE=" + database.New(t), "HIGHTIDE_OBJECTS=file://" + t.TempDir()})
	record := func(name string) {
		if out, err := source.command("run", "--quiet", "--name", name, "--", "/bin/echo", name).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	}
	for n := range 6 {
		record(fmt.Sprintf("before%d", n))
	}
	want := source.contents("before")
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			record(fmt.Sprintf("during%d", n))
			if n%2 == 1 {
				_ = source.command("rm", fmt.Sprintf("during%d", n)).Run()
			}
		}
		written <- n
	}()
	folder := filepath.Join(t.TempDir(), "copy")
	script := func(s *session, name string) (string, error) {
		c := exec.Command("bash", filepath.Join("../../packaging/team", name), folder)
		c.Env = append(os.Environ(), s.env...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for range 3 { // the later ones copy what is new
		if out, err := script(source, "backup.sh"); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	stop()
	if n := <-written; n < 2 {
		t.Errorf("only %d runs were written meanwhile", n)
	}
	if out, err := script(target, "restore.sh"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	got := target.contents("before")
	if len(want) != 6 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v; want %v", got, want)
	}
	during := source.contents("during")
	for id, hash := range target.contents("during") {
		if is, there := during[id]; there && is != hash {
			t.Errorf("run %s: %s; want %s", id, hash, is)
		}
	}
	if out, err := script(target, "restore.sh"); err == nil || !strings.Contains(out, "is not empty") {
		t.Errorf("over what is there: %v %s", err, out)
	}
}

// contents are the SHA-256 of the recordings of runs whose names begin so, by id. Each must be there whole, but one that
// was deleted while the copy was made: it cannot be read at all.
func (s *session) contents(name string) map[string]string {
	s.t.Helper()
	out, err := s.command("ls", "--json").Output()
	var list struct {
		Runs []struct{ ID, Name string }
	}
	if err != nil || json.Unmarshal(out, &list) != nil {
		s.t.Fatalf("%v %s", err, out)
	}
	all := map[string]string{}
	for _, run := range list.Runs {
		if !strings.HasPrefix(run.Name, name) {
			continue
		}
		to := filepath.Join(s.t.TempDir(), "run.hightide")
		if out, err := s.command("export", run.ID, "--recording", "-o", to).CombinedOutput(); err != nil {
			if name == "during" {
				continue
			}
			s.t.Errorf("%v %s", err, out)
			continue
		}
		text, err := os.ReadFile(to)
		if err != nil {
			s.t.Error(err)
		}
		all[run.ID] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return all
}
