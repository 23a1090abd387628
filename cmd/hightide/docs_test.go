package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	fenced       = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	typed        = regexp.MustCompile(`\bhightide ([a-z]+) (.*)`)
	ofFlag       = regexp.MustCompile(`^--?([a-z][\w-]*)`)
	htmlComments = regexp.MustCompile(` # .*| -- .*| \| .*| > .*`)
)

// TestDocs: each flag of a command that a page shows to be copied is one of that command's, and each command exists.
func TestDocs(t *testing.T) {
	root := (&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root()
	pages := []string{"../../README.md"}
	for _, folder := range []string{"docs", "docs/formats"} {
		more, err := filepath.Glob("../../" + folder + "/*.md")
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllSubmatch(text, -1) {
			for line := range strings.Lines(string(block[1])) {
				seen += flagsOf(t, root, page, strings.TrimSpace(line))
			}
		}
	}
	if seen < 50 {
		t.Errorf("the pages show %d flags: they are not what they were", seen)
	}
}

// flagsOf checks the flags of a line that types a command, and says how many there are.
func flagsOf(t *testing.T, root *cobra.Command, page, line string) int {
	found := typed.FindStringSubmatch(htmlComments.ReplaceAllString(line, ""))
	if found == nil {
		return 0
	}
	c, _, err := root.Find([]string{found[1]})
	if err != nil || c == root {
		t.Errorf("%s: %s: there is no command %s", filepath.Base(page), line, found[1])
		return 0
	}
	seen := 0
	for word := range strings.FieldsSeq(found[2]) {
		flag := ofFlag.FindStringSubmatch(word)
		if flag == nil {
			continue
		}
		seen++
		known := c.Flag(flag[1]) != nil || len(flag[1]) == 1 && c.Flags().ShorthandLookup(flag[1]) != nil
		if !known {
			t.Errorf("%s: %s: there is no %s", filepath.Base(page), line, word)
		}
	}
	return seen
}
