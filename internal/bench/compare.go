package bench

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/gpus"
	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Axes are the axes of a spec, for what is to be told before anything is measured.
func Axes(o Options) ([]matrix.Axis, error) {
	spec, _, err := o.spec()
	if err != nil {
		return nil, err
	}
	return spec.Axes, nil
}

// Compare says what a matrix says, with the memory of imaginary devices from the catalogue, and what explains the
// largest differences from the recordings that are here.
func Compare(ctx context.Context, e *engine.Engine, r *matrix.Result, catalogue []string) (*matrix.Comparison, error) {
	known, err := gpus.Load(catalogue...)
	if err != nil {
		return nil, err
	}
	return matrix.Compare(r, matrix.Options{Memory: deviceMemory(r.Axes, known), Holdings: holdings(ctx, e)}), nil
}

// CellReports writes the report of one run of each cell into a folder, and says where each run's lies as seen from
// beside that folder. A run whose recording is gone has none.
func CellReports(ctx context.Context, e *engine.Engine, r *matrix.Result, figure matrix.Figure,
	folder string) (map[string]string, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fail.Environment("name a page in a folder that can be written to", "write the cells' reports: %w", err)
	}
	reports := map[string]string{}
	for _, run := range matrix.Typical(r, figure) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, row, err := e.Report(ctx, run)
		if err != nil {
			continue // the page says no more of it than without
		}
		name := filepath.Base(row.ID) + ".html"
		if err := files.Write(filepath.Join(folder, name), "report of a cell", made.HTML); err != nil {
			return nil, err
		}
		reports[run] = (&url.URL{Path: filepath.Base(folder) + "/" + name}).String()
	}
	return reports, nil
}

// deviceMemory is what imaginary devices have for programs.
func deviceMemory(axes []matrix.Axis, known *gpus.Catalogue) map[string]matrix.Room {
	memory := map[string]matrix.Room{}
	for _, a := range axes {
		for _, value := range a.Values {
			name, imagined := strings.CutPrefix(value, matrix.DeviceImagined)
			if a.Name != matrix.AxisDevice || !imagined {
				continue
			}
			if gpu, err := known.Find(name); err == nil {
				memory[value] = matrix.Room{Total: int64(gpu.Total), Context: int64(gpu.Overhead)}
			}
		}
	}
	return memory
}

// holdings looks into recordings, each once.
func holdings(ctx context.Context, e *engine.Engine) matrix.Holdings {
	known := map[string]*report.Report{}
	return func(run string, onDevice bool) ([]matrix.Holding, bool) {
		r, seen := known[run]
		if !seen {
			if ctx.Err() == nil {
				r, _, _ = e.Report(ctx, run) // one that is gone or damaged explains nothing
			}
			known[run] = r
		}
		if r == nil {
			return nil, false
		}
		all := hostHoldings(r)
		if onDevice {
			all = deviceHoldings(r)
		}
		return all, len(all) > 0
	}
}

// hostHoldings are what the peak was made of, and which lines held the heap.
func hostHoldings(r *report.Report) (all []matrix.Holding) {
	add := func(by string, held []report.Holding) {
		for _, h := range held {
			all = append(all, matrix.Holding{By: by, Name: h.Name, Bytes: mem.Bytes(h.Bytes), Label: h.Label})
		}
	}
	add("part", r.Parts)
	if r.Lines != nil {
		add("line", r.Lines.Lines)
	}
	return all
}

// deviceHoldings are what the verdict on an imaginary device says of its peak.
func deviceHoldings(r *report.Report) (all []matrix.Holding) {
	if r.Imagined == nil {
		return nil
	}
	allocated, okAllocated := r.Imagined.Allocated.Get()
	reserved, okReserved := r.Imagined.Reserved.Get()
	if used, ok := r.Imagined.Used.Get(); ok && okAllocated && okReserved { // peaks, which may be of different moments
		for _, part := range []struct {
			name  string
			bytes int64
			label mem.Label
		}{
			{"tensors", allocated, mem.Imagined}, {"beyond them in the allocator", reserved - allocated, mem.Imagined},
			{"context and libraries", used - reserved, mem.Estimated},
		} {
			all = append(all, matrix.Holding{By: "part", Name: part.name, Bytes: mem.Bytes(max(part.bytes, 0)),
				Label: part.label})
		}
	}
	for _, c := range r.Imagined.Categories {
		all = append(all, matrix.Holding{By: "category", Name: c.Name, Bytes: c.Bytes, Label: mem.Imagined})
	}
	for _, l := range r.Imagined.Lines {
		all = append(all, matrix.Holding{By: "line", Name: mem.LineName(mem.Location{File: l.File, Line: l.Line}),
			Bytes: l.Bytes, Label: mem.Imagined})
	}
	return all
}

// WriteSeed writes the samples of each cell's typical run into folders, as the dashboard that gave the idea reads
// them. It says how many it wrote: recordings may be gone.
func WriteSeed(ctx context.Context, e *engine.Engine, r *matrix.Result, dir string) (int, error) {
	folders, err := matrix.SeedFolders(r)
	if err != nil {
		return 0, err
	}
	written := 0
	for _, f := range folders {
		_, run, err := e.Load(ctx, f.Trial.Run)
		if err != nil {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return written, fail.Environment("name a folder that can be written", "%w", err)
		}
		err = files.Write(filepath.Join(path, matrix.SeedSamples), "samples",
			func(w io.Writer) error { return matrix.WriteSeedSamples(w, run) })
		if err == nil {
			err = files.Write(filepath.Join(path, matrix.SeedMetadata), "samples",
				func(w io.Writer) error { return matrix.WriteSeedMetadata(w, r, f, &run.Info.Host) })
		}
		if err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}
