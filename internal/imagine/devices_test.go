package imagine

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hightide/internal/mem"
)

// TestHostileBooks: whatever a program puts where the books should be, the engine says so and goes on.
func TestHostileBooks(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(path string) error
		problem bool // also while the program runs; in the end whatever is there and cannot be read is one
	}{
		"nothing": {func(string) error { return nil }, false},
		"empty":   {func(path string) error { return os.WriteFile(path, nil, 0o600) }, false},
		"zeros":   {func(path string) error { return os.WriteFile(path, make([]byte, 1<<16), 0o600) }, false}, // not ready
		"garbage": {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte{0xa5}, 1<<16), 0o600) }, true},
		"folder":  {func(path string) error { return os.Mkdir(path, 0o700) }, true},
		"pipe":    {func(path string) error { return syscall.Mkfifo(path, 0o600) }, true},
		"link":    {func(path string) error { return os.Symlink("/etc/passwd", path) }, true},
		"huge": {func(path string) error {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}, true},
	} {
		path := filepath.Join(t.TempDir(), "books")
		if err := c.make(path); err != nil {
			t.Fatal(name, err)
		}
		v := newImaginary([]mem.GPU{{Name: "A10"}}, &deviceState{path: path})
		readings, err := v.Sample(nil)
		if len(readings) != 0 || (err != nil) != c.problem {
			t.Errorf("%s: %v %v", name, readings, err)
		}
		v.Close()
		v.Close()
		events := v.frames(mem.NewRun(), 7)
		if (len(events) > 0) != (name != "nothing") || len(v.Devices()) != 1 {
			t.Errorf("%s: %v", name, events)
		}
	}
}
