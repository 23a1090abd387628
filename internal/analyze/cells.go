package analyze

import "hightide/internal/mem"

// cell is an optional integer as a table has it: nil where absent.
func cell(o mem.Optional) Cell {
	if v, ok := o.Get(); ok {
		return v
	}
	return nil
}

// textCell is nil for an empty text.
func textCell(s string) Cell {
	if s == "" {
		return nil
	}
	return s
}

// table adds a table unless it is empty; columns in which no row has anything are left out.
func (r *Report) table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	used := make([]bool, len(t.Columns))
	for _, row := range t.Rows {
		for i, c := range row {
			used[i] = used[i] || c != nil
		}
	}
	slim := Table{Name: t.Name, Title: t.Title, Note: t.Note}
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

func (r *Report) note(text string) { r.Notes = append(r.Notes, text) }

func text(name, title string) Column { return Column{Name: name, Title: title} }
func bytesColumn(name, title string, label mem.Label) Column {
	return Column{name, title, mem.UnitBytes, label}
}
func nsColumn(name, title string) Column {
	return Column{name, title, mem.UnitNanoseconds, mem.Measured}
}
func countColumn(name, title string) Column {
	return Column{name, title, mem.UnitCount, mem.Measured}
}
