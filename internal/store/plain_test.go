package store

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOnlyPlainFiles: a link in a run's folder leads nowhere, and a pipe there, which nobody writes, is not waited for.
func TestOnlyPlainFiles(t *testing.T) {
	dir := finished(t, 1)
	s := OpenFiles(dir)
	defer s.Close()
	runs, err := s.List(Filter{})
	must(t, err)
	id := runs[0].ID
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.Symlink(secret, filepath.Join(s.runDir(id), "link.txt")))
	must(t, syscall.Mkfifo(filepath.Join(s.runDir(id), "pipe.txt"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.runDir(id), "plain.txt"), []byte("plain"), 0o600))
	for name, want := range map[string]string{"link.txt": "", "pipe.txt": "", "plain.txt": "plain"} {
		file, err := s.Open(id, name)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		text, err := io.ReadAll(file)
		must(t, err)
		must(t, file.Close())
		if string(text) != want {
			t.Errorf("%s has %q; want %q", name, text, want)
		}
	}
	for i, make := range []func(path string) error{
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
		func(path string) error { return os.Symlink("/dev/zero", path) },
		func(path string) error { return os.Symlink(s.recording(id), path) },
	} {
		other := "06" + string(rune('a'+i)) + "aaaaaaa"
		must(t, os.Mkdir(s.runDir(other), 0o700))
		must(t, make(s.recording(other)))
		runs, err := s.List(Filter{Text: other})
		must(t, err)
		if len(runs) != 1 || !runs[0].Damaged {
			t.Errorf("listed as %+v", runs)
		}
		if _, _, err := Load(s, other); err == nil {
			t.Errorf("%s was read", other)
		}
	}
}
