package words

import (
	"regexp"
	"slices"
	"testing"
)

func TestNeeds(t *testing.T) {
	for text, want := range map[string][]string{
		`abc`:                          {"abc"},
		`torch/optim/.*:`:              {"torch/optim/"},
		`(optim|optimizers?)\.py:step`: {".py:step"},
		`a(bc|de)+x?$`:                 {"bc", "de"},
		`Backward\d*::apply|Grad`:      {"Backward", "Grad"},
		`(?i)Workspace`:                {"workspace/i"},
		`(?i)straße`:                   nil,
		`a?b(?i:cd|x)`:                 {"b"},
		`x*`:                           nil,
		`abc|\d`:                       nil,
		`(ab){2,}`:                     {"ab"},
		`(ab){0,2}`:                    nil,
		``:                             nil,
	} {
		p := Lazy(text)
		p.Regexp()
		var got []string
		for _, n := range p.needs {
			if n.fold {
				n.word += "/i"
			}
			got = append(got, n.word)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", text, got, want)
		}
	}
	if _, err := Compile(`a(`); err == nil {
		t.Error("no error")
	}
}

// FuzzPattern: a pattern matches what the expression itself does.
func FuzzPattern(f *testing.F) {
	f.Add(`a(bc|de)+x?$`, "abcde")
	f.Add(`(?i)Work|(é{2,3})k`, "ééWORK")
	f.Add(`(?i)kiss[0-9]`, "xKI\u017fS7")
	f.Add(`(?i)mask`, "MAS\u212a")
	f.Add(`\Aa|b\z|(?:c|)`, "xb")
	f.Add(`(?s).a|[\x{10000}-\x{10ffff}]`, "\U00010000")
	f.Add("\ufffd", "\xff")
	f.Fuzz(func(t *testing.T, text, in string) {
		re, err := regexp.Compile(text)
		if err != nil {
			return
		}
		p, err := Compile(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := p.MatchString(in); got != re.MatchString(in) {
			t.Errorf("%q in %q: %v", text, in, got)
		}
		if got := p.FindStringSubmatch(in); !slices.Equal(got, re.FindStringSubmatch(in)) {
			t.Errorf("%q in %q: %q", text, in, got)
		}
	})
}
