package engine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/export"
	"hightide/internal/mem"
)

// ExportOptions say what becomes of a run.
type ExportOptions struct {
	Format string   // name of one of ExportFormats
	Tables []string // names of ExportTables; none: the first, or all of them into a folder
	Redact bool
	Out    string    // file or folder; "" or "-": Stdout
	Stdout io.Writer // not a terminal, for binary formats
}

// ExportName is something to choose from, with a line of help.
type ExportName struct {
	Name, Short string
	Binary      bool
}

// ExportFormats lists the formats.
func ExportFormats() []ExportName {
	var names []ExportName
	for _, f := range export.Formats {
		names = append(names, ExportName{f.Name, f.Short, f.Binary})
	}
	return names
}

// ExportTables lists the tables.
func ExportTables() []ExportName {
	var names []ExportName
	for _, t := range export.Tables {
		names = append(names, ExportName{t.Name, t.Short, false})
	}
	return names
}

// Export writes a run in another format and returns the files it made.
func (e *Engine) Export(ref string, o ExportOptions) ([]string, error) {
	format := export.Find(o.Format)
	if format == nil {
		return nil, UsageError("see hightide export --help", "there is no export format %q", o.Format)
	}
	tables, err := chooseTables(format, o.Tables)
	if err != nil {
		return nil, err
	}
	run, err := e.Load(ref)
	if err != nil {
		return nil, err
	}
	if o.Redact {
		run = export.Redact(run)
	}
	if o.Out == "" || o.Out == "-" {
		if len(tables) > 1 {
			return nil, UsageError("name a folder: -o FOLDER/", "several tables do not fit into one stream")
		}
		return nil, format.Write(o.Stdout, run, tables[0])
	}
	if !isFolder(o.Out) {
		if len(tables) > 1 {
			return nil, UsageError("name a folder: -o FOLDER/", "several tables do not fit into the file %s", o.Out)
		}
		return exportFile(o.Out, format, run, tables[0])
	}
	if format.Tables && len(o.Tables) == 0 {
		tables = tables[:0]
		for i := range export.Tables {
			tables = append(tables, &export.Tables[i])
		}
	}
	return exportFolder(o.Out, format, run, tables)
}

// chooseTables gives formats without tables the single table nil.
func chooseTables(format *export.Format, names []string) ([]*export.Table, error) {
	if !format.Tables {
		if len(names) > 0 {
			return nil, UsageError("--table goes with --csv and --parquet", "%s has no tables to choose from", format.Name)
		}
		return []*export.Table{nil}, nil
	}
	if len(names) == 0 {
		return []*export.Table{&export.Tables[0]}, nil
	}
	var tables []*export.Table
	for _, name := range names {
		table := export.FindTable(name)
		if table == nil {
			return nil, UsageError("see hightide export --help for the tables", "there is no table %q", name)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return strings.HasSuffix(path, "/") || err == nil && info.IsDir()
}

func exportFolder(dir string, format *export.Format, run *mem.Run, tables []*export.Table) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, InputError("name a folder that can be written", "export: %w", err)
	}
	var files []string
	for _, table := range tables {
		name := "run"
		if table != nil {
			name = table.Name
		}
		made, err := exportFile(filepath.Join(dir, name+format.Extension), format, run, table)
		files = append(files, made...)
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// exportFile writes beside the file and renames, so that a failure leaves what was there.
func exportFile(path string, format *export.Format, run *mem.Run, table *export.Table) ([]string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".hightide-export-*")
	if err != nil {
		return nil, InputError("name a file that can be written", "export: %w", err)
	}
	defer os.Remove(file.Name()) // gone already where all went well
	err = errors.Join(format.Write(file, run, table), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return nil, EnvironmentError("is there room?", "export to %s: %w", path, err)
	}
	return []string{path}, nil
}
