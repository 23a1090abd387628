package matrix

import (
	"fmt"
	"math"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// sheet is a table of texts for the terminal and for Markdown.
type sheet struct {
	title   string
	columns []report.ListColumn
	rows    [][]string
}

func (s *sheet) add(cells ...string) { s.rows = append(s.rows, cells) }

func text(titles ...string) (columns []report.ListColumn) {
	for _, t := range titles {
		name, right := strings.CutPrefix(t, ">")
		columns = append(columns, report.ListColumn{Title: name, Right: right})
	}
	return columns
}

// rowsOnTerminal is how many rows of a table a terminal gets; Markdown and the page have more.
const (
	rowsOnTerminal = 40
	rowsInMarkdown = 200
)

// Text is the summary for a terminal.
func (c *Comparison) Text(o report.TextOptions) string {
	if o.Width <= 0 {
		o.Width = 100
	}
	var b strings.Builder
	for _, line := range report.Wrap(report.Clean(c.Headline()), o.Width) {
		b.WriteString(o.Paint("1", line) + "\n")
	}
	for _, s := range c.sheets() {
		s.text(&b, o)
	}
	list(&b, o, "What to make of it", c.advised())
	list(&b, o, "Notes", c.Notes)
	if c.Regression != nil {
		b.WriteString("\n" + c.Regression.Text(o))
	}
	return o.Fit(b.String())
}

func (s *sheet) text(b *strings.Builder, o report.TextOptions) {
	if len(s.rows) == 0 {
		return
	}
	b.WriteString("\n" + o.Paint("1", report.Clean(s.title)) + "\n")
	shown := s.rows[:min(len(s.rows), rowsOnTerminal)]
	_ = report.WriteList(b, s.columns, shown, o.Width, false)
	if left := len(s.rows) - len(shown); left > 0 {
		fmt.Fprintf(b, "… %s more\n", report.Count(int64(left)))
	}
}

func list(b *strings.Builder, o report.TextOptions, title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	b.WriteString("\n" + o.Paint("1", title) + "\n")
	for _, s := range sentences {
		for i, line := range report.Wrap(report.Clean(s), o.Width-4) {
			lead := "    "
			if i == 0 {
				lead = "  · "
			}
			b.WriteString(lead + line + "\n")
		}
	}
}

// Markdown is the same as a comment on a change.
func (c *Comparison) Markdown() string {
	var b strings.Builder
	if c.Regression != nil {
		b.WriteString(c.Regression.Markdown() + "\n")
	}
	fmt.Fprintf(&b, "### hightide: %s\n\n**%s**\n", report.Markdown(c.Name), report.Markdown(c.Headline()))
	for _, a := range c.advised() {
		fmt.Fprintf(&b, "\n- %s", report.Markdown(a))
	}
	b.WriteString("\n")
	for _, s := range c.sheets() {
		s.markdown(&b)
	}
	if len(c.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "- %s\n", report.Markdown(n))
	}
	return b.String()
}

func (s *sheet) markdown(b *strings.Builder) {
	if len(s.rows) == 0 {
		return
	}
	shown, note := s.rows[:min(len(s.rows), rowsInMarkdown)], ""
	if left := len(s.rows) - len(shown); left > 0 {
		note = report.Count(int64(left)) + " more rows are not shown."
	}
	report.MarkdownTable(b, s.title, s.columns, shown, note)
}

// Headline says how much of the matrix was measured.
func (c *Comparison) Headline() string {
	counts := map[State]int{}
	least, most := math.MaxInt, 0
	for _, cell := range c.Cells {
		counts[cell.State]++
		if cell.State == Done {
			least, most = min(least, cell.Done), max(most, cell.Done)
		}
	}
	said := fmt.Sprintf("%s: %s, %d measured", c.Name, report.Counted(int64(len(c.Cells)), "cell"), counts[Done])
	if counts[Done] > 0 {
		runs := report.Counted(int64(most), "run")
		if most > least {
			runs = fmt.Sprintf("%d to %s", least, runs)
		}
		said += " in " + runs + " each"
	}
	for _, s := range []struct {
		state State
		words string
	}{{Failed, "failed"}, {OutOfMemory, "ran out of memory"}, {TimedOut, "timed out"}, {Unavailable, "cannot run here"},
		{Lost, "lost with their machine"}, {"", "not run yet"}} {
		if n := counts[s.state]; n > 0 {
			said += fmt.Sprintf(", %d %s", n, s.words)
		}
	}
	return said
}

func (c *Comparison) sheets() []sheet {
	return []sheet{c.cellSheet(), c.ratioSheet(), c.fitSheet(), c.differenceSheet()}
}

// varied are the axes of more than one value, whose values a table needs.
func (c *Comparison) varied() (axes []int) {
	for i, a := range c.Axes {
		if len(a.Values) > 1 {
			axes = append(axes, i)
		}
	}
	return axes
}

// leading is the figure that a cell is compared by.
func (c *Comparison) leading(values []string) Figure {
	if c.away(values) && c.Device != "" {
		return c.Device
	}
	return c.Figure
}

// cellSheet has a row for each cell.
func (c *Comparison) cellSheet() sheet {
	s := sheet{title: "Cells"}
	if c.Figure != "" {
		s.title += ": " + c.labelled(c.Figure)
	}
	if c.Device != "" {
		s.title += "; of devices: " + c.labelled(c.Device)
	}
	var titles []string
	for _, a := range c.varied() {
		titles = append(titles, c.Axes[a].Name)
	}
	s.columns = text(append(titles, ">mean", ">95 %", ">runs", ">step", "state")...)
	for _, cell := range c.Cells {
		var row []string
		for _, a := range c.varied() {
			row = append(row, c.shown(a, cell.Values[a]))
		}
		f := c.leading(cell.Values)
		stat, ok := cell.Figures[f]
		if !ok {
			s.add(append(row, "", "", "", "", cell.outcome())...)
			continue
		}
		step := ""
		if t, ok := cell.Figures[StepTime]; ok && f != StepTime {
			step = Amount(StepTime, t.Mean)
		}
		s.add(append(row, Amount(f, stat.Mean), stat.exactness(f), fmt.Sprint(stat.Count), step, cell.outcome())...)
	}
	return s
}

// titled is a figure with what is taken of it: "peak PSS".
func (i FigureInfo) titled() string {
	if i.Statistic == "max" && i.Unit == mem.UnitBytes {
		return "peak " + i.Title
	}
	return i.Title
}

// labelled is a figure with how it was come by, unless it was measured.
func (c *Comparison) labelled(f Figure) string {
	for _, i := range c.Figures {
		if i.Name == f && i.Label != "" && i.Label != mem.Measured {
			return i.titled() + " (" + string(i.Label) + ")"
		}
	}
	return info(f).titled()
}

// outcome is what became of a cell that has something to say of it.
func (c CellStats) outcome() string {
	switch {
	case c.State == "":
		return "not run yet"
	case c.State == Done && c.Done < c.Trials:
		return fmt.Sprintf("%d of %d trials", c.Done, c.Trials)
	case c.State == Done:
		return ""
	case c.Reason == "":
		return string(c.State)
	}
	return string(c.State) + ": " + c.Reason
}

// exactness is an interval in words.
func (s Stat) exactness(f Figure) string {
	switch {
	case s.Count < 2:
		return "one run"
	case s.identical() && s.Basis == Identical:
		return fmt.Sprintf("identical in %d runs", s.Count)
	case s.Interval == nil:
		return "not known"
	}
	return between(Amount(f, s.Interval.Low), Amount(f, s.Interval.High))
}

// between joins two amounts, with their unit once where it is the same: "693 to 700 MiB".
func between(low, high string) string {
	if at := strings.LastIndex(low, " "); at > 0 && strings.HasSuffix(high, low[at:]) && strings.Count(high, " ") == 1 {
		low = low[:at]
	}
	return low + " to " + high
}

func bytesBetween(i *Interval) string { return between(bytesOf(i.Low), bytesOf(i.High)) }

func bytesOf(n float64) string { return mem.Bytes(math.Round(n)).String() }

// Amount writes a value of a figure for people.
func Amount(f Figure, value float64) string {
	switch info(f).Unit {
	case mem.UnitBytes:
		return bytesOf(value)
	case mem.UnitNanoseconds:
		return report.Duration(int64(math.Round(value)))
	case mem.UnitMilli:
		return fmt.Sprintf("%.0f %%", value/10)
	}
	return report.Count(int64(math.Round(value)))
}

// ratioSheet has the ratios of the leading figures.
func (c *Comparison) ratioSheet() sheet {
	s := sheet{title: "Ratios: geometric means over pairs of cells that differ in nothing else",
		columns: text("ratio", "of", ">times", ">95 %", "verdict", ">pairs", ">from", ">to")}
	for _, r := range c.Ratios {
		if r.Figure != c.Figure && r.Figure != c.Device && r.Figure != StepTime {
			continue
		}
		of := info(r.Figure).titled()
		if r.BaseFigure != r.Figure {
			of += " / " + info(r.BaseFigure).titled()
		}
		span := "not known"
		if r.Interval != nil {
			span = r.Interval.span()
		}
		said := string(r.Verdict)
		if r.Verdict == Unknown {
			said = ""
		}
		s.add(r.Title, of, Times(r.Ratio), span, said, fmt.Sprint(r.Pairs), Times(r.Least), Times(r.Most))
	}
	return s
}

// fitSheet has how memory goes with the batch. What all rows have in common stands in the title.
func (c *Comparison) fitSheet() sheet {
	s := sheet{title: "Memory by batch", columns: text("cells", "form", ">fixed", ">an item", ">95 %", ">R²",
		">largest batch", "in")}
	forms, rooms := map[string]bool{}, map[string]bool{}
	for _, f := range c.Fits {
		forms[f.Form] = true
		rooms[f.room()] = true
	}
	for _, f := range c.Fits {
		last := f.Terms[len(f.Terms)-1]
		span := "not known"
		if last.Interval != nil {
			span = bytesBetween(last.Interval)
		}
		fit := fmt.Sprintf("%.4f", f.R2)
		switch {
		case f.Freedom == 0:
			fit = "not known"
		case f.Judged && !f.Straight:
			fit += ", bent"
		}
		batch, form, room := "", f.Form, f.room()
		if room != "" {
			batch = f.Limit.words()
		}
		if len(forms) == 1 {
			form = ""
		}
		if len(rooms) == 1 {
			room = ""
		}
		s.add(c.group(f.Values), form, bytesOf(f.Terms[0].Value), bytesOf(last.Value), span, fit, batch, room)
	}
	if len(c.Fits) > 0 && len(forms) == 1 {
		s.title += ": " + c.Fits[0].Form
	}
	if len(c.Fits) > 0 && len(rooms) == 1 && c.Fits[0].room() != "" {
		s.title += ", and the largest batch in " + c.Fits[0].room()
	}
	return s
}

// room is the memory that a largest batch is foretold for; empty: none is.
func (f *Fit) room() string {
	if f.Limit == nil || f.Limit.Unlimited {
		return ""
	}
	return mem.Bytes(f.Limit.Memory).String() + " of " + f.Limit.Of
}

// words is a largest batch with its interval.
func (l *Limit) words() string {
	said := report.Count(l.Batch)
	switch {
	case l.Refuted:
		return "not " + report.Count(*l.Failed) + ", which failed"
	case l.High != nil && l.Low == *l.High:
	case l.High != nil && l.Low > 0:
		said += fmt.Sprintf(" (%s to %s)", report.Count(l.Low), report.Count(*l.High))
	default:
		said += fmt.Sprintf(" (%s at least)", report.Count(l.Low))
	}
	return said
}

// differenceSheet has what explains that cells differ: a row for each two cells, and below it one for each part.
func (c *Comparison) differenceSheet() sheet {
	s := sheet{title: "What explains the largest differences",
		columns: text(">difference", ">here", ">there", "by", "cells and parts")}
	const each = 5
	for _, d := range c.Differences {
		s.add(bytesOf(d.Bytes), "", "", "", c.compared(d))
		shown := map[string]int{}
		for _, p := range d.Parts {
			if shown[p.By]++; shown[p.By] <= each {
				s.add((p.Cell - p.Base).String(), p.Cell.String(), p.Base.String(), p.By, "  "+p.Name)
			}
		}
		if d.Note != "" {
			s.add("", "", "", "", "  "+d.Note)
		}
	}
	return s
}

// compared names two cells by what is varied: "train, 256 / 16".
func (c *Comparison) compared(d Difference) string {
	var words []string
	for _, a := range c.varied() {
		value := c.shown(a, c.Cells[d.Cell].Values[a])
		if base := c.shown(a, c.Cells[d.Base].Values[a]); base != value {
			value += " / " + base
		}
		words = append(words, value)
	}
	return strings.Join(words, ", ")
}

func (c *Comparison) advised() (sentences []string) {
	for _, a := range c.Advice {
		sentences = append(sentences, a.Sentence)
	}
	return sentences
}
