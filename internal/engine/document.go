package engine

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

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
	document, err := decodeDocument(file, path)
	if errors.Is(err, intake.ErrMemray) {
		return memrayDocument(path)
	}
	return document, err
}

// memrayDocument has memray itself make a table of its capture.
func memrayDocument(path string) (*intake.Document, error) {
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
	if said, err := exec.Command(memray, "transform", "csv", "--force", "-o", table, whole).CombinedOutput(); err != nil {
		return nil, InputError("was it recorded by a newer memray?", "memray cannot read %s: %s", path, lastLine(said))
	}
	file, err := os.Open(table)
	if err != nil {
		return nil, EnvironmentError("is memray whole?", "memray made no table of %s: %w", path, err)
	}
	defer file.Close()
	return decodeDocument(file, path)
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

// largeHeap is from where on memory that is no longer needed is given back at once.
const largeHeap = 128 << 20

// smallFile is up to where reading takes no more than some 100 MB.
const smallFile = 16 << 20

// usualGC is the runtime's own choice: a heap is collected once it has doubled.
const usualGC = 100

// CollectLate has the first collection come at 32 MiB of heap instead of 4. Most commands are over by then, and
// collecting on the way there took a tenth of their time. After it all is as usual.
func CollectLate() {
	const late = 8 * usualGC
	debug.SetGCPercent(late)
	runtime.AddCleanup(&struct{ _ *byte }{}, func(int) {
		if now := debug.SetGCPercent(usualGC); now != late {
			debug.SetGCPercent(now)
		}
	}, 0)
}

func decodeDocument(r io.Reader, name string) (*intake.Document, error) {
	document, err := decode(r, name)
	switch {
	case err == nil:
		return document, nil
	case errors.Is(err, intake.ErrUnknown):
		return nil, InputError("hightide reads "+intake.Known(), "%s: %w", filepath.Base(name), err)
	case errors.Is(err, intake.ErrEmpty):
		return nil, InputError("did what wrote it end too early, or was the disk full?", "%s %w", filepath.Base(name), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, InputError("was it copied whole, and had what wrote it ended?", "%s ends in the middle", name)
	case errors.Is(err, intake.ErrMemray):
		return nil, InputError("give memray's captures by name, not through a pipe", "%s: %w", name, err)
	case errors.Is(err, pickle.ErrUnsafe):
		return nil, InputError("a genuine snapshot holds plain data only: do not load this file with Python's pickle", "%s: %w", name, err)
	}
	return nil, InputError("is the file whole, and of this kind?", "%s: %w", name, err)
}

// decode reads a file. A large snapshot becomes columns that hold no pointers: collecting often costs little, and keeps
// what has been outgrown from piling up beside them.
func decode(r io.Reader, name string) (*intake.Document, error) {
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < smallFile {
			return intake.Decode(r, name)
		}
	}
	debug.SetGCPercent(25)
	defer debug.SetGCPercent(usualGC)
	document, err := intake.Decode(r, name)
	var heap runtime.MemStats
	if runtime.ReadMemStats(&heap); heap.HeapInuse > largeHeap {
		debug.FreeOSMemory() // what only reading needed: analyses take as much again
	}
	return document, err
}
