package imagine

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// TestHostileTables: whatever a program puts where the table should be, the engine says so and goes on.
func TestHostileTables(t *testing.T) {
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
		path := filepath.Join(t.TempDir(), "devices")
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

// TestWhatTheTableDoesNotHold: a process, or all of them, that found no room is said, and never counted as nothing.
func TestWhatTheTableDoesNotHold(t *testing.T) {
	lacking := make([]byte, 8192)
	put := binary.LittleEndian
	put.PutUint64(lacking, shm.DeviceMagic)
	put.PutUint32(lacking[8:], shm.DeviceABI)
	put.PutUint32(lacking[16:], 1)    // devices
	put.PutUint32(lacking[20:], 1024) // bytes of each
	put.PutUint32(lacking[28:], 90848)
	put.PutUint64(lacking[32:], 4096)
	put.PutUint64(lacking[40:], 5120)
	put.PutUint64(lacking[80:], 2)
	for text, content := range map[string][]byte{"shared memory is full": nil, "no room for 2 more": lacking} {
		path := filepath.Join(t.TempDir(), "devices")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		v := newImaginary([]mem.GPU{{Name: "A10"}}, &deviceState{path: path})
		v.Close()
		if v.problem == nil || !strings.Contains(v.problem.Error(), text) {
			t.Errorf("%v: want %q in it", v.problem, text)
		}
	}
}
