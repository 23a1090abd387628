package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"hightide/internal/engine"

	"golang.org/x/sys/unix"
)

// printJSON writes one JSON object to standard output.
func (a *app) printJSON(value any) error {
	out := json.NewEncoder(a.stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}

// writeJSON writes a result where --json asked for it: "" nowhere, "-" to standard output, else into
// that file.
func (a *app) writeJSON(file string, value any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write result as JSON: %w", err)
	}
	text = append(text, '\n')
	return a.output(file, text)
}

// terminalWidth is the width of standard output where it is a terminal.
func (a *app) terminalWidth() (int, bool) {
	file, ok := a.stdout.(*os.File)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}

// writeColumns aligns the cells of runs under their titles. With a width, lines are cut to it.
func writeColumns(w io.Writer, columns []lsColumn, runs []engine.Run, width int, bold bool) error {
	lines := make([]strings.Builder, len(runs)+1)
	for i, column := range columns {
		cells := []string{column.title}
		widest, empty := utf8.RuneCountInString(column.title), true
		for _, run := range runs {
			cell := printable(column.cell(run))
			empty = empty && cell == ""
			widest = max(widest, utf8.RuneCountInString(cell))
			cells = append(cells, cell)
		}
		if empty {
			continue
		}
		for row, cell := range cells {
			if lines[row].Len() > 0 {
				lines[row].WriteString("  ")
			}
			pad := strings.Repeat(" ", widest-utf8.RuneCountInString(cell))
			switch {
			case column.right:
				lines[row].WriteString(pad + cell)
			case i == len(columns)-1:
				lines[row].WriteString(cell)
			default:
				lines[row].WriteString(cell + pad)
			}
		}
	}
	for i := range lines {
		line := strings.TrimRight(lines[i].String(), " ")
		if width > 20 {
			line = clip(line, width)
		}
		if i == 0 && bold {
			line = "\x1b[1m" + line + "\x1b[0m"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// clip shortens a line to a number of characters.
func clip(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}

// printable keeps a name or command from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// ago says how long ago something was, the date where that is long.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < 0 || d > 30*24*time.Hour:
		return then.Format("2 Jan 2006")
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		return plural(int(d.Seconds()), "second") + " ago"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 24*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	}
	return plural(int(d.Hours()/24), "day") + " ago"
}

// shortDuration writes a duration with two units at most: 850ms, 12.3s, 4m05s, 3h20m, 2d04h.
func shortDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", float64(d/(100*time.Millisecond))/10)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
