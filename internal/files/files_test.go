package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/fail"
)

// TestWrite: what was there stays where writing fails, devices and links are what they were, and nothing is left over.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "report"), filepath.Join(dir, "link")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	if err := Write(path, "report", text("first")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, "report", text("second")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, "report", func(w io.Writer) error { _ = text("third")(w); return broken })
	if !errors.Is(err, broken) || fail.Code(err) != fail.ExitOwn || fail.Hint(err) != "" { // another file would not help
		t.Errorf("a writer that fails: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "second" {
		t.Errorf("the file holds %q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
	if err := Write(os.DevNull, "report", text("away")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s became %v, %v", os.DevNull, info, err)
	}
	var failed *fail.Error
	if err := Write("/dev/full", "report", text("no")); !errors.As(err, &failed) || failed.Code != fail.ExitEnvironment || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full device: %v", err)
	}
	if err := Write(filepath.Join(dir, "none", "x"), "report", text("no")); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("no folder: %v", err)
	}
	if err := Write(dir, "report", text("no")); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left over: %v", left)
	}
}
