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
// start of the program would pay for those of formats that it never meets. And it is tried only on
// texts that hold the words without which it cannot match.
type Pattern struct {
	text     string
	once     sync.Once
	branches []*branch
	whole    branch
}

// branch is an alternative of an expression, or all of it.
type branch struct {
	text  string
	tree  *syntax.Regexp // the same, where there is no text: writing it down takes longer than most searches
	needs [][]need       // every match holds one of each, in this order and none in another
	plain bool           // the other way round too: what holds the one word matches
	once  sync.Once
	re    *regexp.Regexp
}

// need is a word without which an expression cannot match.
type need struct {
	word string
	fold bool // in letters of either case: then it is of small ASCII letters
}

// Lazy makes a pattern of a constant; its first use panics if that is not a regular expression.
func Lazy(text string) *Pattern { return &Pattern{text: text, whole: branch{text: text}} }

// Compile makes a pattern of a text that may be wrong.
func Compile(text string) (*Pattern, error) {
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, err
	}
	return Lazy(text), nil
}

// Regexp is the compiled expression.
func (p *Pattern) Regexp() *regexp.Regexp { return p.whole.compiled() }

// MatchString says whether a text holds a match.
func (p *Pattern) MatchString(s string) bool {
	return slices.ContainsFunc(p.split(), func(b *branch) bool {
		return b.may(s) && (b.plain || b.compiled().MatchString(s))
	})
}

// FindStringSubmatch is that of package regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	if !slices.ContainsFunc(p.split(), func(b *branch) bool { return b.may(s) }) {
		return nil
	}
	return p.Regexp().FindStringSubmatch(s)
}

// split takes an expression apart: one of a single alternative finds where that may begin by its first letters,
// which one of several must try everywhere.
func (p *Pattern) split() []*branch {
	p.once.Do(func() {
		tree, err := syntax.Parse(p.text, syntax.Perl)
		if err != nil {
			panic(err)
		}
		alternatives := []*syntax.Regexp{tree}
		if tree.Op == syntax.OpAlternate {
			alternatives = tree.Sub
		}
		for _, re := range alternatives {
			b := &branch{tree: re, needs: needs(re)}
			b.plain = re.Op == syntax.OpLiteral && len(b.needs) == 1 && !b.needs[0][0].fold
			p.branches = append(p.branches, b)
		}
	})
	return p.branches
}

func (b *branch) compiled() *regexp.Regexp {
	b.once.Do(func() {
		if b.tree != nil {
			b.text, b.tree = b.tree.String(), nil
		}
		b.re = regexp.MustCompile(b.text)
	})
	return b.re
}

// may says whether a text holds what every match does.
func (b *branch) may(s string) bool {
	for _, any := range b.needs {
		first := -1 // where the earliest of them ends
		for _, n := range any {
			if end := n.in(s); end >= 0 && (first < 0 || end < first) {
				first = end
			}
		}
		if first < 0 {
			return false
		}
		s = s[first:]
	}
	return true
}

// in is where the word ends in a text at the earliest; -1: it is not there.
func (n need) in(s string) int {
	if n.fold {
		return foldIn(s, n.word)
	}
	if at := strings.Index(s, n.word); at >= 0 {
		return at + len(n.word)
	}
	return -1
}

// foldIn is where a small ASCII word, in letters of either case, ends in s; -1: it is not there. Beyond ASCII, where
// a letter may have a third form, it cannot tell and says where that begins.
func foldIn(s, word string) int {
	first := word[0]
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return i
		}
		if s[i]|0x20 == first|0x20 && len(s)-i >= len(word) && strings.EqualFold(s[i:i+len(word)], word) {
			return i + len(word)
		}
	}
	return -1
}

// needs lists, in order, words of which every match of an expression holds one of each.
func needs(re *syntax.Regexp) [][]need {
	switch re.Op {
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, utf8.RuneError) { // it stands for any invalid byte
			return nil
		}
		if re.Flags&syntax.FoldCase == 0 {
			return [][]need{{{word: string(re.Rune)}}}
		}
		if !slices.ContainsFunc(re.Rune, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return [][]need{{{strings.ToLower(string(re.Rune)), true}}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpConcat:
		var all [][]need
		for _, sub := range re.Sub {
			all = append(all, needs(sub)...)
		}
		return all
	case syntax.OpAlternate:
		var any []need
		for _, sub := range re.Sub {
			one := slices.MaxFunc(append(needs(sub), nil), func(p, q []need) int { return shortest(p) - shortest(q) })
			if len(one) == 0 {
				return nil
			}
			any = append(any, one...)
		}
		return [][]need{any}
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
