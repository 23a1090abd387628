package sampler

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestHost(t *testing.T) {
	host := Host("/", 0, nil)
	if host.Kernel == "" || host.CPUs < 1 || host.Memory.Or(0) < 64<<20 || host.PageSize < 4096 || host.Name == "" {
		t.Errorf("%+v", host)
	}
}

// TestReadGit in a real working copy, whose configuration would run a program.
func TestReadGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-C", dir}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	file := filepath.Join(dir, "train.py")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if ReadGit(context.Background(), dir) != nil {
		t.Error("a working copy where there is none")
	}
	git("init", "-q", "-b", "trunk")
	if ReadGit(context.Background(), dir) != nil {
		t.Error("a commit where there is none")
	}
	write("1")
	git("add", "train.py")
	git("commit", "-q", "-m", "first")
	git("config", "core.fsmonitor", "touch "+ran+"; false")
	sub := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	clean := ReadGit(context.Background(), sub)
	if clean == nil || len(clean.Commit) != 40 || clean.Branch != "trunk" || clean.Dirty {
		t.Fatalf("%+v", clean)
	}
	write("22")
	if dirty := ReadGit(context.Background(), dir); dirty == nil || !dirty.Dirty {
		t.Errorf("%+v", dirty)
	}
	if exists(ran) {
		t.Error("git ran the program that the repository's configuration names")
	}
	git("checkout", "-q", "--detach")
	if detached := ReadGit(context.Background(), dir); detached == nil || detached.Branch != "" {
		t.Errorf("%+v", detached)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if ReadGit(ended, dir) != nil {
		t.Error("an answer after the time was up")
	}
}
