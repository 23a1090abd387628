package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"

	"go.yaml.in/yaml/v3"
)

// budgets are a budget's file.
type budgets struct {
	limits   []limit
	baseline string // file or run that relative limits add to
}

// limit is of bytes, or of so many more than the baseline has.
type limit struct {
	name     string
	bytes    mem.Bytes
	percent  float64
	relative bool
	line     int
}

var (
	budgetKeys   = []string{"peak", "reserved", "requested", "growth", "host", "categories", "baseline"}
	baselineKeys = []string{"file", "peak", "reserved", "requested", "growth", "host", "categories"}
	categoryKeys = []string{"parameters", "gradients", "optimizer state", "buffers", "activations", "temporaries", "workspaces", "collectives", "unknown"}
)

// readBudgets reads the file; errors begin with line:column.
func readBudgets(text []byte) (*budgets, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("1:1: there is no budget")
	}
	b := &budgets{}
	return b, b.read(root.Content[0], "", budgetKeys, false)
}

// relative says whether any limit needs a baseline.
func (b *budgets) relative() bool {
	return slices.ContainsFunc(b.limits, func(l limit) bool { return l.relative })
}

// baselineBeside is the baseline's file, which a relative name has beside the budgets; or a run.
func (b *budgets) baselineBeside(file string) string {
	if path := filepath.Join(filepath.Dir(file), b.baseline); !filepath.IsAbs(b.baseline) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return b.baseline
}

func (b *budgets) read(node *yaml.Node, prefix string, keys []string, relative bool) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%d:%d: there must be budgets, one \"name: bytes\" a line", node.Line, node.Column)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !slices.Contains(keys, key.Value) {
			return fmt.Errorf("%d:%d: there is no budget %q; did you mean %q?", key.Line, key.Column, key.Value, words.Nearest(key.Value, keys))
		}
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("%d:%d: %s is there twice, first in line %d", key.Line, key.Column, key.Value, line)
		}
		seen[key.Value] = key.Line
		var err error
		switch {
		case prefix == "" && key.Value == "categories":
			err = b.read(value, "category ", categoryKeys, relative)
		case prefix == "" && key.Value == "baseline":
			err = b.read(value, "", baselineKeys, true)
		case prefix == "" && key.Value == "file":
			b.baseline = value.Value
		default:
			err = b.limit(key, value, prefix+key.Value, relative)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *budgets) limit(key, value *yaml.Node, name string, relative bool) error {
	l := limit{name: name, line: key.Line, relative: relative}
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
		return fmt.Errorf("%d:%d: %s must be a size such as %s, not %q", value.Line, value.Column, key.Value, such, value.Value)
	}
	b.limits = append(b.limits, l)
	return nil
}
