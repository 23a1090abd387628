package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// benchCells is the table of a matrix that is being measured: a row for each cell, in the order of the spec.
type benchCells struct {
	rows    []matrix.CellRow
	place   map[string]int
	touched []int // of each row, when it changed last; 0: never
	changes int
}

// takeRows keeps rows that changed; the first ones are all there are.
func (b *benchCells) takeRows(rows []matrix.CellRow) {
	if b.place == nil && len(rows) > 0 {
		b.place, b.rows, b.touched = map[string]int{}, slices.Clone(rows), make([]int, len(rows))
		for i := range rows {
			b.place[rows[i].Key] = i
		}
		return
	}
	for _, row := range rows {
		if i, ok := b.place[row.Key]; ok {
			b.changes++
			b.rows[i], b.touched[i] = row, b.changes
		}
	}
}

// lines of the table, at most so many: those that run first, then those that changed last, then the rest in their
// order. What is left out is counted.
func (b *benchCells) lines(p *matrix.Progress, head string, now time.Time, most int) []string {
	most = max(most, 2)
	running := map[string]matrix.RunningTrial{}
	order := make([]int, 0, len(b.rows))
	for _, one := range p.Running {
		if i, ok := b.place[one.Cell]; ok && running[one.Cell].Cell == "" {
			order = append(order, i)
		}
		running[one.Cell] = one
	}
	rest := make([]int, 0, len(b.rows))
	for i := range b.rows {
		if running[b.rows[i].Key].Cell == "" {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(rest, func(x, y int) int { return cmp.Compare(b.touched[y], b.touched[x]) })
	order = append(order, rest...)
	room := most - 2 // the head and the titles
	if len(order) > room {
		room-- // and how many are left out
	}
	left := max(0, len(order)-max(room, 0))
	order = order[:len(order)-left]
	// on the screen: in the spec's order, so that rows stay where they are
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(x, y)
	})
	out := []string{head}
	if len(order) > 0 {
		out = append(out, b.table(order, running, now)...)
	}
	if left > 0 && most > 3 {
		out = append(out, fmt.Sprintf("… and %s more", report.Counted(int64(left), "cell")))
	}
	return out[:min(len(out), most)]
}

// table is the titles and a line for each row.
func (b *benchCells) table(order []int, running map[string]matrix.RunningTrial, now time.Time) []string {
	var rows [][]string
	for _, i := range order {
		row := &b.rows[i]
		state, runs := string(cmp.Or(row.State, "waiting")), ""
		if one, ok := running[row.Key]; ok {
			state, runs = "running", elapsed(&one, now)
		} else if row.State != matrix.Done {
			runs = report.Shorten(row.Reason, 60)
		}
		rows = append(rows, []string{row.Key, state, fmt.Sprintf("%d/%d", row.Trials, row.Trials+row.Left), figureText(row),
			runs})
	}
	columns := []report.ListColumn{{Title: "CELL"}, {Title: "STATE"}, {Title: "REPEATS", Right: true},
		{Title: strings.TrimSpace(b.figure() + " SO FAR"), Right: true}, {Title: "NOW"}}
	var text strings.Builder
	_ = report.WriteList(&text, columns, rows, 0, false) // to memory: it cannot fail
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}

// figure names what stands in the rows.
func (b *benchCells) figure() string {
	name := ""
	for i := range b.rows {
		switch figure := string(b.rows[i].Figure); {
		case figure == "" || figure == name:
		case name == "":
			name = figure
		default:
			return "MEMORY" // of the host in some rows, of a device in others
		}
	}
	return strings.ToUpper(strings.ReplaceAll(name, "_", " "))
}

// elapsed says how long a trial runs, what it holds and what it was expected to.
func elapsed(one *matrix.RunningTrial, now time.Time) string {
	text := shortDuration(now.Sub(one.Since))
	if one.Held > 0 {
		text += ", holds " + one.Held.String()
	}
	if expected, ok := one.Expected.Get(); ok {
		text += " of ~" + mem.Bytes(expected).String()
	}
	return text
}

// figureText is a cell's figure with half of its interval.
func figureText(row *matrix.CellRow) string {
	if row.Figure == "" {
		return ""
	}
	show := func(v float64) string {
		switch row.Unit {
		case mem.UnitBytes:
			return mem.Bytes(v).String()
		case mem.UnitNanoseconds:
			return report.Duration(int64(v))
		}
		return fmt.Sprintf("%.4g", v)
	}
	text := show(row.Value)
	if row.Within != nil {
		text += " ± " + show(row.Within.High-row.Value)
	}
	return text
}
