package plan

import (
	"fmt"
	"strings"

	"hightide/internal/report"
)

// rowsShown is how many rows a terminal gets.
const rowsShown = 12

// shown is the table without its notes, which a terminal has no room for.
func (r *Result) shown(t *report.Table) *report.Table {
	short := *t
	short.Columns = t.Columns[:len(t.Columns)-1]
	return &short
}

// footnotes are the notes of the rows that a terminal shows, each once, behind the GPUs that it is of.
func (r *Result) footnotes() (lines []string) {
	named := map[string][]string{}
	var notes []string
	for i := range r.Rows[:min(rowsShown, len(r.Rows))] {
		row := &r.Rows[i]
		note := row.told()
		if note == "" {
			continue
		}
		if named[note] == nil {
			notes = append(notes, note)
		}
		named[note] = append(named[note], row.key())
	}
	for _, note := range notes {
		lines = append(lines, strings.Join(named[note], ", ")+": "+note)
	}
	return lines
}

// told is the note, with what was estimated where a run contradicts that.
func (r *Row) told() string {
	if !r.contradicts() {
		return r.Note
	}
	both := fmt.Sprintf("%s; estimated: %s, %v", r.Note, r.Estimated.Verdict, r.Estimated.Room.Bytes)
	return strings.TrimPrefix(both, "; ")
}
