package main

import (
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"hightide/internal/report"
)

// terminal returns the file behind a writer where it is a terminal, else nil.
func terminal(w io.Writer) *os.File {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return file
}

// textOptions fit a report to where it is written: colours only on a terminal that is not told
// otherwise, plain letters where the locale knows no others.
func textOptions(w io.Writer) report.TextOptions {
	var o report.TextOptions
	locale := firstOf("LC_ALL", "LC_CTYPE", "LANG")
	o.ASCII = locale != "" && !strings.Contains(strings.ToLower(locale), "utf")
	file := terminal(w)
	if file == nil {
		return o
	}
	o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
		o.Width = int(size.Col)
	}
	return o
}

func firstOf(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// openInBrowser shows a file to the user; it does not wait.
func openInBrowser(path string) error {
	c := exec.Command("xdg-open", path)
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return c.Start()
}
