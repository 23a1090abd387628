package report

import (
	"io"
	"strings"
	"unicode/utf8"
)

// ListColumn is a column of a list; one that is empty in every row is left out.
type ListColumn struct {
	Title string
	Right bool // figures
}

// WriteList aligns rows under their titles. With a width of more than 20 columns, lines are cut to it.
func WriteList(w io.Writer, columns []ListColumn, rows [][]string, width int, boldTitles bool) error {
	lines := make([]strings.Builder, len(rows)+1)
	for i, column := range columns {
		cells, widest, empty := []string{column.Title}, utf8.RuneCountInString(column.Title), true
		for _, row := range rows {
			cell := Clean(row[i])
			empty = empty && cell == ""
			widest = max(widest, utf8.RuneCountInString(cell))
			cells = append(cells, cell)
		}
		if empty {
			continue
		}
		for n, cell := range cells {
			if lines[n].Len() > 0 {
				lines[n].WriteString("  ")
			}
			pad := strings.Repeat(" ", widest-utf8.RuneCountInString(cell))
			if column.Right {
				lines[n].WriteString(pad + cell)
			} else {
				lines[n].WriteString(cell + pad)
			}
		}
	}
	var list strings.Builder // one write for all: each is a call of the system
	for i := range lines {
		line := strings.TrimRight(lines[i].String(), " ")
		if width > 20 {
			line = Shorten(line, width)
		}
		if i == 0 {
			line = paint(boldTitles, bold, line)
		}
		list.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, list.String())
	return err
}

// sparks are the levels of a Sparkline.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws values from 0 to their maximum in one line, the newest at the right.
func Sparkline(values []int64, width int) string {
	values = values[max(len(values)-width, 0):]
	most := int64(1)
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(sparks[min(7, v*8/most)])
	}
	return b.String()
}
