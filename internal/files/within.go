package files

import (
	"os"
	"path/filepath"
	"slices"
)

// Within says whether a path leads into one of some folders, links followed. It is asked before a path that somebody
// else gave is looked at. The root is no such folder: some programs start their servers in it, which nobody meant.
func Within(path string, folders ...string) bool {
	at, err := followed(path)
	return err == nil && slices.ContainsFunc(folders, func(folder string) bool {
		within, err := followed(folder)
		if err != nil || within == filepath.Dir(within) {
			return false
		}
		below, err := filepath.Rel(within, at)
		return err == nil && filepath.IsLocal(below)
	})
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
