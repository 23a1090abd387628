package matrix

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a part of a YAML file with the document that it belongs to. A nil node is one that is not there.
type node struct {
	*yaml.Node
	root *node
}

// entry of a mapping.
type entry struct{ key, value *node }

// reader gathers what is wrong with a file, in the order of the file.
type reader struct {
	file     string
	problems []problem
}

type problem struct {
	line, column int
	text         string
}

const mostProblems = 10

func (r *reader) fail(n *node, format string, args ...any) {
	r.at(n.Line, n.Column, format, args...)
}

func (r *reader) at(line, column int, format string, args ...any) {
	p := problem{line, column, fmt.Sprintf(format, args...)}
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// unknown says that a word is none of those known, and which was meant.
func (r *reader) unknown(n *node, what, word string, known []string) {
	said := near(word, known)
	if said == "" {
		said = "; known: " + strings.Join(known, ", ")
	}
	r.fail(n, "unknown %s %q%s", what, word, said)
}

func (r *reader) error() error {
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.column - b.column
	})
	var lines []string
	for i, p := range r.problems {
		if i == mostProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(r.problems)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", r.file, p.line, p.column, p.text))
	}
	return errors.New(strings.Join(lines, "\n"))
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line \d+: )?`)

// document is the file's one mapping; nil where it is not YAML.
func (r *reader) document(text []byte) *node {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&document); err != nil {
		r.syntax(text, err)
		return nil
	}
	if decoder.Decode(&second) == nil {
		r.at(max(second.Line, 1), max(second.Column, 1), "a second document; a matrix is one")
		return nil
	}
	if len(document.Content) == 0 {
		r.at(1, 1, "the file is empty")
		return nil
	}
	root := &node{Node: document.Content[0]}
	root.root = root
	return root.resolved()
}

// syntax places an error of the parser.
func (r *reader) syntax(text []byte, err error) {
	if len(strings.TrimSpace(string(text))) == 0 || err.Error() == "EOF" {
		r.at(1, 1, "the file is empty")
		return
	}
	line, column := YAMLFaultAt(string(text))
	r.at(line, column, "no YAML: %s", YAMLFault(err))
}

// YAMLFault is what the parser says of a text that is not YAML, without the place, which is wrong in cases.
func YAMLFault(err error) string {
	return yamlLine.ReplaceAllString(strings.SplitN(err.Error(), "\n", 2)[0], "")
}

// YAMLFaultAt is where a text stops to be YAML: behind the longest part of it from the beginning that is. The
// parser's own errors tell no column, and of some the line before, of others none.
func YAMLFaultAt(text string) (line, column int) {
	const most = 64 << 10 // of a larger text the beginning alone: each try reads all of it
	lines := strings.SplitAfter(text[:min(len(text), most)], "\n")
	good := len(lines) - 1
	for ; good > 0 && !parses(strings.Join(lines[:good], "")); good-- {
	}
	before, at := strings.Join(lines[:good], ""), strings.TrimRight(lines[good], "\r\n")
	end := len(at)
	for ; end > 0 && !parses(before+at[:end]); end-- {
	}
	return good + 1, len([]rune(at[:end])) + 1
}

func parses(text string) bool {
	var n yaml.Node
	return yaml.Unmarshal([]byte(text), &n) == nil
}

// resolved is what an alias stands for, at the alias's place.
func (n *node) resolved() *node {
	for range 8 {
		if n.Kind != yaml.AliasNode {
			return n
		}
		target := *n.Alias
		target.Line, target.Column = n.Line, n.Column
		n = &node{&target, n.root}
	}
	return n
}

func (n *node) child(i int) *node { return (&node{n.Content[i], n.root}).resolved() }

func (n *node) isScalar() bool { return n.Kind == yaml.ScalarNode }

// findKey is the value of a key in a mapping; nil where it is not there.
func (n *node) findKey(key string) *node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.child(i + 1)
		}
	}
	return nil
}

// items are the parts of a list; of what is not a list, itself.
func (n *node) items() []*node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []*node{n}
	}
	var list []*node
	for i := range n.Content {
		list = append(list, n.child(i))
	}
	return list
}

// entries of a mapping; a key that is there twice is refused.
func (r *reader) entries(n *node, what string) []entry {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be \"key: value\" pairs", what)
		return nil
	}
	var list []entry
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.child(i)
		if !key.isScalar() {
			r.fail(key, "a key of %s must be a word", what)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.fail(key, "%s is there twice, first in line %d", key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		list = append(list, entry{key, n.child(i + 1)})
	}
	if len(list) == 0 && len(n.Content) == 0 {
		r.fail(n, "%s: nothing is in it", what)
	}
	return list
}

// mapping is a mapping of known keys.
func (r *reader) mapping(n *node, what string, known []string) map[string]*node {
	parts := map[string]*node{}
	for _, entry := range r.entries(n, what) {
		if !slices.Contains(known, entry.key.Value) {
			r.unknown(entry.key, "key", entry.key.Value, known)
			continue
		}
		parts[entry.key.Value] = entry.value
	}
	return parts
}

// list is a sequence; nil where there is none.
func (r *reader) list(n *node, what string) []*node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s must be a list, each line beginning with \"- \"", what)
		return nil
	}
	return n.items()
}

// scalars is a list of words; one word is a list, too.
func (r *reader) scalars(n *node, what string) []*node {
	list := n.items()
	if len(list) == 0 {
		r.fail(n, "%s: there are none", what)
	}
	return list
}

// scalar is a word that is not empty; "" after a complaint.
func (r *reader) scalar(n *node, what string) string {
	text := r.text(n, what)
	if text == "" && n.isScalar() && (n.Value == "" || n.Tag == "!!null") {
		r.fail(n, "%s is empty", what)
	}
	return text
}

// text is a word, which may be empty.
func (r *reader) text(n *node, what string) string {
	switch {
	case !n.isScalar():
		r.fail(n, "%s must be one word or number", what)
		return ""
	case n.Tag == "!!null":
		return ""
	case strings.ContainsFunc(n.Value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		r.fail(n, "%s has a line break or another control character in it", what)
		return ""
	}
	return n.Value
}

func (r *reader) oneOf(n *node, what, word string, known []string) string {
	if word == "" {
		return ""
	}
	if !slices.Contains(known, word) {
		r.unknown(n, what, word, known)
		return ""
	}
	return word
}

// whole is a whole number within bounds; otherwise where there is none.
func (r *reader) whole(n *node, what string, least, most, otherwise int) int {
	if n == nil {
		return otherwise
	}
	text := r.scalar(n, what)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < least || number > most {
		r.fail(n, "%s %s is not a whole number from %d to %d", what, text, least, most)
		return otherwise
	}
	return number
}
