package imagine

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/analyze/imagined"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// asked is what the program shall read where a kernel would have written, as the agent takes it
// (docs/formats/imagined.md).
type asked struct {
	All   *float64    `json:"all,omitempty"`
	Lines []askedLine `json:"lines,omitempty"`
	Other bool        `json:"other,omitempty"` // the other end of what can be
	Flip  bool        `json:"flip,omitempty"`  // of a mask and its opposite, who is asked first gets nothing
	Ones  bool        `json:"ones,omitempty"`  // floating-point numbers are ones in place of zeros
}

// askedLine is the answer at one line; File "" is any file.
type askedLine struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Value any    `json:"value"`
}

func (a *asked) text() string {
	text, err := json.Marshal(a)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return string(text)
}

const readValueHint = "as in --read-value 1, --read-value 31=4096, --read-value train.py:31=[3,5], --read-value 12=true"

// readValues reads what --read-value says: a number for every read, or LINE=VALUE, FILE:LINE=VALUE. The value is a
// number, true, false or a list of these.
func readValues(texts []string) (asked, error) {
	var all asked
	for _, text := range texts {
		at, value, lined := strings.Cut(text, "=")
		if !lined {
			number, err := strconv.ParseFloat(text, 64)
			// The libraries that compute on the host fault on what is not finite.
			if err != nil || !(math.Abs(number) <= math.MaxFloat32) {
				return all, fail.Usage(readValueHint, "--read-value %s is not a finite number", text)
			}
			all.All = &number
			continue
		}
		line := askedLine{}
		file, number, named := cutLast(at, ":")
		if !named {
			file, number = "", at
		}
		var err error
		if line.Line, err = strconv.Atoi(number); err != nil || line.Line < 1 {
			return all, fail.Usage(readValueHint, "--read-value %s names no line", text)
		}
		line.File = file
		if err := json.Unmarshal([]byte(strings.ToLower(value)), &line.Value); err != nil || !isNumber(line.Value, true) {
			return all, fail.Usage(readValueHint, "--read-value %s: %s is not a number, true, false or list of these", text,
				value)
		}
		all.Lines = append(all.Lines, line)
	}
	return all, nil
}

func cutLast(text, mark string) (before, after string, found bool) {
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(mark):], true
}

func isNumber(value any, lists bool) bool {
	switch value := value.(type) {
	case float64, bool:
		return true
	case []any:
		return !slices.ContainsFunc(value, func(each any) bool { return !isNumber(each, true) }) && lists
	}
	return false
}

// rests says whether the verdict is another one perhaps where numbers are others that nobody computed.
func (s *Session) rests(main *Result) bool {
	switch {
	case main.Verdict == mem.VerdictFailed:
		return len(s.ReadValues) == 0 && len(main.ReadBacks) > 0 && imagined.RefusedNumber(main.run)
	case main.Verdict == mem.VerdictOOM:
		return len(main.Undecided) > 0 || slices.ContainsFunc(main.Policies, func(p report.Policy) bool { return p.OfData() })
	case main.Fits():
		return len(main.Undecided) > 0
	}
	return false
}

// otherValues runs the program with the other end of what numbers can be that nobody computed and that decide
// something. Where only sizes that depend on data were too large, they are zero.
func (s *Session) otherValues(ctx context.Context, t trial, main *Result) []mem.Try {
	if len(main.Undecided) == 0 && s.Sizes == "upper" {
		t.sizes = "zero"
	}
	kind := "values"
	if main.Verdict == mem.VerdictFailed {
		t.ones, kind = true, mem.TryOnes
	}
	t.flip = slices.ContainsFunc(main.Undecided, func(u report.Undecided) bool { return u.Number == report.NumberShare })
	// A number may be what a loop waits for.
	t.other, t.atMost = !t.ones, max(time.Minute, 4*time.Since(s.began))
	// Where the first run compiled, this one must too: what the compiler does on the way takes memory of its own.
	if main.Conditions["compile cache"] == "cold" {
		if cold, drop, err := t.withEmptyCaches(); err == nil {
			defer drop()
			t = cold
		}
	}
	return s.tryAll(ctx, []attempt{{kind, "other numbers where no kernel computed them", t}})
}
