// Package docs carries those pages of the documentation into the Go binary that a report refers to.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed findings.md
var findings string

// Finding is a kind of finding and what it means.
type Finding struct {
	Kind string `json:"kind" doc:"As findings have it: leak, growth, oom."`
	Text string `json:"text" doc:"What it means, in Markdown: paragraphs, and quotes of reports."`
}

// Findings are the kinds in the order of the page.
func Findings() []Finding {
	var all []Finding
	for _, section := range strings.Split(findings, "\n## ")[1:] {
		kind, text, _ := strings.Cut(section, "\n")
		all = append(all, Finding{kind, strings.TrimSpace(text)})
	}
	return all
}
