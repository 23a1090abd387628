// Package docs carries those pages of the documentation into the Go binary that a report refers to.
package docs

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed findings.md
var findings string

// pages are those that hints and help name, as where they are read there is no folder of them.
//
//go:embed bench.md explain.md imagine.md mcp.md metrics.md sdk.md team.md tune.md formats/api.md formats/intake.md
var pages embed.FS

// Page is the Markdown of a page by its name, without folder and ending; "": none is carried.
func Page(name string) string {
	for _, folder := range []string{".", "formats"} {
		if text, err := pages.ReadFile(path.Join(folder, name+".md")); err == nil && name == path.Base(name) {
			return string(text)
		}
	}
	return ""
}

// Pages are the names of the pages that are carried, sorted.
func Pages() (names []string) {
	for _, folder := range []string{".", "formats"} {
		entries, _ := pages.ReadDir(folder)
		for _, entry := range entries {
			if name, ok := strings.CutSuffix(entry.Name(), ".md"); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

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
