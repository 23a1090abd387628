package engine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hightide/internal/intake"
	"hightide/internal/pickle"
)

// Document reads a file of any kind that intake knows, compressed or not, with its kind told from
// its content; "-" is stdin. A file that is not there, or of no known kind, is an input error (exit
// code 3) with a hint.
func (e *Engine) Document(path string, stdin io.Reader) (*intake.Document, error) {
	if path == "-" {
		return decodeDocument(stdin, "stdin")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, InputError(missingHint(err), "%w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, InputError("name a file in it", "%s is a folder", path)
	}
	return decodeDocument(file, path)
}

func missingHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "name a snapshot, a recording or another file that is there; hightide ls lists the recordings"
	}
	return "name a file that can be read"
}

func decodeDocument(r io.Reader, name string) (*intake.Document, error) {
	document, err := intake.Decode(r, name)
	switch {
	case err == nil:
		return document, nil
	case errors.Is(err, intake.ErrUnknown):
		return nil, InputError("it reads "+intake.Known(), "%s %w", filepath.Base(name), err)
	case errors.Is(err, pickle.ErrUnsafe):
		return nil, InputError("a genuine snapshot holds plain data only: do not load this file with Python's pickle", "%s: %w", name, err)
	}
	return nil, InputError("is the file whole, and of this kind?", "%s: %w", name, err)
}
