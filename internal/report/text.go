package report

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"hightide/internal/mem"
)

// TextOptions say what the terminal can show. The zero value is plain Unicode of 100 columns.
type TextOptions struct {
	Width int  // columns; 0: 100
	Color bool // the terminal wants colours
	ASCII bool // it cannot show more than ASCII
	Brief bool // headline, findings and picture only
}

// Text writes the report for a terminal: headline, findings with their lines first, the picture, then
// the tables.
//
//	text.go: order, headline, findings ──▶ chart.go: curve and phases ──▶ texttable.go: tables
func (r *Report) Text(o TextOptions) string {
	p := newPrinter(o)
	p.headline(r)
	p.findings(r)
	p.chart(r)
	p.devices(r)
	if !o.Brief {
		for _, t := range r.Tables {
			if p.wants(r, &t) {
				p.table(&t)
			}
		}
		p.notes(r.Notes)
	}
	return p.finish()
}

func newPrinter(o TextOptions) *printer {
	o.Width = min(max(cmp.Or(max(o.Width, 0), 100), 50), 160)
	return &printer{TextOptions: o}
}

// printer gathers the text. Everything that comes from the recording passes clean first: a command
// or an error message could hold escape sequences.
type printer struct {
	TextOptions
	b strings.Builder
}

func (p *printer) finish() string { return p.Fit(p.b.String()) }

// Fit replaces what the terminal cannot show.
func (o TextOptions) Fit(text string) string {
	if !o.ASCII {
		return text
	}
	return asciiOnly.Replace(text)
}

var asciiOnly = strings.NewReplacer("±", "+-", "…", "...", "→", "->", "·", "-", "µ", "u", "°", " deg ", "–", "-", "×",
	"x", "│", "|", "┤", "+", "└", "+", "─", "-", "²", "^2", "●", "*", "■", "*", "○", "o", "░", ".")

// Clean makes text safe to print: no control characters, no escape sequences.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// Colours, as SGR codes.
const (
	bold   = "1"
	dim    = "2"
	red    = "31;1"
	yellow = "33;1"
	blue   = "34"
	cyan   = "36"
)

// Paint puts text into a colour, an SGR code, where the terminal wants any.
func (o TextOptions) Paint(code, s string) string { return paint(o.Color, code, s) }

func (p *printer) paint(code, s string) string { return paint(p.Color, code, s) }

func paint(wanted bool, code, s string) string {
	if !wanted || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string) {
	p.b.WriteString(strings.TrimRight(s, " "))
	p.b.WriteByte('\n')
}

func (p *printer) title(s string) {
	p.line("")
	p.line(p.paint(bold, s))
}

func (p *printer) headline(r *Report) {
	command := Clean(mem.CommandLine(r.Run.Command))
	if r.Run.Name != "" {
		command = strings.TrimSuffix(Clean(r.Run.Name)+": "+command, ": ")
	}
	p.line(p.paint(bold, "hightide") + "  " + Shorten(command, p.Width-10))
	for _, l := range Wrap(strings.Join(r.facts(), " · "), p.Width-10) {
		p.line("          " + p.paint(dim, l))
	}
	if e := r.Headline.Exception; e != nil {
		for _, l := range Wrap(Clean(e.Sentence), p.Width-10) {
			p.line("          " + p.paint(red, l))
		}
	}
	p.line("")
	for _, l := range Wrap(Clean(r.Headline.Verdict), p.Width-2) {
		p.line("  " + p.paint(bold, l))
	}
}

// facts are what stands below the command: how long it ran, how many steps, how it ended.
func (r *Report) facts() (facts []string) {
	h := &r.Headline
	if h.Duration > 0 || r.Run.Verb != "explain" && r.Run.Verb != "diff" {
		facts = append(facts, Duration(h.Duration))
	}
	facts = append(facts, r.traceFacts()...)
	if h.Steps > 0 {
		steps := Counted(int64(h.Steps), "step")
		if t, ok := h.StepTime.Get(); ok {
			steps += " of " + Duration(t)
		}
		facts = append(facts, steps)
	}
	if h.Stopped {
		facts = append(facts, "stopped as asked")
	}
	if r.Run.Verb == "attach" {
		facts = append(facts, "it ran before the recording"+map[bool]string{true: ", and went on after it"}[h.Left])
	}
	if code, ok := h.ExitCode.Get(); ok {
		facts = append(facts, fmt.Sprintf("exit code %d", code))
	}
	if signal, ok := h.Signal.Get(); ok {
		ended := "ended by " + SignalName(signal)
		if h.Exception != nil && h.Exception.Serves { // which the server sent itself: no limit of memory did
			ended += " after its engine's error"
		}
		facts = append(facts, ended)
	}
	if !h.Complete {
		facts = append(facts, "recording without an end")
	}
	return facts
}

func (p *printer) findings(r *Report) {
	p.title("Findings")
	said := r.Headline.NotLooked
	if len(r.Findings) == 0 {
		said = r.noFindings("none.")
	}
	for _, l := range Wrap(Clean(said), p.Width-2) {
		p.line("  " + l)
	}
	for _, f := range r.Findings {
		mark, code := "●", cyan
		switch f.Severity {
		case Critical:
			mark, code = "■", red
		case Warning:
			mark, code = "●", yellow
		case Info:
			mark = "○"
		}
		where := ""
		if f.File != "" {
			where = p.paint(bold, Clean(mem.LineName(mem.Location{File: f.File, Line: f.Line}))) + "  "
		}
		numbers := figures(f)
		if asked := f.SiteFile != "" && (f.SiteFile != f.File || f.SiteLine != f.Line); f.Kind == KindOOM && asked {
			numbers = "" // what another line asked for, and this one did not hold
		}
		if 4+len([]rune(mem.LineName(mem.Location{File: f.File,
			Line: f.Line})))+2+len(f.Kind)+len([]rune(numbers)) > p.Width {
			numbers = "" // they are in the text as well
		}
		p.line("  " + p.paint(code, mark) + " " + where + p.paint(code, f.Kind) + numbers)
		for _, l := range Wrap(Clean(f.Text), p.Width-4) {
			p.line("    " + l)
		}
		for i, l := range Wrap(Clean(f.Advice), p.Width-6) {
			lead := "  "
			if i == 0 {
				lead = "→ "
			}
			p.line("    " + p.paint(blue, lead+l))
		}
		if f.File != "" && !strings.HasPrefix(f.File, "<") {
			p.line("    " + p.paint(dim, Shorten(Clean(fmt.Sprintf("%s:%d", f.File, f.Line)), p.Width-4)))
		}
	}
	if len(r.Findings) > 0 {
		p.line("  " + p.paint(dim, "What a kind means: hightide about "+r.Findings[0].Kind))
	}
}

// noFindings says that nothing was found, of what, and what was not looked for: then there may be something.
func (r *Report) noFindings(none string) string {
	return cmp.Or(r.Headline.Nothing, strings.TrimSpace(cmp.Or(r.Headline.NotLooked, none)+" "+r.Headline.Looked))
}

// figures is "  1.19 MiB per step ± 24.0 KiB (sampled)".
func figures(f Finding) string {
	if rate, ok := f.BytesPerStep.Get(); ok {
		s := "  " + mem.Bytes(rate).String() + " per step"
		if half, ok := f.Error.Get(); ok && half > 0 {
			s += " ± " + mem.Bytes(half).String()
		}
		return s + " (" + string(f.Label) + ")"
	}
	if bytes, ok := f.Bytes.Get(); ok {
		return "  " + mem.Bytes(bytes).String() + " (" + string(f.Label) + ")"
	}
	return ""
}

func (p *printer) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	p.title("Notes")
	for _, n := range notes {
		for i, l := range Wrap(Clean(n), p.Width-4) {
			lead := "    "
			if i == 0 {
				lead = "  · "
			}
			p.line(lead + p.paint(dim, l))
		}
	}
}

// Wrap breaks text at spaces; a word longer than the width stands alone. A width of 0 or less breaks nothing.
func Wrap(s string, width int) []string {
	if width <= 0 {
		return []string{s}
	}
	var lines []string
	line, length := "", 0
	for word := range strings.FieldsSeq(s) {
		n := len([]rune(word))
		if length > 0 && length+1+n > width {
			lines = append(lines, line)
			line, length = "", 0
		}
		if length > 0 {
			line += " "
			length++
		}
		line += word
		length += n
	}
	if length > 0 {
		lines = append(lines, line)
	}
	return lines
}

// Shorten cuts text to a width, at the end.
func Shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	if width < 2 {
		return string(runes[:max(width, 0)])
	}
	return string(runes[:width-1]) + "…"
}
