package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every command that help lists has a page that says what it is, and none of its text is a command to roff.
func TestManualPages(t *testing.T) {
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	folder := t.TempDir()
	written, err := writeManuals(a.root(), folder)
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(folder, "hightide*.1"))
	if len(pages) != written || written < len(a.root().Commands())/2 {
		t.Fatalf("%d pages, %d told of", len(pages), written)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			macro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case !strings.HasPrefix(line, ".") && !strings.HasPrefix(line, "'"):
			case !strings.Contains(" .TH .nh .SH .TP .PP .EX .EE ", " "+macro+" "):
				t.Errorf("%s: %q would be a command", filepath.Base(page), line)
			}
		}
	}
	rm, _ := os.ReadFile(filepath.Join(folder, "hightide-rm.1"))
	for _, want := range []string{`hightide\-rm \- Delete runs`, "\n\\fB\\-\\-json\\fP [=FILE]\n",
		".EX\n  hightide rm last\n", "hightide(1)"} {
		if !strings.Contains(string(rm), want) {
			t.Errorf("the page of rm lacks %q:\n%s", want, rm)
		}
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		".hightide.toml":        `\&.hightide.toml`,
		"a\n'b' C:\\x --flag.":  "a\n\\&'b' C:\\ex \\-\\-flag.",
		"one\n\n  two\n\nthree": "one\n\n  two\n\nthree",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, want := paragraphs("one\n\n  two\n\n  .x\nthree"), "one\n.PP\n.EX\n  two\n\n  .x\n.EE\nthree"; got != want {
		t.Errorf("paragraphs: %q, want %q", got, want)
	}
}
