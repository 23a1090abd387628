package store

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/lib/pq"
)

// A team has a table of places. Each has when its run began, so that an index gives what is asked for in the order of
// the list, however many there are.

// placesOrder is that of every list, as the table of places has it.
const placesOrder = "place_start DESC, place_run DESC"

// foundFirst are the runs that are found, the newest first, to be joined with the rest of a filter.
func (f Filter) foundFirst() (from string, args []any) {
	where, args := f.placesSQL()
	if f.Before != "" {
		where += " AND (start_wall_ns, run) < (SELECT start_wall_ns, id FROM recorded WHERE id = ?)"
		args = append(args, f.Before)
	}
	return "(SELECT DISTINCT start_wall_ns AS place_start, run AS place_run FROM places WHERE " + where +
		" ORDER BY start_wall_ns DESC, run DESC) AS found JOIN runs ON id = place_run", args
}

// inThatOrder has PostgreSQL walk along the index of places and stop at the end of the page. From its figures of columns
// it cannot tell how rare a line of a file is, and would read all runs, or sort all places, of one that it takes wrong.
const inThatOrder = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; " +
	"SET LOCAL enable_mergejoin = off; SET LOCAL enable_hashagg = off; SET LOCAL enable_sort = off; SET LOCAL jit = off"

// putPlaces enters what a run is found by, in place of what it was found by before.
func putPlaces(s *session, r *Run) error {
	if r.State == Running {
		return nil // it has no report yet, and its row is entered every two seconds
	}
	if _, err := s.exec("DELETE FROM places WHERE run = ?", r.ID); err != nil {
		return err
	}
	at := 0
	for some := range slices.Chunk(r.found, 100) {
		args := make([]any, 0, 11*len(some))
		for _, p := range some {
			args = append(args, r.ID, at, r.Start, p.Kind, p.Severity, p.File, base(p.File), p.Line, p.Function,
				optional{&p.Bytes}, p.Error)
			at++
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), ", len(some)), ", ")
		if _, err := s.exec("INSERT INTO places (run, at, start_wall_ns, kind, severity, file, base, line, function, bytes, "+
			"error_bytes) VALUES "+values, args...); err != nil {
			return err
		}
	}
	return nil
}

// addHeld asks the team's table of places, for runs that a filter has let through.
func (f Filter) addHeld(s *session, runs []Run) error {
	ids, found := make([]string, len(runs)), map[string]held{}
	for i := range runs {
		ids[i] = runs[i].ID
	}
	spot, args := f.Held.sql()
	// joined, so that few runs of many are found by the table's key, each by itself
	err := s.query("SELECT run, count(*), sum(bytes)::FLOAT8, sum(error_bytes::FLOAT8 ^ 2) "+
		"FROM unnest(?::TEXT[]) AS asked JOIN places ON run = asked COLLATE \"C\" WHERE kind = '' AND bytes IS NOT NULL AND "+spot+" GROUP BY run",
		append([]any{pq.Array(ids)}, args...), func(rows *sql.Rows) error {
			var id string
			var h held
			err := rows.Scan(&id, &h.lines, &h.bytes, &h.squares)
			found[id] = h
			return err
		})
	for i := range runs {
		f.hold(&runs[i], found[runs[i].ID])
	}
	return err
}
