package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/format/stacks"
	"hightide/internal/format/torch"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/pickle"
	"hightide/internal/store"
)

// source is what a reference means: a file of any kind that package format reads, compressed or not, "-" for
// stdin, or a run.
type source struct {
	*format.Document
	ref  string
	open opener // of files that belong to it
}

// opener opens a file by name, where files of a snapshot or run are.
type opener func(name string) (io.ReadCloser, error)

// source reads what a reference means. A file that is not there, or of no known kind, is an input error
// with a hint.
func (e *Engine) source(ctx context.Context, ref string) (*source, error) {
	if inside := filepath.Join(ref, store.Recording); isFile(inside) {
		ref = inside
	}
	if isFile(ref) {
		document, err := e.document(ctx, ref)
		return &source{document, ref, beside(ref)}, err
	}
	row, run, err := e.Load(ctx, ref)
	return &source{&format.Document{Recording: run}, ref, func(name string) (io.ReadCloser, error) {
		s, err := e.store()
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return s.Open(row.ID, name)
	}}, err
}

// isFile says whether a reference is something to read as it is, were it a pipe, and not a run.
func isFile(ref string) bool {
	info, err := os.Stat(ref)
	return ref == "-" || err == nil && !info.IsDir()
}

// beside opens what lies in the folder of a file.
func beside(path string) opener {
	return func(name string) (io.ReadCloser, error) {
		if path == "-" {
			return nil, fs.ErrNotExist
		}
		return os.Open(filepath.Join(filepath.Dir(path), name))
	}
}

// fileName is how a report calls a file.
func fileName(ref string) string {
	switch {
	case ref == "-":
		return "stdin"
	case strings.HasPrefix(ref, "/dev/fd/"): // a pipe of the shell's
		return "pipe " + filepath.Base(ref)
	}
	return filepath.Base(ref)
}

// document reads a file, with its kind told from its content.
func (e *Engine) document(ctx context.Context, path string) (*format.Document, error) {
	if path == "-" {
		return e.decode(ctx, e.stdin(), "stdin")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Input("name a file that can be read", "%w", err)
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { file.Close() })() // what still reads it fails
	document, err := e.decode(ctx, file, path)
	if errors.Is(err, stacks.ErrMemray) {
		return e.memrayDocument(ctx, path)
	}
	return document, err
}

// decode reads a file and explains why it cannot be read.
func (e *Engine) decode(ctx context.Context, r io.Reader, name string) (*format.Document, error) {
	if !isSmall(r) {
		defer e.Runtime.TuneTo(launch.Reading)()
	}
	document, err := format.Decode(r, name)
	switch {
	case err == nil:
		return document, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, format.ErrText):
		return nil, fail.Input("paste the error itself, whole; a kind that is not known is not guessed. docs/formats/intake.md lists what is read", "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrUnknown):
		return nil, fail.Input("hightide reads "+format.Known(), "%s: %w", filepath.Base(name), err)
	case errors.Is(err, format.ErrEmpty):
		return nil, fail.Input("did what wrote it end too early, or was the disk full?", "%s %w", filepath.Base(name), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fail.Input("was it copied whole, and had what wrote it ended?", "%s ends in the middle", name)
	case errors.Is(err, stacks.ErrMemray):
		return nil, fail.Input("give memray's captures by name, not through a pipe", "%s: %w", name, err)
	case errors.Is(err, pickle.ErrUnsafe):
		return nil, fail.Input("a genuine snapshot holds plain data only: do not load this file with Python's pickle", "%s: %w", name, err)
	}
	return nil, fail.Input("is the file whole, and of this kind?", "%s: %w", name, err)
}

// isSmall says whether reading takes no more than some 100 MB. A larger snapshot becomes columns that hold no
// pointers: collecting often costs little then, and keeps what has been outgrown from piling up beside them.
func isSmall(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() < 16<<20
}

// memrayDocument has memray itself make a table of its capture.
func (e *Engine) memrayDocument(ctx context.Context, path string) (*format.Document, error) {
	const hint = "pip install memray, in the environment that recorded it or any other on PATH"
	if e.NoPrograms {
		return nil, fail.Input("memray transform csv makes a table of it that can be read", "%s is a capture of memray, and starting memray to read it is not allowed here", path)
	}
	memray, err := exec.LookPath("memray")
	if err != nil {
		return nil, fail.Environment(hint, "%s is a capture of memray, which is not installed here", path)
	}
	dir, err := os.MkdirTemp("", "hightide-memray-")
	if err != nil {
		return nil, fail.Environment("is there room in the temporary folder?", "read %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, fail.Environment("name the file from the root", "read %s: %w", path, err)
	}
	table := filepath.Join(dir, "table.csv")
	if said, err := exec.CommandContext(ctx, memray, "transform", "csv", "--force", "-o", table, whole).CombinedOutput(); err != nil {
		return nil, fail.Input("was it recorded by a newer memray?", "memray cannot read %s: %s", path, lastLine(said))
	}
	file, err := os.Open(table)
	if err != nil {
		return nil, fail.Environment("is memray whole?", "memray made no table of %s: %w", path, err)
	}
	defer file.Close()
	return e.decode(ctx, file, path)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// snapshot is an allocator snapshot, with what it is called and what its run knows of it.
type snapshot struct {
	*mem.AllocatorSnapshot
	name     string
	stepEnds []int64 // as recorded, ns of the wall clock
}

// Message is a pasted out-of-memory message, explained in sentences. It is an error where a report was asked for.
type Message []string

func (m Message) Error() string { return strings.Join(m, " ") }

// snapshots gives the allocator snapshots of a file or run, with their owners where there are some. A file of
// another kind that says nothing of an allocator is an input error.
func (s *source) snapshots() (all []snapshot, err error) {
	switch {
	case s.Snapshot != nil:
		all = []snapshot{{s.Snapshot, fileName(s.ref), nil}}
	case s.Recording != nil:
		all, _ = recordedSnapshots(s.Recording)
	case len(s.Words) > 0:
		return nil, fail.Input("explain it alone", "%s is a message: %w", fileName(s.ref), Message(s.Words))
	default:
		return nil, fail.Input("hightide explain "+s.ref+" shows it", "%s is %s, which holds no allocator snapshot", s.ref, s.Format)
	}
	for _, one := range all {
		if err := addOwners(one, s.open); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addOwners adds what the agent wrote beside a snapshot (docs/formats/imagined.md), if it did.
func addOwners(s snapshot, open opener) error {
	name := s.name + ".owners.json"
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail.Input("make it readable, or move it away", "%w", err)
	}
	defer file.Close()
	if s.Owners, err = torch.Owners(file); err != nil {
		return fail.Input("move it away to do without", "%s: %w", name, err)
	}
	return nil
}

// recordedSnapshots are those of a recording that can be read, and why the others cannot.
func recordedSnapshots(run *mem.Run) (all []snapshot, failed []error) {
	for _, file := range run.Snapshots {
		if file.Format == profileFormat {
			continue
		}
		s, err := torch.Read(bytes.NewReader(file.Data))
		if err != nil {
			failed = append(failed, fmt.Errorf("allocator snapshot %s cannot be read: %w", file.Name, err))
			continue
		}
		if l := run.Info.Label; l == mem.Imagined || l == mem.Replayed {
			s.Label = l
		}
		all = append(all, snapshot{s, file.Name, stepEnds(run, file.Process)})
	}
	return all, failed
}

// profileFormat is that of memory by line, which JAX writes where PyTorch writes a snapshot.
const profileFormat = "pprof"

// recordedProfiles reads them into a map by name, and says why some cannot be read.
func recordedProfiles(run *mem.Run, into map[string]*mem.Profile) (failed []error) {
	for _, file := range run.Snapshots {
		if file.Format != profileFormat {
			continue
		}
		d, err := format.Decode(bytes.NewReader(file.Data), file.Name)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("memory profile %s cannot be read: %w", file.Name, err))
		case d.Profile != nil:
			into[file.Name] = d.Profile
		}
	}
	return failed
}

// stepEnds are those of a process, of the wall clock.
func stepEnds(run *mem.Run, process uint32) (ends []int64) {
	for _, s := range run.Steps {
		if s.Process == process {
			ends = append(ends, run.Info.StartWall+s.Time-run.Info.StartMono)
		}
	}
	return ends
}
