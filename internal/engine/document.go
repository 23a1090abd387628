package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"hightide/internal/format"
	"hightide/internal/format/stacks"
	"hightide/internal/pickle"
)

// Document reads a file of any kind that package format knows, compressed or not, with its kind told from
// its content; "-" is stdin. A file that is not there, or of no known kind, is an input error (exit
// code 3) with a hint.
func (e *Engine) Document(ctx context.Context, path string) (*format.Document, error) {
	if path == "-" {
		return e.decodeDocument(ctx, e.stdin(), "stdin")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, InputError(missingHint(err), "%w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, InputError("name a file in it", "%s is a folder", path)
	}
	defer context.AfterFunc(ctx, func() { file.Close() })() // what still reads it fails
	document, err := e.decodeDocument(ctx, file, path)
	if errors.Is(err, stacks.ErrMemray) {
		return e.memrayDocument(ctx, path)
	}
	return document, err
}

// memrayDocument has memray itself make a table of its capture.
func (e *Engine) memrayDocument(ctx context.Context, path string) (*format.Document, error) {
	const hint = "pip install memray, in the environment that recorded it or any other on PATH"
	memray, err := exec.LookPath("memray")
	if err != nil {
		return nil, EnvironmentError(hint, "%s is a capture of memray, which is not installed here", path)
	}
	dir, err := os.MkdirTemp("", "hightide-memray-")
	if err != nil {
		return nil, EnvironmentError("is there room in the temporary folder?", "read %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, EnvironmentError("name the file from the root", "read %s: %w", path, err)
	}
	table := filepath.Join(dir, "table.csv")
	if said, err := exec.CommandContext(ctx, memray, "transform", "csv", "--force", "-o", table, whole).CombinedOutput(); err != nil {
		return nil, InputError("was it recorded by a newer memray?", "memray cannot read %s: %s", path, lastLine(said))
	}
	file, err := os.Open(table)
	if err != nil {
		return nil, EnvironmentError("is memray whole?", "memray made no table of %s: %w", path, err)
	}
	defer file.Close()
	return e.decodeDocument(ctx, file, path)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func missingHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "name a snapshot, a recording or another file that is there; hightide ls lists the recordings"
	}
	return "name a file that can be read"
}

// smallFile is up to where reading takes no more than some 100 MB.
const smallFile = 16 << 20

func (e *Engine) decodeDocument(ctx context.Context, r io.Reader, name string) (*format.Document, error) {
	document, err := e.decode(ctx, r, name)
	switch {
	case err == nil:
		return document, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, format.ErrUnknown):
		return nil, InputError("hightide reads "+format.Known(), "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrEmpty):
		return nil, InputError("did what wrote it end too early, or was the disk full?", "%s %w", filepath.Base(name), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, InputError("was it copied whole, and had what wrote it ended?", "%s ends in the middle", name)
	case errors.Is(err, stacks.ErrMemray):
		return nil, InputError("give memray's captures by name, not through a pipe", "%s: %w", name, err)
	case errors.Is(err, pickle.ErrUnsafe):
		return nil, InputError("a genuine snapshot holds plain data only: do not load this file with Python's pickle", "%s: %w", name, err)
	}
	return nil, InputError("is the file whole, and of this kind?", "%s: %w", name, err)
}

// decode reads a file. A large snapshot becomes columns that hold no pointers: collecting often costs little, and keeps
// what has been outgrown from piling up beside them.
func (e *Engine) decode(ctx context.Context, r io.Reader, name string) (*format.Document, error) {
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < smallFile {
			return format.Decode(r, name)
		}
	}
	defer e.Runtime.TuneTo(Reading)()
	return format.Decode(r, name)
}

// stdin is what "-" reads.
func (e *Engine) stdin() io.Reader {
	if e.Runtime.Stdin == nil {
		return strings.NewReader("")
	}
	return e.Runtime.Stdin
}

// stderr takes what a helper program of ours has to say.
func (e *Engine) stderr() io.Writer {
	if e.Runtime.Stderr == nil {
		return io.Discard
	}
	return e.Runtime.Stderr
}
