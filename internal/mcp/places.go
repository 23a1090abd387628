package mcp

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/files"
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
	if files.Within(path, append([]string{".", d.engine.Dir()}, d.Folders...)...) {
		return nil
	}
	return fail.Input("the user names the folder: hightide mcp --folder "+cmp.Or(filepath.Dir(path), "FOLDER"),
		"%s lies outside the folders that may be read", path)
}
