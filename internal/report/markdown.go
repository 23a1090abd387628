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
	fmt.Fprintf(&b, "### hightide: %s\n\n", markdown(cmp.Or(mem.CommandLine(r.Run.Command), r.Run.Name)))
	fmt.Fprintf(&b, "**%s**\n\n", markdown(r.Headline.Verdict))
	if facts := r.facts(); len(facts) > 0 {
		fmt.Fprintf(&b, "%s\n\n", strings.Join(facts, " · "))
	}
	if e := r.Headline.Exception; e != nil && e.Sentence != "" {
		fmt.Fprintf(&b, "%s\n\n", markdown(e.Sentence))
	}
	for _, f := range r.Findings {
		where := ""
		if f.File != "" {
			where = "`" + mem.LineName(mem.Location{File: f.File, Line: f.Line}) + "` "
		}
		fmt.Fprintf(&b, "- **%s** %s(%s)%s: %s\n", f.Severity, where, f.Kind, figures(f), markdown(f.Text))
		if f.Advice != "" {
			fmt.Fprintf(&b, "  - %s\n", markdown(f.Advice))
		}
	}
	switch {
	case len(r.Findings) == 0:
		fmt.Fprintf(&b, "%s\n", markdown(r.noFindings("No findings.")))
	case r.Headline.NotLooked != "":
		fmt.Fprintf(&b, "%s\n", markdown(r.Headline.NotLooked))
	}
	for i := range r.Tables {
		r.Tables[i].markdown(&b)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n<details><summary>Notes</summary>\n\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", markdown(n))
		}
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

func (t *Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n|", markdown(t.Title))
	var rule strings.Builder
	for _, c := range t.Columns {
		if c.Title == "" {
			continue
		}
		title := c.Title
		if c.Label != "" && c.Label != mem.Measured {
			title += " (" + string(c.Label) + ")"
		}
		fmt.Fprintf(b, " %s |", markdown(title))
		if c.Unit == "" {
			rule.WriteString(" --- |")
		} else {
			rule.WriteString(" ---: |")
		}
	}
	fmt.Fprintf(b, "\n|%s\n", rule.String())
	for _, row := range t.Rows[:min(len(t.Rows), 20)] {
		b.WriteString("|")
		for i, c := range row {
			if t.Columns[i].Title == "" {
				continue
			}
			fmt.Fprintf(b, " %s |", markdown(t.Columns[i].format(c)))
		}
		b.WriteString("\n")
	}
	if t.Note != "" {
		fmt.Fprintf(b, "\n%s\n", markdown(t.Note))
	}
	b.WriteString("\n</details>\n")
}

// markdownSpecial are the characters that a text from a recording must not smuggle in. Backticks
// stay: our own sentences quote code with them.
var markdownSpecial = strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "[", "\\[", "]", "\\]", "*", "\\*", "_", "\\_", "@", "@\u200b")

func markdown(s string) string {
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

// Markdown makes a text safe to stand in Markdown: nothing in it is markup but code between backticks.
func Markdown(s string) string { return markdown(s) }
