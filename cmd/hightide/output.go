package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/report"
	"hightide/internal/system"
)

// printed is standard output that remembers what could not be written, so that no command has to look after
// each line: exitCode does. It has no method of a file's, past which one could write.
type printed struct {
	file   *os.File
	failed error // the first
}

func (p *printed) Write(text []byte) (int, error) {
	n, err := p.file.Write(text)
	p.failed = cmp.Or(p.failed, err)
	return n, err
}

// error says in one line why the output is not there: the machine's failure, as a full disk.
func (p *printed) error() error {
	err := p.failed
	if refused := (*fs.PathError)(nil); errors.As(err, &refused) {
		err = refused.Err // without the name: it is not a file that the user gave
	}
	return fail.Environment("", "write to standard output: %w", err)
}

// output writes to a file, or to standard output for "-".
func (a *app) output(file string, text []byte) error {
	if file == toStdout {
		_, err := a.stdout.Write(text)
		return err
	}
	return files.Write(file, "report", func(w io.Writer) error { _, err := w.Write(text); return err })
}

// outputOf writes what is made as output does.
func (a *app) outputOf(file string, made func() ([]byte, error)) error {
	text, err := made()
	if err != nil {
		return err
	}
	return a.output(file, text)
}

// writeJSON writes a result for programs, to a file or to standard output for "-".
func (a *app) writeJSON(file string, value any) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil {
		return fmt.Errorf("write result as JSON: %w", err)
	}
	return a.output(file, text.Bytes())
}

// show writes a result where --json asked for it, and else for people.
func (a *app) show(jsonFile string, value any, people func() error) error {
	if jsonFile != "" {
		return a.writeJSON(jsonFile, value)
	}
	return people()
}

// terminal returns the file behind a writer where it is a terminal, else nil.
func terminal(w io.Writer) *os.File {
	file, ok := w.(*os.File)
	if out, is := w.(*printed); is {
		file, ok = out.file, true
	}
	if !ok {
		return nil
	}
	if !system.IsTerminal(file) {
		return nil
	}
	return file
}

// plainTerminal says whether the terminal knows no escape sequences, or is not known.
func plainTerminal() bool {
	kind := os.Getenv("TERM")
	return kind == "" || kind == "dumb"
}

// kernelConsole says whether the terminal is the kernel's own, without a desktop.
func kernelConsole() bool { return os.Getenv("TERM") == "linux" }

// tellFound writes what a search found: for people beside the command's own output, and as JSON where it is asked for.
func (a *app) tellFound(result interface {
	Text(report.TextOptions) string
}, quiet bool, file string) error {
	if !quiet {
		fmt.Fprint(a.stderr, "\n", result.Text(textOptions(a.stderr)))
	}
	if file == "" {
		return nil
	}
	return a.writeJSON(file, result)
}

// textOptions fit a report to where it is written: colours only on a terminal that is not told
// otherwise, plain letters where the locale knows no others.
func textOptions(w io.Writer) report.TextOptions {
	var o report.TextOptions
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	o.ASCII = locale != "" && !strings.Contains(strings.ToLower(locale), "utf")
	file := terminal(w)
	if file == nil {
		return o
	}
	o.Color = os.Getenv("NO_COLOR") == "" && !plainTerminal()
	o.Width, _ = system.TerminalSize(file)
	return o
}

// openInBrowser shows a file to the user; it does not wait.
func (a *app) openInBrowser(path string) {
	c := exec.Command("xdg-open", path)
	c.SysProcAttr = system.OwnSession()
	if err := c.Start(); err != nil {
		fmt.Fprintf(a.stderr, "hightide: cannot open a browser: %v\n", err)
	}
}

// ago says how long ago something was, the date where that is long.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	some := func(unit time.Duration, name string) string { return report.Counted(int64(d/unit), name) + " ago" }
	switch {
	case d < 0 || d > 30*24*time.Hour:
		return then.Format("2 Jan 2006")
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		return some(time.Second, "second")
	case d < time.Hour:
		return some(time.Minute, "minute")
	case d < 24*time.Hour:
		return some(time.Hour, "hour")
	}
	return some(24*time.Hour, "day")
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

// canAsk says whether somebody sits at a terminal who can be asked.
func (a *app) canAsk() bool {
	in, ok := a.stdin.(io.Writer)
	return ok && terminal(in) != nil && terminal(a.stderr) != nil
}

// agreed asks a question that is answered with yes or no; whatever else is no.
func (a *app) agreed(question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// harmless is a message without what a terminal would act on: it may name what a stranger's file says.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = report.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
