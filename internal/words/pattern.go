package words

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Pattern is a regular expression for many texts of which few match. It is compiled at first need, as each
// start of the program would pay for those of formats that it never meets; and it is tried only on
// texts that hold one of the words without which it cannot match.
type Pattern struct {
	text  string
	once  sync.Once
	re    *regexp.Regexp
	needs []need // every match holds one of them; none: nothing is known
}

// need is a word without which an expression cannot match.
type need struct {
	word string
	fold bool // in letters of either case: then it is of small ASCII letters
}

// Lazy makes a pattern of a constant; its first use panics if that is no regular expression.
func Lazy(text string) *Pattern { return &Pattern{text: text} }

// Compile makes a pattern of a text that may be wrong.
func Compile(text string) (*Pattern, error) {
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, err
	}
	return Lazy(text), nil
}

// Regexp is the compiled expression.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() {
		p.re = regexp.MustCompile(p.text)
		if tree, err := syntax.Parse(p.text, syntax.Perl); err == nil {
			p.needs = needs(tree)
		}
	})
	return p.re
}

// MatchString says whether a text holds a match.
func (p *Pattern) MatchString(s string) bool {
	re := p.Regexp()
	return p.may(s) && re.MatchString(s)
}

// FindStringSubmatch is that of package regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	re := p.Regexp()
	if !p.may(s) {
		return nil
	}
	return re.FindStringSubmatch(s)
}

func (p *Pattern) may(s string) bool {
	return len(p.needs) == 0 || slices.ContainsFunc(p.needs, func(n need) bool {
		return strings.Contains(s, n.word) || n.fold && mayFold(s, n.word)
	})
}

// mayFold says whether s holds a small ASCII word in letters of either case. Beyond ASCII, where a letter may
// have a third form, it cannot tell and says yes.
func mayFold(s, word string) bool {
	first := word[0]
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
		if s[i]|0x20 == first|0x20 && len(s)-i >= len(word) && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// needs lists words of which every match of an expression holds at least one; none where it cannot tell.
func needs(re *syntax.Regexp) []need {
	switch re.Op {
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, utf8.RuneError) { // it stands for any invalid byte
			return nil
		}
		if re.Flags&syntax.FoldCase == 0 {
			return []need{{word: string(re.Rune)}}
		}
		if !slices.ContainsFunc(re.Rune, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return []need{{strings.ToLower(string(re.Rune)), true}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []need
		for _, sub := range re.Sub {
			some := needs(sub)
			if len(some) == 0 {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		var best []need // whose shortest word is longest
		for _, sub := range re.Sub {
			if some := needs(sub); shortest(some) > shortest(best) {
				best = some
			}
		}
		return best
	}
	return nil
}

func shortest(list []need) int {
	least := 0
	for i, n := range list {
		if i == 0 || len(n.word) < least {
			least = len(n.word)
		}
	}
	return least
}
