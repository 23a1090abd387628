package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const mostWords = 30 // in a sentence of a help text, as scripts/prose.py has it for pages

var listing = regexp.MustCompile(`(?m)^  .*$`) // of examples, tables, exit codes: read one by one

var sentenceEnd = regexp.MustCompile(`[.:;!?]["')]*\s`)

// Every help text can be read: no sentence is long, and each command says its exit codes.
func TestHelpTexts(t *testing.T) {
	root := (&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root()
	for _, c := range append(root.Commands(), root) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" { // those two are cobra's
			continue
		}
		if !strings.Contains(c.Long, "Exit codes:") {
			t.Errorf("%s: no exit codes", c.CommandPath())
		}
		texts := strings.Split(c.Long, "\n\n")
		c.Flags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, text := range texts {
			text = listing.ReplaceAllString(text, "\n")
			for _, sentence := range sentenceEnd.Split(text, -1) {
				if words := strings.Fields(sentence); len(words) > mostWords {
					t.Errorf("%s: a sentence of %d words: %s", c.CommandPath(), len(words), sentence)
				}
			}
		}
	}
}
