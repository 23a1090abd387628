// Package quote reads lines of the observed program's files, for reports to quote.
//
// The paths come from a recording or a snapshot, which may be a stranger's: only what is a source, and did not change
// since, is read.
package quote

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/mem"
)

// Files are Python files, each read once. A file that changed after the run began shows other lines than those that
// ran, so it is not quoted. Nor is what is not a source at all.
type Files struct {
	lines map[string][][]byte
	began time.Time
	may   func(path string) error
}

// New quotes files that were there, as they are now, when a run began. may says why a file must not be read; nil: any
// may.
func New(began time.Time, may func(path string) error) *Files {
	return &Files{map[string][][]byte{}, began, may}
}

const maxSource = 4 << 20 // bytes; larger files are not sources

// Know takes the text of what is no file, as of a notebook's cell.
func (f *Files) Know(name, text string) { f.lines[name] = bytes.Split([]byte(text), []byte("\n")) }

// Line is the text of a line, from 1, without its indentation and with secrets masked; "" where it is not known.
func (f *Files) Line(file string, line int) string {
	lines := f.readLines(file)
	if line < 1 || line > len(lines) {
		return ""
	}
	return mem.MaskText(string(bytes.TrimSpace(lines[line-1])))
}

// Around gives the lines from first to last, with their indentation.
func (f *Files) Around(file string, first, last int) []string {
	lines, text := f.readLines(file), []string{}
	for n := first; n <= min(last, len(lines)); n++ {
		text = append(text, mem.MaskText(strings.TrimRight(string(lines[n-1]), " \t\r")))
	}
	return text
}

func (f *Files) readLines(file string) [][]byte {
	lines, seen := f.lines[file]
	if !seen {
		if f.Quotable(file) {
			data, _ := os.ReadFile(file)
			lines = bytes.Split(data, []byte("\n"))
		}
		f.lines[file] = lines
	}
	return lines
}

// Quotable says whether a file is one that is read.
func (f *Files) Quotable(file string) bool {
	if !strings.HasSuffix(file, ".py") || !filepath.IsAbs(file) || f.may != nil && f.may(file) != nil {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() <= maxSource && !info.ModTime().After(f.began)
}
