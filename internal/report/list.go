package report

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// ListColumn is a column of a list; one that is empty in every row is left out.
type ListColumn struct {
	Title string
	Right bool // figures
	Spare int  // where there is no room, the one with most is left out first; 0: never
}

// WriteList prints rows in columns, without those that are empty. Where width is not enough, spare columns are left out
// until the last one has some room, and lines are cut; 20 and less: no limit.
func WriteList(w io.Writer, columns []ListColumn, rows [][]string, width int, boldTitles bool) error {
	shown := shownColumns(columns, rows, width)
	lines := make([]strings.Builder, len(rows)+1)
	for _, column := range shown {
		for n, cell := range column.cells {
			if lines[n].Len() > 0 {
				lines[n].WriteString("  ")
			}
			pad := strings.Repeat(" ", column.widest-utf8.RuneCountInString(cell))
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
		if width > noLimit {
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

const (
	noLimit   = 20 // columns of a terminal, up to which its width is not believed
	leastLast = 12 // that the last one has, as far as it needs them
)

// filledColumn is a column with its title and cells.
type filledColumn struct {
	ListColumn
	cells  []string
	widest int
}

// shownColumns are those that have something in them, and room.
func shownColumns(columns []ListColumn, rows [][]string, width int) (shown []filledColumn) {
	for i, column := range columns {
		f := filledColumn{column, []string{column.Title}, utf8.RuneCountInString(column.Title)}
		empty := true
		for _, row := range rows {
			cell := Clean(row[i])
			empty = empty && cell == ""
			f.widest = max(f.widest, utf8.RuneCountInString(cell))
			f.cells = append(f.cells, cell)
		}
		if !empty {
			shown = append(shown, f)
		}
	}
	for width > noLimit && needs(shown) > width {
		most := 0
		for i := range shown {
			if shown[i].Spare > shown[most].Spare {
				most = i
			}
		}
		if shown[most].Spare == 0 {
			break
		}
		shown = slices.Delete(shown, most, most+1)
	}
	return shown
}

// needs is how wide some columns are at least.
func needs(shown []filledColumn) (width int) {
	for i, column := range shown {
		if i == len(shown)-1 {
			return width + min(column.widest, leastLast)
		}
		width += column.widest + 2
	}
	return width
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
