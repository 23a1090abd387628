package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/store"
)

// Gathered is what references mean to a front door that shows things: files of snapshots, and runs.
type Gathered struct {
	Snapshots []string    // paths, in their order
	Runs      []store.Run // of the store, and visitors
}

// snapshotFormats are the formats that become an allocator snapshot.
var snapshotFormats = []string{"torch-pickle", "torch-json", "profiler-trace", "xspace"}

// Gather looks at references as a person names them: a snapshot, a recording, a folder of these, or a run of the store. Recordings
// outside the store become the engine's visitors. Of a file only the beginning is read.
func (e *Engine) Gather(ctx context.Context, refs []string) (*Gathered, error) {
	g := &Gathered{}
	for _, ref := range refs {
		if err := e.gather(ctx, g, ref); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (e *Engine) gather(ctx context.Context, g *Gathered, ref string) error {
	if ref == "-" {
		return fail.Usage("write it to a file, and name that", "nothing is read from stdin here")
	}
	info, err := os.Stat(ref)
	switch {
	case err == nil && info.IsDir():
		return e.gatherFolder(ctx, g, ref)
	case err == nil:
		return e.gatherFile(ctx, g, ref)
	}
	run, err := e.Resolve(ctx, ref)
	if err == nil {
		g.Runs = append(g.Runs, run)
	}
	return err
}

// gatherFolder takes the recording of a run's folder, else every file of a folder that can be shown.
func (e *Engine) gatherFolder(ctx context.Context, g *Gathered, folder string) error {
	if inside := filepath.Join(folder, store.Recording); isFile(inside) {
		return e.gatherFile(ctx, g, inside)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fail.Input("name a folder that can be read", "%w", err)
	}
	found := 0
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch kind, _, err := tell(path); {
		case err != nil || !isFile(path):
		case kind.Name == recordingFormat || slices.Contains(snapshotFormats, kind.Name):
			if err := e.gatherFile(ctx, g, path); err != nil {
				return err
			}
			found++
		}
	}
	if found == 0 {
		return fail.Input("name a file, or a folder with snapshots in it", "%s holds neither a snapshot nor a recording", folder)
	}
	return nil
}

const recordingFormat = "recording"

func (e *Engine) gatherFile(ctx context.Context, g *Gathered, path string) error {
	kind, compressed, err := tell(path)
	switch {
	case errors.Is(err, format.ErrUnknown):
		return fail.Input("hightide reads "+format.Known(), "%s: %w", path, err)
	case errors.Is(err, format.ErrEmpty):
		return fail.Input("did what wrote it end too early, or was the disk full?", "%s %w", path, err)
	case err != nil:
		return fail.Input("name a file that can be read", "%s: %w", path, err)
	case slices.Contains(snapshotFormats, kind.Name):
		g.Snapshots = append(g.Snapshots, path)
	case kind.Name == recordingFormat && compressed:
		return fail.Input("unpack it first, as by gunzip or unzstd", "%s is a compressed recording", path)
	case kind.Name == recordingFormat:
		run, err := e.Visit(ctx, path, store.FromFile, nil)
		if err != nil {
			return err
		}
		g.Runs = append(g.Runs, run)
	default:
		return fail.Input("hightide explain "+path+" shows it", "%s is %s, which this page does not show", path, kind.Reads)
	}
	return nil
}

// Visit has a recording outside the store listed with its runs, and says how it is called. drop takes its file away when the run is
// deleted, or at once where the store has the run already; nil: the file stays.
func (e *Engine) Visit(ctx context.Context, path, from string, drop func()) (store.Run, error) {
	if e.Visitors == nil {
		e.Visitors = new(store.Visitors)
	}
	var known bool
	run, err := inStore(ctx, e, func(s store.Store) (run store.Run, err error) {
		run, known, err = e.Visitors.Add(s, absolute(path), from, drop)
		return run, err
	})
	if err == nil && known && drop != nil {
		drop()
	}
	return run, err
}

func tell(path string) (*format.Format, bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	kind, compressed, err := format.Tell(file)
	if err != nil && !errors.Is(err, format.ErrUnknown) && !errors.Is(err, format.ErrEmpty) {
		err = fmt.Errorf("it cannot be read: %w", err)
	}
	return kind, compressed, err
}
