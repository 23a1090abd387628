package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/format"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// ExportOptions say what becomes of a run, a snapshot or a profile.
type ExportOptions struct {
	Format string   // name of one of format.Written
	Tables []string // names of format.TablesOf; none: the first, or all of them into a folder
	Redact bool
	Device mem.Optional // of a snapshot; unknown: all
	// Filter lets those blocks of a snapshot through that have a matching frame (file:function); nil: all.
	Filter *regexp.Regexp
	// Measure is what graphs by stack show: bytes, bytes-time, count, churn, blocks, or a kind of the profile's own; "":
	// bytes.
	Measure string
	Out     string    // file or folder; "" or "-": Stdout
	Stdout  io.Writer // not a terminal, for binary formats
}

// Export writes a run, or a file of any kind, in another format and returns the files it made.
func (e *Engine) Export(ctx context.Context, ref string, o ExportOptions) ([]string, error) {
	to, err := o.format()
	if err != nil {
		return nil, err
	}
	from, err := e.exportable(ctx, ref, to)
	if err != nil {
		return nil, err
	}
	tables, err := o.tables(to, from.Kind())
	if err != nil {
		return nil, err
	}
	if from, err = o.part(from, ref); err != nil {
		return nil, err
	}
	stream := o.Out == "" || o.Out == "-"
	switch folder := !stream && files.IsFolder(o.Out); {
	case folder && to.Tables && len(o.Tables) == 0:
		return exportFolder(o.Out, to, from, format.TablesOf(from.Kind()))
	case folder:
		return exportFolder(o.Out, to, from, tables)
	case len(tables) > 1:
		return nil, fail.Usage("name a folder: -o FOLDER/", "several tables do not fit into one file")
	case stream:
		return nil, to.Write(o.Stdout, from, tables[0])
	}
	if err := exportFile(o.Out, to, from, tables[0]); err != nil {
		return nil, err
	}
	return []string{o.Out}, nil
}

// format is the one to write, which must have what was chosen of it.
func (o *ExportOptions) format() (*format.Format, error) {
	to := format.Find(o.Format)
	switch {
	case to == nil:
		return nil, fail.Usage("see hightide export --help", "there is no export format %q", o.Format)
	case len(o.Tables) > 0 && !to.Tables:
		return nil, fail.Usage("--table goes with --csv, --parquet and --arrow", "%s has no tables to choose from", to.Name)
	case o.Measure != "" && !to.Measures:
		return nil, fail.Usage("--measure goes with --folded, --dot, --pprof and --speedscope",
			"%s has no measure to choose", to.Name)
	}
	return to, nil
}

// exportable finds what a reference means and whether the format can hold it. Of a run, a format
// for snapshots takes the last whole one that the run recorded.
func (e *Engine) exportable(ctx context.Context, ref string, to *format.Format) (from format.Source, err error) {
	s, err := e.source(ctx, ref)
	if err != nil {
		return from, err
	}
	from = format.Source{Run: s.Recording, Snapshot: s.Snapshot, Profile: s.Profile}
	switch {
	case from == format.Source{}:
		return from, fail.Input("hightide explain shows it", "%s is %s: it holds nothing to export", ref, s.Format)
	case from.Run != nil && to.Takes&format.Runs == 0:
		if from, err = LastSnapshot(from.Run, to); err != nil {
			return from, err
		}
	}
	if to.Takes&from.Kind() == 0 {
		return from, fail.Usage("hightide export --help says which formats take what", "%s cannot hold %s", to.Name,
			from.Kind())
	}
	return from, nil
}

// LastSnapshot is the last whole allocator snapshot that a run recorded.
func LastSnapshot(run *mem.Run, to *format.Format) (format.Source, error) {
	for _, file := range slices.Backward(run.Snapshots) {
		if snapshot, err := snapshotIn(file); err == nil && file.Complete {
			return format.Source{Snapshot: snapshot}, nil
		}
	}
	return format.Source{}, fail.Input("name a snapshot's file, or a run that recorded one",
		"%s needs an allocator snapshot, and this run holds none that is whole", to.Name)
}

// tables are those to write. Formats without tables have the single table nil.
func (o *ExportOptions) tables(to *format.Format, kind format.Kinds) ([]*format.Table, error) {
	switch {
	case !to.Tables:
		return []*format.Table{nil}, nil
	case len(o.Tables) == 0:
		return format.TablesOf(kind)[:1], nil
	}
	var tables []*format.Table
	for _, name := range o.Tables {
		table := format.FindTable(kind, name)
		if table == nil {
			return nil, fail.Usage("see hightide export --help for the tables", "%s has no table %q", kind, name)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// part is what is wanted of a source.
func (o *ExportOptions) part(from format.Source, ref string) (format.Source, error) {
	var err error
	if device, ok := o.Device.Get(); ok {
		if from, err = from.Only(int(device)); err != nil {
			return from, fail.Usage("hightide explain "+ref+" shows what there is", "--device: %w", err)
		}
	}
	if o.Filter != nil {
		if from, err = from.Matching(o.Filter); err != nil {
			return from, fail.Usage("hightide explain "+ref+" shows what there is", "--filter: %w", err)
		}
	}
	if o.Redact {
		from = from.Redact()
	}
	from.Measure = o.Measure
	if err := from.CheckMeasure(); err != nil {
		return from, fail.Usage("hightide export --help says what each measure is", "%w", err)
	}
	return from, nil
}

func exportFolder(dir string, to *format.Format, from format.Source, tables []*format.Table) (made []string,
	err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fail.Input("name a folder that can be written", "export: %w", err)
	}
	for _, table := range tables {
		name := "run"
		if table != nil {
			name = table.Name
		}
		path := filepath.Join(dir, name+to.Extension)
		if err := exportFile(path, to, from, table); err != nil {
			return made, err
		}
		made = append(made, path)
	}
	return made, nil
}

func exportFile(path string, to *format.Format, from format.Source, table *format.Table) error {
	return files.Write(path, "export", func(w io.Writer) error { return to.Write(w, from, table) })
}

// Pushed says what became of a run that was to be sent to a team.
type Pushed struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	There bool   `json:"there_already"` // the team had it before
}

// Push sends runs of the data directory to the team's store, and what waits to be sent. Those that went are returned
// with an error too.
func (e *Engine) Push(ctx context.Context, refs []string) (all []Pushed, err error) {
	team, err := e.SharedStore()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, team.Close()) }()
	sent, err := team.SendLeft(ctx)
	for _, id := range sent {
		all = append(all, Pushed{ID: id})
	}
	if err != nil {
		return all, advised(err)
	}
	own, err := store.Open(store.Place{Store: e.Dir()})
	if err != nil {
		return all, advised(err)
	}
	defer own.Close()
	for _, ref := range refs {
		run, err := store.Find(own, ref)
		if err != nil {
			return all, advised(err)
		}
		there, err := team.Push(ctx, own, run)
		if err != nil {
			return all, advised(err)
		}
		all = append(all, Pushed{run.ID, run.Name, there})
	}
	return all, nil
}

// SharedStore is the store of a team that is in use; close it after use.
func (e *Engine) SharedStore() (*store.Team, error) {
	if e.Shared() == "" {
		return nil, fail.Usage("--store postgres://USER@HOST/DATABASE, or $HIGHTIDE_STORE", "no team's store is named")
	}
	shared, err := e.ownStore()
	if err != nil {
		return nil, advised(err)
	}
	if team, ok := shared.(*store.Team); ok {
		return team, nil
	}
	return nil, fail.Usage("name a PostgreSQL: --store postgres://USER@HOST/DATABASE", "%s is no store of a team",
		e.Place())
}

// Advised gives a failure of a store its exit code and hint.
func (e *Engine) Advised(err error) error { return advised(err) }

// Trend is how a figure of runs changed from commit to commit, with how checks of the commits ended where a team's
// store keeps that.
func (e *Engine) Trend(ctx context.Context, filter store.Filter, of trend.Measure) (t trend.Trend, err error) {
	runs, err := e.Runs(ctx, of.Filter(filter))
	if err != nil {
		return t, err
	}
	t = trend.Of(runs, of)
	if e.Shared() == "" || len(t.Commits) == 0 {
		return t, nil
	}
	team, err := e.SharedStore()
	if err != nil { // a place of files alone, which keeps no checks
		return t, nil
	}
	defer team.Close()
	statuses, err := team.Statuses(ctx, store.Scope{All: true}, filter.Tags[store.ProjectTag], t.Hashes()...)
	t.Tell(statuses)
	return t, err
}

// PullComment is what a pull request is told of a commit or a run, held against another. A run is found by find, which
// is Resolve or Find.
func (e *Engine) PullComment(ctx context.Context, filter store.Filter, of trend.Measure, now, base string,
	find func(context.Context, string) (store.Run, error)) (*trend.PullComment, error) {
	t, err := e.Trend(ctx, filter, of)
	if err != nil {
		return nil, err
	}
	return t.Comment(now, base, trend.Sources{Of: filter,
		Run:  func(ref string) (store.Run, error) { return find(ctx, ref) },
		Runs: func(f store.Filter) ([]store.Run, error) { return e.Runs(ctx, f) },
		Report: func(run string) (*report.Report, error) {
			r, _, err := e.Report(ctx, run)
			return r, err
		}})
}
