package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// MountSmall mounts a small file system of its own at a folder, until the test ends, where the tests run as root.
func MountSmall(t testing.TB, dir, size string) error {
	t.Helper()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size+",mode=711", "tmpfs", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return nil
}

// filler is the file that fills a disk.
const filler = "filler"

// Fill writes a file into a folder until nothing more fits.
func Fill(t testing.TB, dir string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, filler), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	for data := make([]byte, 1<<20); len(data) > 0; {
		if _, err := file.Write(data); err != nil {
			data = data[:len(data)/2]
		}
	}
}

// Empty gives back what Fill took.
func Empty(t testing.TB, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filler)); err != nil {
		t.Error(err)
	}
}

// Faults is how often a test has each fault strike: as HIGHTIDE_FAULTS says, or so often.
func Faults(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("HIGHTIDE_FAULTS")); err == nil {
		return n
	}
	return otherwise
}
