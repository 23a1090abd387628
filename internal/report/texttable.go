package report

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// rowsShown is how many rows of a table the terminal gets; the HTML report and the JSON have all.
var rowsShown = map[string]int{"sites": 10, "growth": 10, "phases": 14, "modules": 12, "processes": 8,
	"composition": 12, "devices": 16, "faults": 6, "gpus": 200, "fit": 200}

// deviceRows likewise, of the tables that a device of a snapshot has.
var deviceRows = map[string]int{"flame": flameRows, "growth": 6, "pins": 5, "classes": 6, "rounding": 4,
	"turnover": 6, "start": 4, "longest": 5}

// inVerdict are tables whose figures an imagined run's own tables have.
var inVerdict = []string{"composition", "devices", "modules", "device"}

// wants leaves out tables that say nothing a person does not know from the headline.
func (p *printer) wants(r *Report, t *Table) bool {
	if r.Imagined != nil && slices.Contains(inVerdict, t.Name) {
		return false // said in the verdict's own tables
	}
	if t.Number.Known() {
		return true
	}
	switch t.Name {
	case "processes":
		return len(t.Rows) > 1
	case "growth":
		return len(t.Rows) > 1
	case "shapes", "efficiency":
		return false // for the page and for programs; the picture and the notes say it
	case "faults":
		return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == KindFaults || f.Kind == KindSwap })
	}
	return true
}

// hidden columns repeat what another one says shorter, or matter only to programs.
var hidden = map[string]bool{"file": true, "total": true, "max": true, "samples": true, "uss": true}

// FormatCell writes a cell for people, with its unit.
func FormatCell(c Cell, unit mem.Unit) string {
	var n int64
	switch c := c.(type) {
	case nil:
		return ""
	case string:
		return c
	case int64:
		n = c
	default:
		return fmt.Sprint(c)
	}
	switch unit {
	case mem.UnitBytes:
		return mem.Bytes(n).String()
	case mem.UnitNanoseconds:
		return Duration(n)
	case mem.UnitMilli:
		return fmt.Sprintf("%.1f %%", float64(n)/10)
	case mem.UnitCelsius:
		return fmt.Sprintf("%d °C", n)
	case mem.UnitMilliwatts:
		return fmt.Sprintf("%.0f W", float64(n)/1000)
	}
	return Count(n)
}

// format writes a cell of this column; a change has its sign.
func (c Column) format(cell Cell) string {
	text := FormatCell(cell, c.Unit)
	if n, ok := cell.(int64); ok && n > 0 && c.Name == "delta" {
		return "+" + text
	}
	return text
}

// table prints a table within the width: columns that do not fit are left out, from the right,
// after the texts were shortened as far as they stay readable.
func (p *printer) table(t *Table) {
	shown := rowsShown
	if t.Number.Known() {
		shown = deviceRows
	}
	limit, ok := shown[t.Name]
	if !ok {
		limit = 12
	}
	var columns []int
	for i, c := range t.Columns {
		if i == 0 || !hidden[c.Name] && c.Title != "" { // the first is what the rows are of
			columns = append(columns, i)
		}
	}
	rows := t.Rows[:min(limit, len(t.Rows))]
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = make([]string, len(t.Columns))
		for _, c := range columns {
			cells[i][c] = Clean(t.Columns[c].format(row[c]))
		}
	}
	widths, columns := p.fit(t, columns, cells)
	title := Shorten(Clean(t.Title), p.Width)
	if labels := columnLabels(t, columns); labels != "" {
		title = Shorten(title, p.Width-len(labels)-3) + p.paint(dim, " ("+labels+")")
	}
	p.title(title)
	p.row(t, columns, widths, func(c int) string { return t.Columns[c].Title }, dim)
	for _, row := range cells {
		p.row(t, columns, widths, func(c int) string { return row[c] }, "")
	}
	if left := len(t.Rows) - len(rows); left > 0 {
		p.line("  " + p.paint(dim, fmt.Sprintf("… %d more", left)))
	}
}

// columnLabels says how the figures were come by; each figure's own where they differ.
func columnLabels(t *Table, columns []int) string {
	var labels []string
	for _, c := range columns {
		if t.Columns[c].Name == "label" {
			return ""
		}
		if l := string(t.Columns[c].Label); l != "" && !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return strings.Join(labels, ", ")
}

const leastText = 16

// fit finds the columns' widths and drops what has no room.
func (p *printer) fit(t *Table, columns []int, cells [][]string) (map[int]int, []int) {
	for {
		widths, total := map[int]int{}, 0
		for _, c := range columns {
			w := len([]rune(t.Columns[c].Title))
			for _, row := range cells {
				w = max(w, len([]rune(row[c])))
			}
			widths[c] = w
			total += w + 2
		}
		for total > p.Width {
			widest := -1
			for _, c := range columns {
				if t.Columns[c].Unit == "" && widths[c] > leastText && (widest < 0 || widths[c] > widths[widest]) {
					widest = c
				}
			}
			if widest < 0 {
				break
			}
			cut := min(total-p.Width, widths[widest]-leastText)
			widths[widest] -= cut
			total -= cut
		}
		if total <= p.Width || len(columns) <= 2 {
			return widths, columns
		}
		columns = columns[:len(columns)-1]
	}
}

func (p *printer) row(t *Table, columns []int, widths map[int]int, get func(int) string, code string) {
	var b strings.Builder
	for _, c := range columns {
		s := Shorten(get(c), widths[c])
		pad := strings.Repeat(" ", widths[c]-len([]rune(s)))
		b.WriteString("  ")
		if t.Columns[c].Unit == "" {
			b.WriteString(s + pad)
		} else {
			b.WriteString(pad + s)
		}
	}
	p.line(p.paint(code, strings.TrimRight(b.String(), " ")))
}

// Text writes one table alone, of long ones the first rows.
func (t *Table) Text(o TextOptions) string {
	if o.Width <= 0 {
		o.Width = 110
	}
	p := &printer{TextOptions: o}
	p.table(t)
	return p.finish()
}
