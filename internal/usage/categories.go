package usage

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hightide/internal/words"
)

//go:embed categories.rules
var builtinRules string

// UnknownCategory is what no rule fits.
const UnknownCategory = "unknown"

// CategoryNames are what memory is for, as rules say it.
var CategoryNames = []string{"parameters", "gradients", "optimizer state", "activations", "KV cache", "temporaries",
	"workspaces", "collectives", BeforeTrace, UnknownCategory}

// CategoryRule says what memory is for.
type CategoryRule struct {
	Category string
	Life     string         // any, kept, start, short, outlasts, saved
	Frame    *words.Pattern // nil: every stack
	Bare     bool           // only stacks without frames
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
	for _, name := range CategoryNames {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		parts := strings.Fields(rest)
		if len(parts) < 2 {
			parts = []string{"", ""}
		}
		if _, ok := hintNames[parts[0]]; !ok {
			return CategoryRule{},
				fmt.Errorf("after the category must come any, kept, start, short, outlasts or saved, then a pattern")
		}
		rule := CategoryRule{Category: name, Life: parts[0]}
		pattern := strings.TrimSpace(strings.TrimSpace(rest)[len(parts[0]):])
		switch pattern {
		case "-":
		case "none":
			rule.Bare = true
		default:
			frame, err := words.Compile(pattern)
			if err != nil {
				return CategoryRule{}, err
			}
			rule.Frame = frame
		}
		return rule, nil
	}
	return CategoryRule{}, fmt.Errorf("%q begins with none of the categories %s", line, strings.Join(CategoryNames, ", "))
}

// Categories says what the blocks of a device are for; each stack is looked at once.
type Categories struct {
	d      *Device
	rules  []CategoryRule
	lives  []hints           // by rule: what it wants of a block's life
	hits   []uint64          // by stack: rules that it fits, as bits; noHits: not looked at yet
	frames map[uint32]uint64 // location → likewise

	bare   *bool             // see frameless
	before func() FromBefore // see Categories.FromBefore
}

const noHits = 1 << 63

// NewCategories goes by rules of the caller's, before the built-in ones.
func NewCategories(d *Device, extra []CategoryRule) *Categories {
	rules := append(slices.Clone(extra), BuiltinRules()...)
	s := &Categories{d: d, rules: rules[:min(len(rules), 63)], hits: make([]uint64, d.Snapshot.Stacks.Len()),
		frames: map[uint32]uint64{}}
	for _, rule := range s.rules {
		s.lives = append(s.lives, hintNames[rule.Life])
	}
	for i := range s.hits {
		s.hits[i] = noHits
	}
	s.before = sync.OnceValue(s.compareBefore)
	return s
}

// Of is what the block of a span is for: as the program said, else the profiler that made the file, else the first
// rule that fits.
func (s *Categories) Of(span int) string {
	if owner := s.d.Owner(span); owner != "" {
		return owner
	}
	if t, from := s.d.Trace, s.d.From[span]; t.Category != nil && from >= 0 {
		if said, ok := profilerCategories[s.d.Snapshot.Text(t.Category[from])]; ok {
			return said
		}
	}
	return s.ByRules(span)
}

// profilerCategories are those of the profiler, as hightide calls them. Unknown is none.
var profilerCategories = map[string]string{"parameter": "parameters", "gradient": "gradients",
	"optimizer_state": "optimizer state", "activation": "activations",
	"input": "inputs", "temporary": "temporaries", "autograd_detail": "temporaries"}

// ByRules is what the rules alone say. What was there before the trace, and of which no stack tells, is the
// parameters where the gradients of the trace have its very sizes.
func (s *Categories) ByRules(span int) string {
	category := s.byRules(span)
	switch {
	case category == BeforeTrace && s.d.Moments == 0: // there is no trace that it was before
		return UnknownCategory
	case category == BeforeTrace && s.before().Parameters():
		return "parameters"
	}
	return category
}

func (s *Categories) byRules(span int) string {
	hits, has := s.fits(s.d.Stack[span]), s.d.hintsOf(span)
	for i, want := range s.lives {
		if hits&(1<<i) != 0 && has&want == want {
			return s.rules[i].Category
		}
	}
	return UnknownCategory
}

// frameless says that stacks without frames tell nothing, as no stack has any.
func (s *Categories) frameless() bool {
	if s.bare == nil {
		none := s.d.Frameless()
		s.bare = &none
	}
	return *s.bare
}

func (s *Categories) fits(stack uint32) uint64 {
	if hits := s.hits[stack]; hits != noHits {
		return hits
	}
	numbers := s.d.Snapshot.Stacks.Numbers(stack)
	var hits uint64
	for i, rule := range s.rules {
		if rule.Frame == nil && (!rule.Bare || !s.frameless() && bareStack(&s.d.Snapshot.Stacks, stack)) {
			hits |= 1 << i
		}
	}
	for _, n := range numbers {
		hits |= s.frame(n)
	}
	s.hits[stack] = hits
	return hits
}

// frame is the rules that one location fits.
func (s *Categories) frame(n uint32) uint64 {
	if hits, ok := s.frames[n]; ok {
		return hits
	}
	var hits uint64
	l := s.d.Snapshot.Stacks.Locations[n]
	name := l.File + ":" + l.Function
	for i, rule := range s.rules {
		if rule.Frame != nil && rule.Frame.MatchString(name) {
			hits |= 1 << i
		}
	}
	s.frames[n] = hits
	return hits
}
