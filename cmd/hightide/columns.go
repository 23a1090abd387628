package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"hightide/internal/report"
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

// ago says how long ago something was, the date where that is long.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < 0 || d > 30*24*time.Hour:
		return then.Format("2 Jan 2006")
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		return report.Counted(int64(int(d.Seconds())), "second") + " ago"
	case d < time.Hour:
		return report.Counted(int64(int(d.Minutes())), "minute") + " ago"
	case d < 24*time.Hour:
		return report.Counted(int64(int(d.Hours())), "hour") + " ago"
	}
	return report.Counted(int64(int(d.Hours()/24)), "day") + " ago"
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

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
