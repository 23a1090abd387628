package launch

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/system"
)

// Bundle is files that are embedded in the program. It knows what they are without holding them: a process that starts
// many programs looks at them once, and keeps none.
type Bundle struct {
	sum   string           // of paths and bytes
	sizes map[string]int64 // of the files as they are extracted, by slash-separated path
	load  func() (map[string][]byte, error)
}

// Packed ends the path of a file that is embedded compressed, by gzip. It is extracted under its path without this.
const Packed = ".gz"

// NewBundle is the files, by slash-separated path, that load returns. They are loaded again where they have to be
// written.
func NewBundle(load func() (map[string][]byte, error)) (*Bundle, error) {
	files, err := load()
	if err != nil {
		return nil, err
	}
	b := &Bundle{contentSum(files), map[string]int64{}, load}
	for path, content := range files {
		size := int64(len(content))
		name, packed := strings.CutSuffix(path, Packed)
		if packed {
			if size < 4 {
				return nil, fmt.Errorf("%s is not compressed", path)
			}
			size = int64(binary.LittleEndian.Uint32(content[size-4:])) // RFC 1952: the last field is the size unpacked
		}
		b.sizes[name] = size
	}
	return b, nil
}

// unpacked is a file as it is extracted.
func unpacked(path string, content []byte) (name string, _ []byte, err error) {
	name, packed := strings.CutSuffix(path, Packed)
	if !packed {
		return name, content, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		content, err = io.ReadAll(reader)
	}
	if err != nil {
		err = fmt.Errorf("unpack %s: %w", path, err)
	}
	return name, content, err
}

// Has says whether a file is among them.
func (b *Bundle) Has(path string) bool {
	_, ok := b.sizes[path]
	return ok
}

// Extract writes files that are embedded in the program into a folder
// named after their content, and returns it. A folder that is there already is complete: it appears
// by a rename. Tried in order are the given parents, those first from which libraries may be loaded. One that cannot
// be written, that others can write, or whose path cannot stand in a variable that separates by colons or spaces, is
// passed over.
func Extract(b *Bundle, parents ...string) (string, error) {
	var failed error
	slices.SortStableFunc(parents, func(a, b string) int { return compare(Runs(a), Runs(b)) })
	for _, parent := range parents {
		if parent == "" || strings.ContainsAny(parent, system.Separators) {
			continue
		}
		dir := filepath.Join(parent, b.sum)
		if Private(parent) == nil && b.whole(dir) {
			return dir, nil
		}
		if failed = b.extractTo(dir); failed == nil {
			return dir, nil
		}
	}
	if failed == nil {
		failed = fmt.Errorf("every folder has a space or colon in its path: %q", parents)
	}
	return "", fmt.Errorf("extract helpers: %w", failed)
}

// compare puts what holds first.
func compare(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

// Runs says whether programs and libraries may be loaded from a folder, or the first one above it that is there: a file
// system may be mounted noexec.
func Runs(dir string) bool {
	for {
		if runs, known := system.RunsPrograms(dir); known {
			return runs
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// whole says whether a folder is this user's own and all files are in it: what cleans up old files leaves folders.
func (b *Bundle) whole(dir string) bool {
	if Private(dir) != nil {
		return false
	}
	for path, size := range b.sizes {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil || !info.Mode().IsRegular() || !private(info) || info.Size() != size {
			return false
		}
	}
	return true
}

// MakePrivate makes a folder for this user alone where there is none, and says as Private does whether it
// can be used.
func MakePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return Private(dir)
}

// Private says in one line why a folder cannot be used for what nobody else may change; nil: it can.
func Private(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link, and hightide uses only a folder of its own there: remove it", dir)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: remove it", dir)
	case !private(info):
		return fmt.Errorf("%s can be written by others, or is not this user's: remove it, or chmod 700 it", dir)
	}
	return nil
}

// private says whether a file is ours and nobody else can write it.
func private(info fs.FileInfo) bool {
	user, ok := system.Owner(info)
	if !system.HasOwners { // what is among a user's own files is theirs alone: Windows says so in lists of access
		return true
	}
	return ok && user == os.Getuid() && info.Mode().Perm()&0o022 == 0
}

func (b *Bundle) extractTo(dir string) error {
	files, err := b.load()
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	if err := Private(parent); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name, content, err := unpacked(path, files[path])
		if err != nil {
			return err
		}
		to := filepath.Join(temporary, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if filepath.Base(filepath.Dir(to)) == "bin" {
			mode = 0o755
		}
		if err := os.WriteFile(to, content, mode); err != nil {
			return err
		}
	}
	err = os.Rename(temporary, dir)
	if err != nil && !b.whole(dir) { // two of us at once: either will do
		if err = os.RemoveAll(dir); err == nil {
			err = os.Rename(temporary, dir)
		}
		return err
	}
	return nil
}

// contentSum names the content: paths and bytes.
func contentSum(files map[string][]byte) string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %d\n", path, len(files[path]))
		h.Write(files[path])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
