package engine

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/mem"

	"go.yaml.in/yaml/v3"
)

// ExitOverBudget is the exit code of check where a budget is passed.
const ExitOverBudget = 1

// Checked is one budget and what was found.
type Checked struct {
	Name  string    `json:"name"` // "peak", "category activations", …
	Limit mem.Bytes `json:"limit_bytes"`
	Found mem.Bytes `json:"found_bytes"`
	Over  bool      `json:"over"`
	Line  int       `json:"line"` // of the budget's file
}

// budget is a limit as the file has it.
type budget struct {
	name  string
	limit mem.Bytes
	line  int
}

var budgetKeys = []string{"peak", "reserved", "requested", "categories"}
var categoryKeys = []string{"parameters", "gradients", "optimizer state", "buffers", "activations", "temporaries", "workspaces", "collectives", "unknown"}

// Check holds the peak of a file or run, on the device that holds most, against the budgets of a YAML
// file. A wrong key or value is an input error that names its position and the nearest valid key.
func (e *Engine) Check(budgets, ref string, stdin io.Reader) ([]Checked, error) {
	text, err := os.ReadFile(budgets)
	if err != nil {
		return nil, InputError("name a YAML file of budgets", "%w", err)
	}
	limits, err := readBudgets(text)
	if err != nil {
		return nil, InputError("hightide check --help shows such a file", "%s:%w", budgets, err)
	}
	s, device, err := e.fullest(ref, stdin)
	if err != nil {
		return nil, err
	}
	a, err := analyze.ExplainDevice(s, device, ref, analyze.ExplainOptions{By: "category"})
	if err != nil {
		return nil, err
	}
	found := map[string]mem.Bytes{"peak": a.Peak.Allocated, "reserved": a.Highest.Reserved, "requested": a.Highest.Requested}
	for _, group := range a.Blame {
		found["category "+group.Name] += group.Bytes
	}
	var checked []Checked
	for _, l := range limits {
		n := found[l.name]
		checked = append(checked, Checked{l.name, l.limit, n, n > l.limit, l.line})
	}
	return checked, nil
}

// CheckJSON is what check --json prints (docs/formats/json.md).
func CheckJSON(checked []Checked) ([]byte, error) {
	over := slices.ContainsFunc(checked, func(c Checked) bool { return c.Over })
	text, err := json.Marshal(struct {
		Version int       `json:"version"`
		OK      bool      `json:"ok"`
		Budgets []Checked `json:"budgets"`
	}{analyze.ReportVersion, !over, append([]Checked{}, checked...)})
	if err != nil {
		return nil, fmt.Errorf("write result as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// readBudgets reads the file; errors begin with line:column.
func readBudgets(text []byte) ([]budget, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("1:1: there is no budget")
	}
	return budgetsOf(root.Content[0], "", budgetKeys)
}

func budgetsOf(node *yaml.Node, prefix string, keys []string) ([]budget, error) {
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%d:%d: there must be budgets, one \"name: bytes\" a line", node.Line, node.Column)
	}
	var all []budget
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !slices.Contains(keys, key.Value) {
			return nil, fmt.Errorf("%d:%d: there is no budget %q; did you mean %q?", key.Line, key.Column, key.Value, nearest(key.Value, keys))
		}
		if prefix == "" && key.Value == "categories" {
			inner, err := budgetsOf(value, "category ", categoryKeys)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		limit, err := readSize(value.Value)
		if err != nil || value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%d:%d: %s must be a size such as 24GiB, not %q", value.Line, value.Column, key.Value, value.Value)
		}
		all = append(all, budget{prefix + key.Value, limit, key.Line})
	}
	return all, nil
}

// nearest is the key with the smallest distance of edits.
func nearest(word string, keys []string) string {
	return slices.MinFunc(keys, func(a, b string) int { return edits(word, a) - edits(word, b) })
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// readSize reads "24GiB", "512 MiB" or bytes.
func readSize(text string) (mem.Bytes, error) {
	number, unit := strings.TrimSpace(text), mem.Bytes(1)
	for _, u := range []struct {
		name string
		size mem.Bytes
	}{{"KiB", mem.KiB}, {"MiB", mem.MiB}, {"GiB", mem.GiB}, {"TiB", mem.TiB}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f >= 0) || f*float64(unit) > 1<<60 {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return mem.Bytes(f * float64(unit)), nil
}

// JUnit writes the result as a test suite.
func JUnit(w io.Writer, ref string, checked []Checked) error {
	type failure struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "hightide check", Tests: len(checked)}
	for _, c := range checked {
		one := testcase{Name: c.Name, Class: ref}
		if c.Over {
			suite.Failures++
			one.Failure = &failure{c.Sentence()}
		}
		suite.Cases = append(suite.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", " ")
	return encoder.Encode(suite)
}

// Sentence says how a budget was kept.
func (c Checked) Sentence() string {
	if c.Over {
		return fmt.Sprintf("%s is %v, %v over its budget of %v", c.Name, c.Found, c.Found-c.Limit, c.Limit)
	}
	return fmt.Sprintf("%s is %v of %v", c.Name, c.Found, c.Limit)
}
