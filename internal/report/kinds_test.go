package report

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hightide/docs"
)

// TestKindsAreExplained: each kind of finding has its part of docs/findings.md, and each example there is a sentence of
// a report in testdata/reports.
func TestKindsAreExplained(t *testing.T) {
	source, err := os.ReadFile("report.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds, explained []string
	for _, found := range regexp.MustCompile(`(?m)^\tKind\w+ += "(\w+)"`).FindAllSubmatch(source, -1) {
		kinds = append(kinds, string(found[1]))
	}
	var reports strings.Builder
	files, _ := filepath.Glob("../../testdata/reports/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reports.WriteString(strings.Join(strings.Fields(string(text)), " "))
	}
	for _, f := range docs.Findings() {
		explained = append(explained, f.Kind)
		for _, p := range strings.Split(f.Text, "\n\n") {
			example := strings.Join(strings.Fields(strings.ReplaceAll("\n"+p, "\n> ", " ")), " ")
			if strings.HasPrefix(p, "> ") && !strings.Contains(reports.String(), example) {
				t.Errorf("%s: no report says %q", f.Kind, example)
			}
		}
		for _, part := range []string{"What it does not mean: ", "What to do: "} {
			if !strings.Contains(f.Text, part) {
				t.Errorf("%s does not say: %s", f.Kind, part)
			}
		}
	}
	slices.Sort(kinds)
	slices.Sort(explained)
	if !slices.Equal(kinds, explained) {
		t.Errorf("kinds are %q, explained are %q", kinds, explained)
	}
}
