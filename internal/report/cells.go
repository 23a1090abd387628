package report

import (
	"math"
	"reflect"
	"slices"

	"hightide/internal/mem"
)

// Add puts a row into a table: integers, optional ones, and texts of any type. An empty text and what is missing at
// the end are absent.
func (t *Table) Add(values ...any) {
	row := make([]Cell, len(t.Columns))
	for i, value := range values {
		row[i] = cellOf(value)
	}
	t.Rows = append(t.Rows, row)
}

// Cell is the cell of a row in the column of a name; nil: there is none.
func (t *Table) Cell(row []Cell, column string) Cell {
	for i, c := range t.Columns {
		if c.Name == column && i < len(row) {
			return row[i]
		}
	}
	return nil
}

func cellOf(value any) Cell {
	if o, ok := value.(mem.Optional); ok {
		if n, known := o.Get(); known {
			return n
		}
		return nil
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.Kind() == reflect.String && v.Len() > 0:
		return v.String()
	}
	return nil
}

// AddTable adds a table unless it is empty; columns in which no row has anything are left out.
func (r *Part) AddTable(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	used := make([]bool, len(t.Columns))
	for _, row := range t.Rows {
		for i, c := range row {
			used[i] = used[i] || c != nil
		}
	}
	slim := t
	slim.Columns, slim.Rows = nil, nil
	for i, c := range t.Columns {
		if used[i] {
			slim.Columns = append(slim.Columns, c)
		}
	}
	for _, row := range t.Rows {
		cells := make([]Cell, 0, len(slim.Columns))
		for i, c := range row {
			if used[i] {
				cells = append(cells, c)
			}
		}
		slim.Rows = append(slim.Rows, cells)
	}
	r.Tables = append(r.Tables, slim)
}

// Table is the table of a name; nil: there is none.
func (r *Part) Table(name string) *Table {
	if i := slices.IndexFunc(r.Tables, func(t Table) bool { return t.Name == name }); i >= 0 {
		return &r.Tables[i]
	}
	return nil
}

// AddNote adds a sentence on what was not observed, or how it was come by.
func (r *Part) AddNote(text string) { r.Notes = append(r.Notes, text) }

// AddOnce adds a finding, unless it is nil or one of the same title is there: several files may tell of one thing.
func (r *Part) AddOnce(f *Finding) {
	if f != nil && !slices.ContainsFunc(r.Findings, func(other Finding) bool { return other.Title == f.Title }) {
		r.Findings = append(r.Findings, *f)
	}
}

// TextColumn is a column of words.
func TextColumn(name, title string) Column { return Column{Name: name, Title: title} }

// BytesColumn is a column of sizes.
func BytesColumn(name, title string, label mem.Label) Column {
	return Column{name, title, mem.UnitBytes, label}
}

// TimeColumn is a column of spans in nanoseconds.
func TimeColumn(name, title string) Column {
	return Column{name, title, mem.UnitNanoseconds, mem.Measured}
}

// ShareColumn is a column of parts of a whole.
func ShareColumn(name, title string) Column {
	return Column{name, title, mem.UnitMilli, mem.Measured}
}

// CountColumn is a column of numbers without a unit.
func CountColumn(name, title string) Column {
	return Column{name, title, mem.UnitCount, mem.Measured}
}

// Share is a part in thousandths of the whole.
func Share(part, whole mem.Bytes) Cell {
	return int64(math.Round(float64(part) * 1000 / float64(max(1, whole))))
}
