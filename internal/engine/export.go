package engine

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"hightide/internal/files"
	"hightide/internal/format"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
)

// ExportOptions say what becomes of a run, a snapshot or a profile.
type ExportOptions struct {
	Format string   // name of one of ExportFormats
	Tables []string // names of ExportTables; none: the first, or all of them into a folder
	Redact bool
	Device mem.Optional // of a snapshot; unknown: all
	// Filter lets those blocks of a snapshot through that have a matching frame (file:function); nil: all.
	Filter *regexp.Regexp
	// Measure is what graphs by stack show: bytes, bytes-time, count, churn, blocks, or a kind of the profile's own; "": bytes.
	Measure string
	Out     string    // file or folder; "" or "-": Stdout
	Stdout  io.Writer // not a terminal, for binary formats
}

// ExportName is something to choose from, with a line of help.
type ExportName struct {
	Name, Short string
	Binary      bool
}

// ExportFormats lists the formats.
func ExportFormats() []ExportName {
	var names []ExportName
	for _, f := range format.Written() {
		names = append(names, ExportName{f.Name, f.Writes, f.Binary})
	}
	return names
}

// ExportTables lists the tables of runs, and those of snapshots.
func ExportTables() (runs, snapshots []ExportName) {
	for _, t := range format.TablesOf(format.Runs) {
		runs = append(runs, ExportName{t.Name, t.Short, false})
	}
	for _, t := range format.TablesOf(format.Snapshots) {
		snapshots = append(snapshots, ExportName{t.Name, t.Short, false})
	}
	return runs, snapshots
}

// Export writes a run, or a file of any kind that Document reads, in another format and returns the
// files it made.
func (e *Engine) Export(ctx context.Context, ref string, o ExportOptions) ([]string, error) {
	to := format.Find(o.Format)
	if to == nil {
		return nil, UsageError("see hightide export --help", "there is no export format %q", o.Format)
	}
	if len(o.Tables) > 0 && !to.Tables {
		return nil, UsageError("--table goes with --csv and --parquet", "%s has no tables to choose from", to.Name)
	}
	if o.Measure != "" && !to.Measures {
		return nil, UsageError("--measure goes with --folded, --dot, --pprof and --speedscope", "%s has no measure to choose", to.Name)
	}
	from, err := e.exportSource(ctx, ref, to)
	if err != nil {
		return nil, err
	}
	tables, err := chooseTables(to, from.Kind(), o.Tables)
	if err != nil {
		return nil, err
	}
	if device, ok := o.Device.Get(); ok {
		if from, err = from.Only(int(device)); err != nil {
			return nil, UsageError("hightide explain "+ref+" shows what there is", "--device: %w", err)
		}
	}
	if o.Filter != nil {
		if from, err = from.Matching(o.Filter); err != nil {
			return nil, UsageError("hightide explain "+ref+" shows what there is", "--filter: %w", err)
		}
	}
	if o.Redact {
		from = from.Redact()
	}
	from.Measure = o.Measure
	if err := from.CheckMeasure(); err != nil {
		return nil, UsageError("hightide export --help says what each measure is", "%w", err)
	}
	if o.Out == "" || o.Out == "-" {
		if len(tables) > 1 {
			return nil, UsageError("name a folder: -o FOLDER/", "several tables do not fit into one stream")
		}
		return nil, to.Write(o.Stdout, from, tables[0])
	}
	if !files.IsFolder(o.Out) {
		if len(tables) > 1 {
			return nil, UsageError("name a folder: -o FOLDER/", "several tables do not fit into the file %s", o.Out)
		}
		return exportFile(o.Out, to, from, tables[0])
	}
	if to.Tables && len(o.Tables) == 0 {
		tables = format.TablesOf(from.Kind())
	}
	return exportFolder(o.Out, to, from, tables)
}

// exportSource finds what a reference means and whether the format can hold it. Of a run, a format
// for snapshots takes the last whole one that the run recorded.
func (e *Engine) exportSource(ctx context.Context, ref string, to *format.Format) (format.Source, error) {
	from, err := e.exportable(ctx, ref)
	if err != nil {
		return from, err
	}
	if from.Kind() == format.Runs && to.Takes&format.Runs == 0 {
		if from, err = lastSnapshot(from.Run, to); err != nil {
			return from, err
		}
	}
	if to.Takes&from.Kind() == 0 {
		return from, UsageError("hightide export --help says which formats take what", "%s cannot hold %s", to.Name, from.Kind())
	}
	return from, nil
}

func (e *Engine) exportable(ctx context.Context, ref string) (format.Source, error) {
	if isFile(ref) {
		document, err := e.Document(ctx, ref)
		switch {
		case err != nil:
			return format.Source{}, err
		case document.Snapshot != nil:
			return format.Source{Snapshot: document.Snapshot}, nil
		case document.Profile != nil:
			return format.Source{Profile: document.Profile}, nil
		case document.Recording != nil:
			return format.Source{Run: document.Recording}, nil
		}
		return format.Source{}, InputError("hightide explain shows it", "%s is %s, which there is nothing to export of", ref, document.Format)
	}
	_, run, err := e.Load(ctx, ref)
	return format.Source{Run: run}, err
}

func lastSnapshot(run *mem.Run, to *format.Format) (format.Source, error) {
	for _, file := range slices.Backward(run.Snapshots) {
		if snapshot, err := torch.Read(bytes.NewReader(file.Data)); err == nil && file.Complete {
			return format.Source{Snapshot: snapshot}, nil
		}
	}
	return format.Source{}, InputError("name a snapshot's file, or a run that recorded one",
		"%s needs an allocator snapshot, and this run holds none that is whole", to.Name)
}

// chooseTables gives formats without tables the single table nil.
func chooseTables(to *format.Format, kind format.Kinds, names []string) ([]*format.Table, error) {
	if !to.Tables {
		return []*format.Table{nil}, nil
	}
	if len(names) == 0 {
		return format.TablesOf(kind)[:1], nil
	}
	var tables []*format.Table
	for _, name := range names {
		table := format.FindTable(kind, name)
		if table == nil {
			return nil, UsageError("see hightide export --help for the tables", "%s has no table %q", kind, name)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

func exportFolder(dir string, to *format.Format, from format.Source, tables []*format.Table) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, InputError("name a folder that can be written", "export: %w", err)
	}
	var files []string
	for _, table := range tables {
		name := "run"
		if table != nil {
			name = table.Name
		}
		made, err := exportFile(filepath.Join(dir, name+to.Extension), to, from, table)
		files = append(files, made...)
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

func exportFile(path string, to *format.Format, from format.Source, table *format.Table) ([]string, error) {
	if err := files.Write(path, "export", func(w io.Writer) error { return to.Write(w, from, table) }); err != nil {
		return nil, err
	}
	return []string{path}, nil
}
