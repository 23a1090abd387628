package report

import (
	"math"

	"hightide/internal/mem"
)

// OptionalCell is an optional integer as a table has it: nil where absent.
func OptionalCell(o mem.Optional) Cell {
	if v, ok := o.Get(); ok {
		return v
	}
	return nil
}

// TextCell is nil for an empty text.
func TextCell(s string) Cell {
	if s == "" {
		return nil
	}
	return s
}

// AddTable adds a table unless it is empty; columns in which no row has anything are left out.
func (r *Report) AddTable(t Table) {
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

// AddNote adds a sentence on what was not observed, or how it was come by.
func (r *Report) AddNote(text string) { r.Notes = append(r.Notes, text) }

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

// CountColumn is a column of numbers without a unit.
func CountColumn(name, title string) Column {
	return Column{name, title, mem.UnitCount, mem.Measured}
}

// Share is a part in thousandths of the whole.
func Share(part, whole mem.Bytes) Cell {
	return int64(math.Round(float64(part) * 1000 / float64(max(1, whole))))
}
