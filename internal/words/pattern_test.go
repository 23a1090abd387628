package words

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNeeds(t *testing.T) {
	// alternatives by space, words of one by semicolon, choices by comma; ! decides
	for text, want := range map[string]string{
		`abc`:                          "abc!",
		`torch/optim.*:`:               "torch/optim;:",
		`(optim|optimizers?)\.py:step`: "optim;.py:step",
		`a(bc|de)+x?$`:                 "a;bc,de",
		`Backward\d*::apply|Grad`:      "Backward;::apply Grad!",
		`(?i)Workspace`:                "workspace/i",
		`(?i)straße`:                   "",
		`a?b(?i:cd|x)`:                 "b;cd/i,x/i",
		`x*`:                           "",
		`abc|\d`:                       "abc! ",
		`(ab){2,}`:                     "ab",
		`(ab){0,2}`:                    "",
		`^(one|two)$`:                  "one,two",
		``:                             "",
	} {
		var got []string
		for _, b := range Lazy(text).split() {
			var all []string
			for _, any := range b.needs {
				var choices []string
				for _, n := range any {
					if n.fold {
						n.word += "/i"
					}
					choices = append(choices, n.word)
				}
				all = append(all, strings.Join(choices, ","))
			}
			words := strings.Join(all, ";")
			if b.plain {
				words += "!"
			}
			got = append(got, words)
		}
		if got := strings.Join(got, " "); got != want {
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
	f.Add(`ab.*ba|(?i)k.*(x|yk)`, "abaXyK\u212aba")
	f.Add(`(?m)^a$|b\b(?s:.)\Bc(?U:d+)`, "x\na\nb.c")
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
