package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/format"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/replay"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/usage"
)

// Explain reads files and runs and says who holds the device memory, in one report. A run also gets
// its own analyses where it is the only reference.
func (e *Engine) Explain(ctx context.Context, refs []string, o analyze.ExplainOptions) (*report.Report, error) {
	o.Advise = adviseOOM
	x := analyze.Explaining{Report: report.New()}
	for _, ref := range refs {
		snapshots, run, err := e.snapshotsOf(ctx, ref)
		var other *foreign
		if errors.As(err, &other) {
			other.explain(x.Report, fileName(ref), o.Top)
			continue
		}
		if err != nil {
			return nil, err
		}
		if run != nil && len(refs) == 1 {
			x.Report = Analyze(run)
			if len(snapshots) == 0 {
				x.Report.AddNote("The run recorded no allocator snapshot, so there is nothing of a device to explain: hightide run --snapshot-on exit records one.")
			}
		}
		o.Columns = pictureColumns / max(1, len(refs), len(snapshots))
		o.Several = len(refs) > 1 || len(snapshots) > 1
		x.Options = o
		for _, s := range snapshots {
			if err := x.Add(s.snapshot, s.name, s.steps); err != nil {
				return nil, InputError("hightide explain --help says what can be chosen", "%w", err)
			}
		}
	}
	if err := x.Finish(); err != nil {
		return nil, InputError("name events that there are", "%w", err)
	}
	r := x.Report
	if r.Run.Name == "" {
		var names []string
		for _, ref := range refs {
			names = append(names, fileName(ref))
		}
		r.Run.Name = strings.Join(names, " ")
	}
	return r, nil
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

// pictureColumns is how many columns the courses of all devices have together: a page is to stay below 1 MB.
const pictureColumns = 1200

// adviseOOM says which settings would have avoided an out-of-memory, in words and for programs.
func adviseOOM(s *mem.AllocatorSnapshot, device int) (string, any) {
	advice, err := replay.Advise(s, device)
	if err != nil || advice == nil {
		return "", nil // such a trace cannot be replayed
	}
	return advice.Text(), advice
}

type namedSnapshot struct {
	name     string
	snapshot *mem.AllocatorSnapshot
	steps    []int64 // ends as recorded, ns of the wall clock
}

// isFile says whether a reference is something to read as it is, were it a pipe, and not a run.
func isFile(ref string) bool {
	info, err := os.Stat(ref)
	return ref == "-" || err == nil && !info.IsDir()
}

// snapshotsOf gives the allocator snapshots of a file or run. A file of another kind that says
// nothing of an allocator is an input error.
func (e *Engine) snapshotsOf(ctx context.Context, ref string) ([]namedSnapshot, *mem.Run, error) {
	if inside := filepath.Join(ref, store.Recording); isFile(inside) {
		ref = inside
	}
	if !isFile(ref) {
		return e.snapshotsOfRun(ctx, ref)
	}
	document, err := e.Document(ctx, ref)
	switch {
	case err != nil:
		return nil, nil, err
	case document.Snapshot != nil:
		if err := addOwners(document.Snapshot, fileName(ref), beside(ref)); err != nil {
			return nil, nil, err
		}
		return []namedSnapshot{{name: fileName(ref), snapshot: document.Snapshot}}, nil, nil
	case document.Recording != nil:
		named, err := runSnapshots(document.Recording, beside(ref))
		return named, document.Recording, err
	case len(document.Words) > 0:
		return nil, nil, InputError("explain it alone", "%s is a message: %w", fileName(ref), Message(document.Words))
	}
	return nil, nil, InputError("hightide explain "+ref+" shows it", "%w", &foreign{ref, document})
}

// snapshotsOfRun reads a run, and what was attached to it, from the store.
func (e *Engine) snapshotsOfRun(ctx context.Context, ref string) (named []namedSnapshot, run *mem.Run, err error) {
	err = e.with(ctx, func(s store.Store) error {
		row, loaded, err := store.Load(s, ref)
		if err != nil {
			return err
		}
		run = loaded
		named, err = runSnapshots(run, func(name string) (io.ReadCloser, error) { return s.Open(row.ID, name) })
		return err
	})
	return named, run, err
}

// foreign is a file that says who holds memory without being an allocator's snapshot; where one is needed, an error.
type foreign struct {
	ref string
	*format.Document
}

func (f *foreign) Error() string {
	return fmt.Sprintf("%s is %s, which holds no allocator snapshot", f.ref, f.Format)
}

func (f *foreign) explain(r *report.Report, name string, top int) {
	if f.Profile != nil {
		analyze.ExplainProfile(r, f.Profile, name, top)
	} else if f.Mappings != nil {
		analyze.ExplainMappings(r, f.Mappings, name, top)
	}
}

// opener opens a file by name, where files of a snapshot or run are.
type opener func(name string) (io.ReadCloser, error)

// beside opens what lies in the folder of a file.
func beside(path string) opener {
	if path == "-" {
		return nothing
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(filepath.Dir(path), name)) }
}

func nothing(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }

// addOwners adds what the agent wrote beside a snapshot (docs/formats/imagined.md), if it did.
func addOwners(s *mem.AllocatorSnapshot, name string, open opener) error {
	name += ".owners.json"
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return InputError("make it readable, or move it away", "%w", err)
	}
	defer file.Close()
	if s.Owners, err = torch.Owners(file); err != nil {
		return InputError("move it away to do without", "%s: %w", name, err)
	}
	return nil
}

// runSnapshots are those of a recording, with their owners where there are some.
func runSnapshots(run *mem.Run, open opener) ([]namedSnapshot, error) {
	var all []namedSnapshot
	for _, file := range run.Snapshots {
		s, err := torch.Read(bytes.NewReader(file.Data))
		if err != nil {
			continue
		}
		if l := run.Info.Label; l == mem.Imagined || l == mem.Replayed {
			s.Label = l
		}
		if err := addOwners(s, file.Name, open); err != nil {
			return nil, err
		}
		all = append(all, namedSnapshot{file.Name, s, stepEnds(run, file.Process)})
	}
	return all, nil
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

// Rules reads a file of category rules; "" is none.
func Rules(path string) ([]usage.CategoryRule, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, InputError("name a file of rules", "%w", err)
	}
	rules, err := usage.ParseRules(string(text))
	if err != nil {
		return nil, InputError("docs/explain.md describes the rules", "%s: %w", path, err)
	}
	return rules, nil
}

// Message is a pasted out-of-memory message, explained in sentences. It is an error where a report was asked for.
type Message []string

func (m Message) Error() string { return strings.Join(m, " ") }
