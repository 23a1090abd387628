package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// entry is a row of the index with the state of the files that it was made from: size and time of the
// recording, time of its folder. Where one is "", that part of the row is not to be believed.
type entry struct {
	run       Run
	recording string
	folder    string
}

// column is a column of the index and where an entry keeps its value, to be read and written there.
type column struct {
	name, kind string
	value      func(*entry) any
}

// columns are all of a run but the tags, which have a table of their own. Names are those of `hightide ls --json`, a
// part of a value behind its name. The kinds are SQLite's; PostgreSQL's stand in migrations/.
var columns = []column{
	{"id", "TEXT PRIMARY KEY", func(e *entry) any { return &e.run.ID }},
	{"name", "TEXT NOT NULL", func(e *entry) any { return &e.run.Name }},
	{"verb", "TEXT NOT NULL", func(e *entry) any { return &e.run.Verb }},
	{"label", "TEXT NOT NULL", func(e *entry) any { return &e.run.Label }},
	{"command", "TEXT NOT NULL", func(e *entry) any { return wordList{&e.run.Command} }},
	{"host", "TEXT NOT NULL", func(e *entry) any { return &e.run.Host }},
	{"git_commit", "TEXT NOT NULL", func(e *entry) any { return &e.run.GitCommit }},
	{"git_dirty", "INTEGER NOT NULL", func(e *entry) any { return &e.run.GitDirty }},
	{"state", "TEXT NOT NULL", func(e *entry) any { return &e.run.State }},
	{"start_wall_ns", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Start }},
	{"duration_ns", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Duration }},
	{"ended_kind", "TEXT NOT NULL", func(e *entry) any { return &e.run.Ended.Kind }},
	{"ended_text", "TEXT NOT NULL", func(e *entry) any { return &e.run.Ended.Text }},
	{"figure_bytes", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Figure.Bytes }},
	{"figure_error_bytes", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Figure.Error }},
	{"figure_what", "TEXT NOT NULL", func(e *entry) any { return &e.run.Figure.What }},
	{"figure_source", "TEXT NOT NULL", func(e *entry) any { return &e.run.Figure.Source }},
	{"figure_label", "TEXT NOT NULL", func(e *entry) any { return &e.run.Figure.Label }},
	{"figure_at_least", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Figure.AtLeast }},
	{"exit_code", "INTEGER", func(e *entry) any { return optional{&e.run.ExitCode} }},
	{"signal", "INTEGER", func(e *entry) any { return optional{&e.run.Signal} }},
	{"stopped", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Stopped }},
	{"steps", "INTEGER NOT NULL", func(e *entry) any { return count{&e.run.Steps} }},
	{"processes", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Processes }},
	{"peak_host_rss_bytes", "INTEGER", func(e *entry) any { return optional{&e.run.HostRSS} }},
	{"peak_host_pss_bytes", "INTEGER", func(e *entry) any { return optional{&e.run.HostPSS} }},
	{"peak_device_used_bytes", "INTEGER", func(e *entry) any { return optional{&e.run.Device} }},
	{"peak_allocated_bytes", "INTEGER", func(e *entry) any { return optional{&e.run.Allocated} }},
	{"peak_reserved_bytes", "INTEGER", func(e *entry) any { return optional{&e.run.Reserved} }},
	{"ooms", "INTEGER NOT NULL", func(e *entry) any { return &e.run.OOMs }},
	{"snapshots", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Snapshots }},
	{"dropped", "INTEGER NOT NULL", func(e *entry) any { return count{&e.run.Dropped} }},
	{"findings", "INTEGER", func(e *entry) any { return optional{&e.run.Findings} }},
	{"places", "INTEGER", func(e *entry) any { return optional{&e.run.Places} }},
	{"figures", "TEXT", func(e *entry) any { return figures{&e.run.Figures} }},
	{"size_bytes", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Size }},
	{"damaged", "INTEGER NOT NULL", func(e *entry) any { return &e.run.Damaged }},
}

// stamped are the columns of the index beside recordings on disk: which tell whether a row is up to date, and what the run
// is found by.
var stamped = append(slices.Clip(columns), []column{
	{"recording_stamp", "TEXT NOT NULL", func(e *entry) any { return &e.recording }},
	{"folder_stamp", "TEXT NOT NULL", func(e *entry) any { return &e.folder }},
	foundColumn,
}...)

var foundColumn = column{"found", "BLOB NOT NULL", func(e *entry) any { return packed{&e.run.found} }}

// schema has one row for each run, in the order in which people list them, and one for each tag. text is
// what a search looks in.
func schema() string {
	var all []string
	for _, c := range stamped {
		all = append(all, c.name+" "+c.kind)
	}
	return "CREATE TABLE runs (" + strings.Join(all, ", ") + `, text TEXT NOT NULL);
CREATE INDEX runs_start ON runs (start_wall_ns DESC, id DESC);
CREATE INDEX runs_name ON runs (name, start_wall_ns DESC);
CREATE TABLE tags (
	run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX tags_key ON tags (key, value);
`
}

// names of columns, each as format has it, as in "%s = excluded.%[1]s".
func names(of []column, format string) string {
	var all []string
	for _, c := range of {
		all = append(all, fmt.Sprintf(format, c.name))
	}
	return strings.Join(all, ", ")
}

// values are the places of an entry's columns.
func (e *entry) values(of []column) []any {
	all := make([]any, len(of), len(of)+1)
	for i, c := range of {
		all[i] = c.value(e)
	}
	return all
}

// insert enters a row of these columns, or replaces it.
func insert(table string, of []column) string {
	return "INSERT INTO " + table + " (" + names(of, "%s") + ", text) VALUES (" + strings.Repeat("?, ", len(of)) +
		"?) ON CONFLICT (id) DO UPDATE SET " +
		names(of, "%s = excluded.%[1]s") + ", text = excluded.text"
}

// putRuns enters runs, or replaces them.
func (x *index) putRuns(entries ...entry) error {
	return x.change(len(entries), func(tx *sql.Tx) error {
		for _, e := range entries {
			if err := putRun(tx, &e); err != nil {
				return err
			}
		}
		return nil
	})
}

func putRun(tx *sql.Tx, e *entry) error {
	if _, err := tx.Exec(insert("runs", stamped), append(e.values(stamped), searched(&e.run))...); err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM tags WHERE run = ?", e.run.ID); err != nil {
		return err
	}
	for key, value := range e.run.Tags {
		if _, err := tx.Exec("INSERT INTO tags (run, key, value) VALUES (?, ?, ?)", e.run.ID, key, value); err != nil {
			return err
		}
	}
	return nil
}

// resize enters that files of runs came or went.
func (x *index) resize(entries ...entry) error {
	return x.change(len(entries), func(tx *sql.Tx) error {
		for _, e := range entries {
			if _, err := tx.Exec("UPDATE runs SET size_bytes = ?, folder_stamp = ? WHERE id = ?", e.run.Size, e.folder,
				e.run.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *index) remove(ids ...string) error {
	return x.change(len(ids), func(tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := tx.Exec("DELETE FROM runs WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes all of the changes, or none.
func (x *index) change(changes int, work func(*sql.Tx) error) error {
	if changes == 0 {
		return nil
	}
	db, err := x.openDatabase()
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// states returns, for every run or for some by their ids, what tells whether its row is up to date.
func (x *index) states(ids []string) (map[string]entry, error) {
	known := map[string]entry{}
	where, args := oneOf("id", ids)
	err := x.query("SELECT id, state, recording_stamp, folder_stamp FROM runs WHERE "+where, args,
		func(rows *sql.Rows) error {
			var e entry
			err := rows.Scan(&e.run.ID, &e.run.State, &e.recording, &e.folder)
			known[e.run.ID] = e
			return err
		})
	return known, err
}

// brief are the columns that a trend is made of.
var brief = slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
	switch c.name {
	case "id", "start_wall_ns", "git_commit", "git_dirty", "state", "ended_kind", "label", "figures",
		"peak_allocated_bytes", "peak_reserved_bytes":
		return false
	}
	return !strings.HasPrefix(c.name, "figure_")
})

// chosen are the columns that a filter asks for, as a query has them with the tags behind them. tags makes JSON of keys
// and values.
func (f Filter) chosen(tags string) (of []column, text string) {
	if f.Brief {
		return brief, names(brief, "%s") + ", NULL"
	}
	return columns, names(columns, "%s") + ", (SELECT " + tags + "(key, value) FROM tags WHERE run = id)"
}

// list returns the rows that a filter lets through, newest first.
func (x *index) list(filter Filter) ([]Run, error) {
	of, chosen := filter.chosen("json_group_object")
	if filter.Held != (Spot{}) {
		of, chosen = append([]column{foundColumn}, of...), foundColumn.name+", "+chosen
	}
	where, args := filter.sql(true, inOrder)
	var runs []Run
	err := x.query("SELECT "+chosen+" FROM runs"+where, args, func(rows *sql.Rows) error {
		run, err := scanRun(rows, of)
		filter.hold(&run, filter.heldBy(run.found))
		run.found = nil
		runs = append(runs, run)
		return err
	})
	return runs, err
}

// scanRun reads a row of columns, and behind them the tags as JSON.
func scanRun(rows *sql.Rows, of []column) (Run, error) {
	var e entry
	var tags []byte
	if err := rows.Scan(append(e.values(of), &tags)...); err != nil {
		return e.run, err
	}
	if len(tags) > len("{}") {
		return e.run, json.Unmarshal(tags, &e.run.Tags)
	}
	return e.run, nil
}

func (x *index) query(text string, args []any, take func(*sql.Rows) error) error {
	db, err := x.openDatabase()
	if err != nil {
		return err
	}
	rows, err := db.Query(text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inOrder is that of every list.
const inOrder = "start_wall_ns DESC, id DESC"

// sql is the filter as the end of a query, in words that SQLite and PostgreSQL both know. Of places
// the index of files has a column; a team has a table of them, which comes first where no word is asked for.
func (f Filter) sql(ofFiles bool, order string) (text string, args []any) {
	var all []string
	add := func(condition string, values ...any) {
		all, args = append(all, condition), append(args, values...)
	}
	for key, value := range f.Tags {
		if value == "" {
			add("EXISTS (SELECT 1 FROM tags WHERE run = id AND key = ?)", key)
		} else {
			add("EXISTS (SELECT 1 FROM tags WHERE run = id AND key = ? AND value = ?)", key, value)
		}
	}
	if f.IDs != nil {
		where, ids := oneOf("id", f.IDs)
		add(where, ids...)
	}
	if f.Projects != nil {
		where, projects := oneOf("value", f.Projects)
		add("EXISTS (SELECT 1 FROM tags WHERE run = id AND key = '"+ProjectTag+"' AND "+where+")", projects...)
	}
	if f.Name != "" {
		add("name = ?", f.Name)
	}
	if f.State != "" {
		add("state = ?", f.State)
	}
	if f.Verb != "" {
		add("verb = ?", f.Verb)
	}
	if f.Before != "" {
		add("(start_wall_ns, id) < (SELECT start_wall_ns, id FROM runs WHERE id = ?)", f.Before)
	}
	if f.Ref != "" {
		begins := strings.ToLower(f.Ref) // as a range, which an index knows
		add("(id = ? OR name = ? OR id >= ? AND id < ?)", f.Ref, f.Ref, begins, begins+"\U0010FFFF")
	}
	if ofFiles && f.searchesPlaces() {
		add(hasPlace+"(found, ?, ?, ?, ?)", f.Finding, f.Line.File, f.Line.Line, f.Line.Function)
	}
	if !ofFiles && f.searchesPlaces() && f.Text != "" {
		where, values := f.placesSQL()
		add("EXISTS (SELECT 1 FROM places WHERE run = id AND "+where+")", values...)
	}
	if f.Unasked {
		add("places IS NULL")
	}
	if f.Text != "" {
		add(`text LIKE ? ESCAPE '\'`, "%"+literal.Replace(strings.ToLower(f.Text))+"%")
	}
	if len(all) > 0 {
		text = " WHERE " + strings.Join(all, " AND ")
	}
	text += " ORDER BY " + order
	if f.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, f.Limit)
	}
	return text, args
}

// literal makes a text stand for itself in a pattern of LIKE.
var literal = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// oneOf is the condition that a column has one of these texts; nil: any.
func oneOf(column string, texts []string) (where string, args []any) {
	if texts == nil {
		return "TRUE", nil
	}
	if len(texts) == 0 {
		return "FALSE", nil
	}
	for _, text := range texts {
		args = append(args, text)
	}
	return column + " IN (" + strings.TrimSuffix(strings.Repeat("?, ", len(texts)), ", ") + ")", args
}

// optional is a column that may be absent.
type optional struct{ *mem.Optional }

func (o optional) Value() (driver.Value, error) {
	if v, ok := o.Get(); ok {
		return v, nil
	}
	return nil, nil
}

func (o optional) Scan(src any) error {
	var v sql.NullInt64
	err := v.Scan(src)
	if *o.Optional = (mem.Optional{}); v.Valid {
		*o.Optional = mem.Some(v.Int64)
	}
	return err
}

// count is a column of a number that SQLite, whose integers have a sign, may not hold.
type count struct{ of *uint64 }

func (c count) Value() (driver.Value, error) { return int64(min(*c.of, math.MaxInt64)), nil }

func (c count) Scan(src any) error {
	var v sql.NullInt64
	err := v.Scan(src)
	*c.of = uint64(v.Int64)
	return err
}

// wordList is a column of a list of words, as JSON.
type wordList struct{ of *[]string }

func (w wordList) Value() (driver.Value, error) {
	text, err := json.Marshal(*w.of)
	return string(text), err
}

func (w wordList) Scan(src any) error {
	var text sql.Null[[]byte]
	if err := text.Scan(src); err != nil {
		return err
	}
	return json.Unmarshal(text.V, w.of)
}

// figures is a column of them, as JSON; NULL: none were kept.
type figures struct{ of *map[string]mem.Figure }

func (f figures) Value() (driver.Value, error) {
	if *f.of == nil {
		return nil, nil
	}
	text, err := json.Marshal(*f.of)
	return string(text), err
}

func (f figures) Scan(src any) error {
	var text sql.Null[[]byte]
	if err := text.Scan(src); err != nil || !text.Valid {
		return err
	}
	return json.Unmarshal(text.V, f.of)
}

// scrub rewrites the index, so that nothing of rows that were deleted is left in its files.
func (x *index) scrub() error {
	db, err := x.openDatabase()
	if err != nil {
		return err
	}
	for _, text := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	return nil
}
