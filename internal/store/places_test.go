package store

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestPlacesThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, dir := range map[string]string{"below a file": filepath.Join(file, "data"),
		"kernel's own": "/proc/sys/hightide"} {
		_, err := OpenFiles(dir).Create(example)
		var typed *Error
		if !errors.As(err, &typed) || !errors.Is(err, ErrPlace) || !strings.Contains(typed.Hint, "--data-dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDataDirectoryOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600))
	s := OpenFiles(dir)
	_, create := s.Create(example)
	_, list := s.List(Filter{})
	_, _, load := Load(s, "last")
	_, prune := Prune(s, Limits{Age: 1})
	for i, err := range []error{create, list, load, prune, s.Remove("x"), Tag(s, "x", nil, nil, nil), s.Reindex(nil)} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("something was written: %v", left)
	}
}

// TestFilesOutsideTheStore: a file alone gives the same row as the store's own reading of it.
func TestFilesOutsideTheStore(t *testing.T) {
	dir := finished(t, 1)
	s := OpenFiles(dir)
	defer s.Close()
	kept, err := Resolve(s, "last")
	must(t, err)
	alone, err := Resolve(s, kept.File)
	must(t, err)
	opened, run, err := Load(s, kept.File)
	must(t, err)
	if !reflect.DeepEqual(alone, opened) || run.End == nil || opened.ID != kept.ID || opened.State != Finished {
		t.Errorf("opened %+v\nresolved %+v", opened, alone)
	}
	if _, _, err := Load(s, filepath.Join(dir, "nothing.hightide")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "data")
	s := OpenFiles(dir)
	defer s.Close()
	w, err := s.Create(example)
	must(t, err)
	must(t, w.Close())
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be seen by others: %v", path, info.Mode())
		}
		return nil
	}))
}
