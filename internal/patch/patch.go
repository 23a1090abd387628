// Package patch changes text by edits of ranges, and writes what changed as a unified diff.
//
//	Edit ──▶ New ──▶ File: old and new lines ──▶ After, Unified ──▶ git apply, patch -p1
//
// All is pure; the caller reads and writes files.
package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Edit puts Text in place of a range of a file. Lines count from 1, columns from 0 in bytes of UTF-8.
type Edit struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Text      string `json:"text"`
	Keyword   bool   `json:"keyword"` // a further argument of a call: a comma goes in front where one is due
}

// File is one that is changed.
type File struct {
	Name  string
	lines []string // with their ends
	hunks []change
}

// change puts other lines in place of some, which begin at an index.
type change struct {
	at       int
	old, new []string
}

// context is how many unchanged lines stand around a change.
const context = 3

// New applies edits, which may stand in any order, to a file. Equal edits are one; those that overlap are an error.
func New(name, text string, edits []Edit) (*File, error) {
	f := &File{Name: name, lines: linesOf(text)}
	offsets := []int{0}
	for _, line := range f.lines {
		offsets = append(offsets, offsets[len(offsets)-1]+len(line))
	}
	var ranges []placed
	for i, e := range edits {
		if slices.Contains(edits[:i], e) {
			continue
		}
		if e.Line < 1 || e.EndLine < e.Line || e.EndLine > len(f.lines) {
			return nil, fmt.Errorf("%s: no lines %d to %d", name, e.Line, e.EndLine)
		}
		p := placed{e, offsets[e.Line-1] + e.Column, offsets[e.EndLine-1] + e.EndColumn}
		if p.from > p.to || p.to > len(text) {
			return nil, fmt.Errorf("%s:%d: no column %d to %d", name, e.Line, e.Column, e.EndColumn)
		}
		ranges = append(ranges, p)
	}
	slices.SortStableFunc(ranges, func(a, b placed) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return f, f.apply(text, offsets, ranges)
}

// placed is an edit by offsets in the text.
type placed struct {
	Edit
	from, to int
}

// apply makes a change of each run of edits whose lines touch.
func (f *File) apply(text string, offsets []int, ranges []placed) error {
	newline := "\n"
	if strings.Contains(text, "\r\n") {
		newline = "\r\n"
	}
	for len(ranges) > 0 {
		first, last, n := ranges[0].Line, lastLine(ranges[0]), 1
		for n < len(ranges) && ranges[n].Line <= last {
			last = max(last, lastLine(ranges[n]))
			n++
		}
		var b strings.Builder
		at, end := offsets[first-1], offsets[max(last, first-1)]
		for _, e := range ranges[:n] {
			if e.from < at {
				return fmt.Errorf("%s:%d: two changes of the same text", f.Name, e.Line)
			}
			b.WriteString(text[at:e.from])
			written := strings.ReplaceAll(e.Text, "\n", newline)
			if before := strings.TrimSpace(b.String()); e.Keyword && !strings.HasSuffix(before, "(") && !strings.HasSuffix(before, ",") {
				written = ", " + written
			}
			b.WriteString(written)
			at = e.to
		}
		b.WriteString(text[at:end])
		f.hunks = append(f.hunks, change{first - 1, f.lines[first-1 : max(last, first-1)], linesOf(b.String())})
		ranges = ranges[n:]
	}
	return nil
}

// lastLine is the last line that an edit changes; the one before its first, where it puts whole lines in front of that.
func lastLine(e placed) int {
	if e.from == e.to && e.Column == 0 && strings.HasSuffix(e.Text, "\n") {
		return e.Line - 1
	}
	return e.EndLine
}

func linesOf(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// After is the changed text.
func (f *File) After() string {
	var b strings.Builder
	at := 0
	for _, h := range f.hunks {
		b.WriteString(strings.Join(f.lines[at:h.at], "") + strings.Join(h.new, ""))
		at = h.at + len(h.old)
	}
	return b.String() + strings.Join(f.lines[at:], "")
}

// Unified is the change as a unified diff, for git apply and patch -p1.
func (f *File) Unified() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", f.Name, f.Name)
	grown := 0 // lines, by the changes before
	for rest := f.hunks; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].at-ending(rest[n-1]) <= 2*context {
			n++
		}
		grown = f.hunk(&b, rest[:n], grown)
		rest = rest[n:]
	}
	return b.String()
}

func ending(c change) int { return c.at + len(c.old) }

// hunk writes changes that stand close together, and returns by how many lines the file has grown behind it.
func (f *File) hunk(b *strings.Builder, changes []change, grown int) int {
	from, to := max(0, changes[0].at-context), min(len(f.lines), ending(changes[len(changes)-1])+context)
	var body strings.Builder
	put := func(mark byte, lines []string) {
		for _, line := range lines {
			body.WriteByte(mark)
			body.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				body.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	at, more := from, 0
	for _, c := range changes {
		put(' ', f.lines[at:c.at])
		put('-', c.old)
		put('+', c.new)
		at, more = ending(c), more+len(c.new)-len(c.old)
	}
	put(' ', f.lines[at:to])
	fmt.Fprintf(b, "@@ -%s +%s @@\n%s", span(from, to-from), span(from+grown, to-from+more), body.String())
	return grown + more
}

// span is where a hunk stands: its first line, and how many.
func span(from, lines int) string {
	if lines > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, lines)
}
