package analyze

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/mem"
)

//go:embed categories.rules
var builtinRules string

// unknownCategory is what no rule fits.
const unknownCategory = "unknown"

var traceCategories = []string{"parameters", "gradients", "optimizer state", "activations", "temporaries", "workspaces", "collectives", unknownCategory}

// CategoryRule says what memory is for.
type CategoryRule struct {
	Category string
	Life     string         // any, kept, start, short
	Frame    *regexp.Regexp // nil: every stack
}

// BuiltinRules are the rules of categories.rules.
func BuiltinRules() []CategoryRule {
	rules, err := ParseRules(builtinRules)
	if err != nil {
		panic("categories.rules: " + err.Error()) // embedded, and read by every test
	}
	return rules
}

// ParseRules reads rules as categories.rules has them. Errors name the line.
func ParseRules(text string) ([]CategoryRule, error) {
	var rules []CategoryRule
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rule, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(line string) (CategoryRule, error) {
	for _, name := range traceCategories {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		words := strings.Fields(rest)
		if len(words) < 2 || !slices.Contains([]string{"any", "kept", "start", "short"}, words[0]) {
			return CategoryRule{}, fmt.Errorf("after the category must come any, kept, start or short, then a pattern")
		}
		pattern := strings.TrimSpace(strings.TrimSpace(rest)[len(words[0]):])
		if pattern == "-" {
			return CategoryRule{name, words[0], nil}, nil
		}
		frame, err := regexp.Compile(pattern)
		if err != nil {
			return CategoryRule{}, err
		}
		return CategoryRule{name, words[0], frame}, nil
	}
	return CategoryRule{}, fmt.Errorf("%q begins with none of the categories %s", line, strings.Join(traceCategories, ", "))
}

// sorter applies rules; each stack is looked at once.
type sorter struct {
	rules  []CategoryRule
	stacks *mem.StackTable
	hits   map[uint32]uint64 // stack → rules that it fits, as bits
	frames map[uint32]uint64 // location → likewise
}

func newSorter(stacks *mem.StackTable, extra []CategoryRule) *sorter {
	rules := append(slices.Clone(extra), BuiltinRules()...)
	return &sorter{rules[:min(len(rules), 64)], stacks, map[uint32]uint64{}, map[uint32]uint64{}}
}

// of is what a block is for: as the program said, else by the first rule that fits.
func (s *sorter) of(l *life, last int, next8 int32) string {
	if l.owner != 0 {
		return ownerCategories[l.owner]
	}
	return s.byRules(l, last, next8)
}

func (s *sorter) byRules(l *life, last int, next8 int32) string {
	hits := s.fits(l.stack)
	for i, rule := range s.rules {
		if hits&(1<<i) == 0 {
			continue
		}
		switch {
		case rule.Life == "any",
			rule.Life == "kept" && int(l.freed) > last,
			rule.Life == "start" && l.born < 0,
			rule.Life == "short" && l.born >= 0 && l.freed < next8:
			return rule.Category
		}
	}
	return unknownCategory
}

func (s *sorter) fits(stack uint32) uint64 {
	if hits, ok := s.hits[stack]; ok {
		return hits
	}
	var hits uint64
	for i, rule := range s.rules {
		if rule.Frame == nil {
			hits |= 1 << i
		}
	}
	for _, n := range s.stacks.Numbers(stack) {
		of, ok := s.frames[n]
		if !ok {
			l := s.stacks.Locations[n]
			name := l.File + ":" + l.Function
			for i, rule := range s.rules {
				if rule.Frame != nil && rule.Frame.MatchString(name) {
					of |= 1 << i
				}
			}
			s.frames[n] = of
		}
		hits |= of
	}
	s.hits[stack] = hits
	return hits
}
