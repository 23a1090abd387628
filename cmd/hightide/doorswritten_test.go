package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hightide/internal/options"
)

// use is one use case with its settings.
type use struct {
	name string // of the command
	options.List
}

// formFields are the fields of the web page's forms, by use case, as web/src/app/settings.json has them.
func formFields(uses []use) []byte {
	var text bytes.Buffer
	text.WriteString("{")
	for i, use := range uses {
		fmt.Fprintf(&text, "%s\n  %q: [", comma(i), use.name)
		for n, s := range byFirst(use.List) {
			fmt.Fprintf(&text, "%s\n    {", comma(n))
			for n, pair := range field(&s) {
				fmt.Fprintf(&text, "%s\n      %q: %s", comma(n), pair.key, inJSON(pair.value))
			}
			text.WriteString("\n    }")
		}
		text.WriteString("\n  ]")
	}
	text.WriteString("\n}\n")
	return text.Bytes()
}

func comma(before int) string {
	if before > 0 {
		return ","
	}
	return ""
}

// byFirst are the form's settings, those first that are seen without a click.
func byFirst(l options.List) options.List {
	l = l.Of(options.Form)
	slices.SortStableFunc(l, func(a, b options.Setting) int {
		if a.First == b.First {
			return 0
		} else if a.First {
			return -1
		}
		return 1
	})
	return l
}

type pair struct {
	key   string
	value any
}

// field is one of a form: what is not said of it is absent.
func field(s *options.Setting) []pair {
	flag := "--" + s.Name
	if s.Not&options.Command != 0 {
		flag = ""
	}
	s.More = "" // the page shows what it has to choose from
	about := strings.ReplaceAll(s.About(), "may be given several times", "several with spaces between")
	first, size := utf8.DecodeRuneInString(about)
	about = cmp.Or(s.Hint, string(unicode.ToUpper(first))+about[size:]+".")
	all := []pair{{"name", s.Key()}, {"flag", flag}, {"label", s.Label}, {"hint", about}, {"kind", fieldKind(s)}}
	if fieldKind(s) == "choice" {
		choices := s.Among
		if s.Default == "" {
			choices = append([]string{""}, choices...)
		}
		all = append(all, pair{"choices", choices}, pair{"usual", s.Default})
	}
	if s.Example != "" {
		all = append(all, pair{"example", s.Example})
	}
	if s.Least > 0 && s.Kind() == "integer" {
		all = append(all, pair{"least", s.Least})
	}
	if s.Part != "" {
		all = append(all, pair{"part", s.Part})
	}
	if !s.First {
		all = append(all, pair{"more", true})
	}
	return all
}

// fieldKind is how a form asks for a value.
func fieldKind(s *options.Setting) string {
	switch kind := s.Kind(); {
	case kind == "boolean":
		return "check"
	case kind == "integer" || kind == "number":
		return "number"
	case s.Name == "command" || s.Name == "spec":
		return "line"
	case kind == "array" || kind == "object":
		return kind
	case s.Among != nil:
		return "choice"
	}
	return "text"
}

// inJSON writes a value as the web's formatter does: a list in one line.
func inJSON(value any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // texts and numbers can be written
	}
	return strings.ReplaceAll(strings.TrimSpace(text.String()), `","`, `", "`)
}

// keywords is the Python module hightide/_settings.py: for each use case its keywords with their flags, and of those
// that are given as one mapping the type of that.
func keywords(uses []use) []byte {
	var text bytes.Buffer
	text.WriteString(`"""The settings of the commands that this package passes on.

Written by: go test ./cmd/hightide -run Doors -update, from the lists in Go: change those.
"""

from __future__ import annotations

from typing import Dict, List, TypedDict
`)
	for _, use := range uses {
		settings := use.Of(options.Python)
		slices.SortFunc(settings, func(a, b options.Setting) int { return strings.Compare(keyword(&a), keyword(&b)) })
		if use.name == "imagine" { // the other two have a keyword for each
			text.WriteString("\n\nclass ImagineSettings(TypedDict, total=False):\n" +
				"    \"\"\"What imagine() can be told besides.\"\"\"\n\n")
			for _, s := range settings {
				for _, line := range wrapped(s.About(), 110) {
					fmt.Fprintf(&text, "    # %s\n", line)
				}
				fmt.Fprintf(&text, "    %s: %s\n", keyword(&s), pythonTypes[s.Kind()])
			}
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "\n%s: Dict[str, str] = {\n", strings.ToUpper(use.name))
		for _, s := range settings {
			fmt.Fprintf(&text, "    %q: \"--%s\",\n", keyword(&s), s.Name)
		}
		text.WriteString("}\n")
	}
	return text.Bytes()
}

var pythonTypes = map[string]string{"string": "str", "boolean": "bool", "integer": "int", "number": "float",
	"array": "List[str]", "object": "Dict[str, str]"}

// keyword is what the Python package calls the setting.
func keyword(s *options.Setting) string {
	if s.Keyword != "" {
		return s.Keyword
	}
	return s.Key()
}

// wrapped breaks a text into lines of at most so many bytes.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
