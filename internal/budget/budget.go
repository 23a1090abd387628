// Package budget reads files of memory budgets, in YAML: how much a peak, a category or the growth of a step may
// take, by itself or beside a baseline. It holds what was found against them (check.go).
package budget

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/usage"
	"hightide/internal/words"

	"go.yaml.in/yaml/v3"
)

// File is what a file of budgets says.
type File struct {
	Limits   []Limit
	Baseline string // file or run that relative limits add to; "": none is named
}

// Limit is of bytes, or of so many more than the baseline has.
type Limit struct {
	Name     string // a key of the file; of a category "category " and its name
	Line     int    // of the file
	Relative bool

	bytes   mem.Bytes
	percent float64
}

var (
	budgetKeys   = []string{"peak", "reserved", "requested", "growth", "host", "categories", "baseline"}
	baselineKeys = []string{"file", "peak", "reserved", "requested", "growth", "host", "categories"}

	// Categories are those that can have a budget of their own.
	Categories = []string{"parameters", "gradients", "optimizer state", "buffers", "activations", "KV cache",
		"temporaries", "workspaces", "collectives", usage.BeforeTrace, "unknown"}
)

// allows is how much the limit lets be, beside a baseline where it is relative.
func (l *Limit) allows(baseline mem.Bytes) mem.Bytes {
	if !l.Relative {
		return l.bytes
	}
	return baseline + l.bytes + mem.Bytes(l.percent/100*float64(baseline))
}

// Read reads a file of budgets; errors begin with line:column and name the nearest valid key.
func Read(text []byte) (*File, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		line, column := matrix.YAMLFaultAt(string(text))
		return nil, fmt.Errorf("%d:%d: %s", line, column, matrix.YAMLFault(err))
	}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("1:1: there is no budget")
	}
	f := &File{}
	return f, f.readNode(root.Content[0], "", budgetKeys, false)
}

// Relative says whether any limit needs a baseline.
func (f *File) Relative() bool {
	return slices.ContainsFunc(f.Limits, func(l Limit) bool { return l.Relative })
}

func (f *File) readNode(node *yaml.Node, prefix string, keys []string, relative bool) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%d:%d: there must be budgets, one \"name: bytes\" a line", node.Line, node.Column)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !slices.Contains(keys, key.Value) {
			return fmt.Errorf("%d:%d: there is no budget %q; %s", key.Line, key.Column, key.Value, meant(key.Value, keys))
		}
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("%d:%d: %s is there twice, first in line %d", key.Line, key.Column, key.Value, line)
		}
		seen[key.Value] = key.Line
		var err error
		switch {
		case prefix == "" && key.Value == "categories":
			err = f.readNode(value, "category ", Categories, relative)
		case prefix == "" && key.Value == "baseline":
			err = f.readNode(value, "", baselineKeys, true)
		case prefix == "" && key.Value == "file":
			f.Baseline = value.Value
		default:
			err = f.limit(key, value, prefix+key.Value, relative)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *File) limit(key, value *yaml.Node, name string, relative bool) error {
	l := Limit{Name: name, Line: key.Line, Relative: relative}
	var err error
	if percent, ok := strings.CutSuffix(value.Value, "%"); ok && relative {
		if l.percent, err = strconv.ParseFloat(strings.TrimSpace(percent), 64); err == nil && !(l.percent >= 0 && l.percent < 1e6) {
			err = strconv.ErrRange
		}
	} else {
		l.bytes, err = mem.ParseBytes(value.Value)
	}
	if err != nil || value.Kind != yaml.ScalarNode {
		such := "24GiB"
		if relative {
			such = "5% or 512MiB"
		}
		return fmt.Errorf("%d:%d: %s must be a size such as %s, not %q", value.Line, value.Column, key.Value, such,
			value.Value)
	}
	f.Limits = append(f.Limits, l)
	return nil
}

// meant is the budget that an unknown one may be, else which there are.
func meant(word string, keys []string) string {
	if near := words.Near(word, keys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(keys, ", ")
}
