package report

import (
	"cmp"
	"fmt"
	"strings"

	"hightide/internal/mem"
)

// Markdown writes the report as a comment on a change: verdict and findings open, tables folded.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### hightide: %s\n\n", Markdown(cmp.Or(mem.CommandLine(r.Run.Command), r.Run.Name)))
	fmt.Fprintf(&b, "**%s**\n\n", Markdown(r.Headline.Verdict))
	if facts := r.facts(); len(facts) > 0 {
		fmt.Fprintf(&b, "%s\n\n", strings.Join(facts, " · "))
	}
	if e := r.Headline.Exception; e != nil && e.Sentence != "" {
		fmt.Fprintf(&b, "%s\n\n", Markdown(e.Sentence))
	}
	for _, f := range r.Findings {
		where := ""
		if f.File != "" {
			where = "`" + mem.LineName(mem.Location{File: f.File, Line: f.Line}) + "` "
		}
		fmt.Fprintf(&b, "- **%s** %s(%s)%s: %s\n", f.Severity, where, f.Kind, figures(f), Markdown(f.Text))
		if f.Advice != "" {
			fmt.Fprintf(&b, "  - %s\n", Markdown(f.Advice))
		}
	}
	switch {
	case len(r.Findings) == 0:
		fmt.Fprintf(&b, "%s\n", Markdown(r.noFindings("No findings.")))
	case r.Headline.NotLooked != "":
		fmt.Fprintf(&b, "%s\n", Markdown(r.Headline.NotLooked))
	}
	for i := range r.Tables {
		r.Tables[i].markdown(&b)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n<details><summary>Notes</summary>\n\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", Markdown(n))
		}
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

func (t *Table) markdown(b *strings.Builder) {
	var columns []ListColumn
	rows := make([][]string, min(len(t.Rows), 20))
	for i, c := range t.Columns {
		if c.Title == "" {
			continue
		}
		title := c.Title
		if c.Label != "" && c.Label != mem.Measured {
			title += " (" + string(c.Label) + ")"
		}
		columns = append(columns, ListColumn{Title: title, Right: c.Unit != ""})
		for n := range rows {
			rows[n] = append(rows[n], c.format(t.Rows[n][i]))
		}
	}
	MarkdownTable(b, t.Title, columns, rows, t.Note)
}

// MarkdownTable writes a table that is folded under its title, with a note below it.
func MarkdownTable(b *strings.Builder, title string, columns []ListColumn, rows [][]string, note string) {
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n|", Markdown(title))
	rule := "|"
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", Markdown(c.Title))
		if c.Right {
			rule += " ---: |"
		} else {
			rule += " --- |"
		}
	}
	b.WriteString("\n" + rule + "\n")
	for _, row := range rows {
		b.WriteString("|")
		for _, cell := range row {
			fmt.Fprintf(b, " %s |", Markdown(cell))
		}
		b.WriteString("\n")
	}
	if note != "" {
		fmt.Fprintf(b, "\n%s\n", Markdown(note))
	}
	b.WriteString("\n</details>\n")
}

// markdownSpecial are the characters that a text from a recording must not smuggle in. Backticks
// stay: our own sentences quote code with them.
var markdownSpecial = strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "[", "\\[", "]", "\\]", "*", "\\*",
	"_", "\\_", "@", "@\u200b")

// Markdown makes a text safe to stand in Markdown: nothing in it is markup but code between backticks.
func Markdown(s string) string {
	parts := strings.Split(Clean(s), "`")
	for i := range parts {
		if i%2 == 0 || i == len(parts)-1 { // outside of code
			parts[i] = markdownSpecial.Replace(parts[i])
		} else {
			parts[i] = strings.ReplaceAll(parts[i], "|", "\\|")
		}
	}
	return strings.Join(parts, "`")
}
