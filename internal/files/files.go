// Package files writes files whole or not at all, with errors that say what to do.
package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hightide/internal/fail"
	"hightide/internal/system"
)

// Write makes a file of what write writes, whole or not at all: what was there stays until all is written.
// A device or pipe, such as /dev/stdout, is written to as it is. what names the content in errors: "report".
func Write(path, what string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return fail.Input("name a file in it", "write %s: %s is a folder", what, path)
	}
	var file *os.File
	whole := err != nil || info.Mode().IsRegular()
	if whole {
		name := fmt.Sprintf(".hightide-%x.new", rand.Uint64())
		file, err = os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	} else {
		file, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return cannotWrite(path, what, err)
	}
	buffered := bufio.NewWriter(file)
	if err = write(buffered); err == nil {
		err = buffered.Flush()
	}
	err = errors.Join(err, file.Close())
	if whole && err == nil {
		err = os.Rename(file.Name(), path)
	}
	if whole && err != nil {
		_ = os.Remove(file.Name())
	}
	if err != nil {
		return cannotWrite(path, what, err)
	}
	return nil
}

// cannotWrite says why a file cannot be made, by the name the user gave it and not by the one it has
// while it is written.
func cannotWrite(path, what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if err := CheckFolder(path, what); err != nil {
			return err
		}
	}
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	of, renamed := (*fs.PathError)(nil), (*os.LinkError)(nil)
	ofFile := errors.As(err, &of) || errors.As(err, &renamed)
	if of != nil {
		err = of.Err
	}
	err = fmt.Errorf("write %s to %s: %w", what, path, err)
	switch {
	case full:
		return fail.Environment("make room there, or name a file elsewhere", "%w", err)
	case !ofFile: // another name would not help: the content could not be made
		return err
	}
	return fail.Input("name a file that can be written", "%w", err)
}

// IsFolder says whether a path names a folder, or is written as if it did.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return strings.HasSuffix(path, "/") || err == nil && info.IsDir()
}

// CheckFolder says whether there is a folder for a file that is to be written, and it may be, before hours of work
// that it is for.
func CheckFolder(path, what string) error {
	folder := filepath.Dir(path)
	switch info, err := os.Stat(folder); {
	case err != nil || !info.IsDir():
		return fail.Input("mkdir -p "+folder, "write %s: there is no folder %s", what, folder)
	case IsFolder(path):
		return fail.Input("name a file in it", "write %s: %s is a folder", what, path)
	}
	if _, err := os.Stat(path); err != nil { // it is made there
		path = folder
	}
	if err := system.MayWrite(path); err != nil {
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		return fail.Input("name a file that can be written", "write %s to %s: %w", what, path, err)
	}
	return nil
}
