package options

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Use is one use case with its settings.
type Use struct {
	Name string // of the command
	List
}

// Fields are the fields of the web page's forms, by use case, as web/src/app/settings.json has them.
func Fields(uses ...Use) []byte {
	var text bytes.Buffer
	text.WriteString("{")
	for i, use := range uses {
		fmt.Fprintf(&text, "%s\n  %q: [", comma(i), use.Name)
		for n, s := range use.byFirst() {
			fmt.Fprintf(&text, "%s\n    {", comma(n))
			for n, pair := range s.field() {
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
func (l List) byFirst() List {
	l = l.Of(Form)
	slices.SortStableFunc(l, func(a, b Setting) int {
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
func (s *Setting) field() []pair {
	flag := "--" + s.Name
	if s.Not&Command != 0 {
		flag = ""
	}
	about := s.About()
	first, size := utf8.DecodeRuneInString(about)
	about = string(unicode.ToUpper(first)) + about[size:] + "."
	all := []pair{{"name", s.Key()}, {"flag", flag}, {"label", s.Label}, {"hint", about}, {"kind", s.fieldKind()}}
	if s.fieldKind() == "choice" {
		choices := s.Among
		if s.Default == "" {
			choices = append([]string{""}, choices...)
		}
		all = append(all, pair{"choices", choices})
	}
	if s.Example != "" {
		all = append(all, pair{"example", s.Example})
	}
	if s.Least > 0 && s.Kind() == "integer" {
		all = append(all, pair{"least", s.Least})
	}
	if !s.First {
		all = append(all, pair{"more", true})
	}
	return all
}

// fieldKind is how a form asks for a value.
func (s *Setting) fieldKind() string {
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

// Keywords is the Python module hightide/_settings.py: for each use case its keywords with their flags, and of those
// that are given as one mapping the type of that.
func Keywords(by string, uses ...Use) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, `"""The settings of the commands that this package passes on.

Written by %s from the lists in Go: change those.
"""

from __future__ import annotations

from typing import Dict, List, TypedDict
`, by)
	for _, use := range uses {
		settings := use.Of(Python)
		slices.SortFunc(settings, func(a, b Setting) int { return strings.Compare(a.keyword(), b.keyword()) })
		fmt.Fprintf(&text, "\n\nclass %sSettings(TypedDict, total=False):\n    \"\"\"What `hightide %s` can be told.\"\"\"\n\n",
			strings.ToUpper(use.Name[:1])+use.Name[1:], use.Name)
		for _, s := range settings {
			for _, line := range wrapped(s.About(), 110) {
				fmt.Fprintf(&text, "    # %s\n", line)
			}
			fmt.Fprintf(&text, "    %s: %s\n", s.keyword(), pythonTypes[s.Kind()])
		}
		fmt.Fprintf(&text, "\n\n%s: Dict[str, str] = {\n", strings.ToUpper(use.Name))
		for _, s := range settings {
			fmt.Fprintf(&text, "    %q: \"--%s\",\n", s.keyword(), s.Name)
		}
		text.WriteString("}\n")
	}
	return text.Bytes()
}

var pythonTypes = map[string]string{"string": "str", "boolean": "bool", "integer": "int", "number": "float",
	"array": "List[str]", "object": "Dict[str, str]"}

// keyword is what the Python package calls the setting.
func (s *Setting) keyword() string {
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
