package replay

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/wire"
)

// save writes what was replayed. It is a snapshot as PyTorch dumps them (.pickle), which explain, diff,
// export and memory_viz open. Or it is a recording (.hightide) of it, which says that it was replayed. Several
// go into a folder.
func save(all []*replaying, out string) error {
	if len(all) == 1 && !files.IsFolder(out) {
		return all[0].save(out)
	}
	if strings.Contains(filepath.Base(out), ".") {
		return fail.Usage("name a folder: --output replayed/", "%d replays do not fit into the file %s", len(all), out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fail.Input("name a folder that can be written", "%w", err)
	}
	for i, r := range all {
		name, _, _ := strings.Cut(filepath.Base(r.result.File), ".")
		if err := r.save(filepath.Join(out, fmt.Sprintf("%02d-%s.pickle", i, name))); err != nil {
			return err
		}
	}
	return nil
}

func (r *replaying) save(path string) error {
	_, snapshot := allocator.Record(r.program, r.asked, r.snapshot, r.trace)
	var write func(io.Writer) error
	pickle := func(w io.Writer) error {
		return torch.Write(w, snapshot)
	}
	switch filepath.Ext(path) {
	case ".pickle", ".pkl":
		write = pickle
	case ".hightide":
		var data bytes.Buffer
		if err := pickle(&data); err != nil {
			return err
		}
		run := r.recording(data.Bytes())
		write = func(w io.Writer) error { return wire.Save(w, run) }
	default:
		return fail.Usage("--output replayed.pickle, or replayed.hightide",
			"--output %s ends with neither .pickle nor .hightide", path)
	}
	return files.Write(path, "replay", write)
}

// recording is a run that holds nothing but the replayed snapshot.
func (r *replaying) recording(pickle []byte) *mem.Run {
	var start, end int64
	if n := len(r.trace.Time); n > 0 {
		start, end = r.trace.Time[0], r.trace.Time[n-1]
	}
	options := map[string]string{"replayed": r.result.Base(), "alloc_conf": r.asked.Settings.String()}
	if r.result.Capacity > 0 {
		options["capacity"] = r.result.Capacity.String()
	}
	run := mem.NewRun()
	name, _, _ := strings.Cut(r.result.Base(), ".")
	_ = run.Add(mem.RunInfo{ID: "replay-" + name, Name: "replay of " + r.result.Base(), Verb: "replay",
		Label:   mem.Replayed,
		Command: []string{"hightide", "replay", r.result.Base()}, Version: r.o.Version, StartWall: start, Options: options})
	_ = run.Add(mem.Process{ID: 1, Role: "main", Start: 0, End: mem.Some(end - start)})
	_ = run.Add(mem.Snapshot{Process: 1, Time: end - start, Name: name + ".pickle", Format: "torch-pickle",
		Piece: pickle, Last: true})
	_ = run.Add(mem.End{Time: end - start})
	return run
}
