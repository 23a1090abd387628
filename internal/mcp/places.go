package mcp

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// readable refuses a reference that is neither a run nor a file of the places: stdin is the assistant's, and a pipe
// or a device may never end. What lies elsewhere is refused in the same words whether it is there or not.
func (d *door) readable(refs ...string) error {
	for _, ref := range refs {
		if ref == "-" {
			return irregular(ref)
		}
		if _, err := os.Lstat(ref); err != nil && !strings.ContainsRune(ref, filepath.Separator) &&
			!strings.HasPrefix(ref, ".") {
			continue // a run
		}
		if err := d.inPlaces(ref); err != nil {
			return err
		}
		info, err := os.Stat(ref)
		if err == nil && info.IsDir() {
			ref = filepath.Join(ref, store.Recording)
			if err := d.inPlaces(ref); err != nil {
				return err
			}
			info, err = os.Stat(ref)
			if err != nil {
				return irregular(filepath.Dir(ref))
			}
		}
		if err == nil && !info.Mode().IsRegular() {
			return irregular(ref)
		}
	}
	return nil
}

func irregular(ref string) error {
	return fail.Input("name a file, or a run as list shows it", "%s is not a regular file", ref)
}

// inPlaces says why a file may not be read: it lies neither in the folder in which the server was started, nor in
// that of the recordings, nor in one that the user named.
func (d *door) inPlaces(path string) error {
	at, err := followed(path)
	if err == nil && slices.ContainsFunc(append([]string{".", d.engine.Dir()}, d.Folders...), func(place string) bool {
		within, err := followed(place)
		// some assistants start their servers in the root, which nobody meant
		if err != nil || within == filepath.Dir(within) {
			return false
		}
		below, err := filepath.Rel(within, at)
		return err == nil && filepath.IsLocal(below)
	}) {
		return nil
	}
	return fail.Input("the user names the folder: hightide mcp --folder "+cmp.Or(filepath.Dir(path), "FOLDER"),
		"%s lies outside the folders that may be read", path)
}

// followed is where a path leads, links followed as far as it is there.
func followed(path string) (string, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		if at, err := filepath.EvalSymlinks(whole); err == nil {
			return filepath.Join(at, rest), nil
		}
		if info, err := os.Lstat(whole); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return "", os.ErrNotExist // a link that leads nowhere yet
		}
		if whole == filepath.Dir(whole) {
			return "", os.ErrNotExist
		}
		whole, rest = filepath.Dir(whole), filepath.Join(filepath.Base(whole), rest)
	}
}
