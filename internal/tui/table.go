package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column of a table. Widths are fixed, so that figures change in place and nothing jumps; one column may grow.
type column struct {
	title string
	key   string // that sorts by it; "": none does
	width int
	right bool
	grows bool // takes what is left
	least int  // shown only where the table has that many columns of the terminal; 0: always
}

// cell is a text with its look.
type cell struct {
	text string
	ink  ink
}

func text(s string) cell          { return cell{text: s} }
func inked(i ink, s string) cell  { return cell{s, i} }
func dimmed(s string) cell        { return cell{s, faint} }
func shown(c column, at int) bool { return c.least <= at }

// rowsOf draws rows below their titles; the one at cursor stands out, -1: none. sorted is the title of the column
// that the rows are in the order of.
func rowsOf(columns []column, rows [][]cell, width, cursor int, sorted string) []string {
	widths := widthsOf(columns, width)
	titles := make([]cell, len(columns))
	for i, c := range columns {
		if titles[i] = inked(strong, c.title); c.title == sorted && sorted != "" {
			titles[i].ink = head
		}
		if c.key != "" {
			titles[i].text = spot(c.key, c.title)
		}
	}
	lines := []string{row(columns, widths, titles, width, false)}
	for i, cells := range rows {
		lines = append(lines, row(columns, widths, cells, width, i == cursor))
	}
	return lines
}

// widthsOf shares a width among columns; 0: the column is left out.
func widthsOf(columns []column, width int) []int {
	widths, left := make([]int, len(columns)), width-2
	for i, c := range columns {
		if shown(c, width) && !c.grows {
			widths[i] = c.width
			left -= c.width + 1
		}
	}
	for i, c := range columns {
		if c.grows && shown(c, width) {
			widths[i] = max(left, c.width)
		}
	}
	return widths
}

// row is one line. The chosen one has a mark as well, for those who see no colours.
func row(columns []column, widths []int, cells []cell, width int, picked bool) string {
	var parts []string
	for i, c := range columns {
		if widths[i] == 0 || i >= len(cells) {
			continue
		}
		text := pad(cells[i].text, widths[i], c.right)
		if !picked {
			text = paint(cells[i].ink, text)
		}
		parts = append(parts, text)
	}
	line := pad(strings.Join(parts, " "), width-2, false)
	if picked {
		return paint(chosen, "▸ "+ansi.Strip(line))
	}
	return "  " + line
}

// window is the part of n rows that a height shows, with the cursor in it.
func window(n, height, cursor int) (from, to int) {
	if height <= 0 {
		return 0, 0
	}
	from = min(max(cursor-height/2, 0), max(n-height, 0))
	return from, min(from+height, n)
}

// counted puts at the right of a table's titles how many of its rows are shown.
func counted(titles string, width, shown, all int) string {
	if shown >= all {
		return titles
	}
	note := fmt.Sprintf("%d of %d", shown, all)
	return ansi.Truncate(titles, width-len(note)-2, "") + paint(faint, " "+note)
}
