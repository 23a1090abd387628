package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/words"

	"go.yaml.in/yaml/v3"
)

// fewestSteps is how many a trace must have more of for its growth to be known.
const fewestSteps = 3

// Check holds the peak of a file or run, on the device that holds most, against the budgets of a YAML
// file. baseline, where not empty, stands for the one that the file names. A wrong key or value is an
// input error that names its position and the nearest valid key; so is a budget for something of which
// the file or run says nothing.
func (e *Engine) Check(ctx context.Context, file, ref, baseline string) ([]report.Checked, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail.Input("name a YAML file of budgets", "%w", err)
	}
	all, err := readBudgets(text)
	if err != nil {
		return nil, fail.Input("hightide check --help shows such a file", "%s:%w", file, err)
	}
	found, err := e.measured(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := map[string]mem.Bytes{}
	if all.relative() {
		if baseline == "" && all.baseline == "" {
			return nil, fail.Input("file: main.pickle under baseline, or --baseline main.pickle", "%s: the baseline names no file", file)
		}
		if baseline == "" {
			baseline = all.baselineBeside(file)
		}
		if before, err = e.measured(ctx, baseline); err != nil {
			return nil, err
		}
	}
	var checked []report.Checked
	for _, l := range all.limits {
		n, ok := found[l.name]
		was, had := before[l.name]
		switch {
		case !ok:
			return nil, unknown(file, l, ref)
		case l.relative && !had:
			return nil, unknown(file, l, baseline)
		}
		checked = append(checked, l.check(n, was))
	}
	return checked, nil
}

// unknown says what it takes to know of a budget's subject.
func unknown(file string, l limit, ref string) error {
	hint := "name a snapshot, or a run that recorded one"
	switch l.name {
	case "growth":
		hint = "growth takes a trace, or a run, of several steps"
	case "host":
		hint = "a run has the host's memory, a snapshot has not"
	}
	return fail.Input(hint, "%s:%d: %s says nothing of %s", file, l.line, ref, l.name)
}

// measured is what can be held against budgets; what is not known is not there.
func (e *Engine) measured(ctx context.Context, ref string) (map[string]mem.Bytes, error) {
	from, err := e.source(ctx, ref)
	if err != nil {
		return nil, err
	}
	all, err := from.snapshots()
	if err != nil {
		return nil, err
	}
	found := map[string]mem.Bytes{}
	add := func(name string, n mem.Optional) {
		if value, ok := n.Get(); ok {
			found[name] = mem.Bytes(value)
		}
	}
	if from.Recording != nil {
		headline := Analyze(from.Recording).Headline
		add("host", headline.Peak.HostRSS)
		add("peak", headline.Peak.Allocated)
		add("reserved", headline.Peak.Reserved)
		add("growth", headline.Growth)
	}
	s, device := fullestOf(all)
	if s == nil {
		return found, nil
	}
	a, err := analyze.ExplainDevice(s, device, ref, analyze.ExplainOptions{By: "category"})
	if err != nil {
		return nil, err
	}
	found["peak"] = a.Peak.Allocated
	add("requested", a.Highest.Requested)
	add("reserved", a.Highest.Reserved)
	for _, name := range categoryKeys {
		found["category "+name] = 0
	}
	for _, group := range a.Blame {
		found["category "+group.Name] += group.Bytes
	}
	if a.Steps != nil && len(a.Steps.Steps) > fewestSteps {
		found["growth"] = 0
		for _, g := range a.Growth {
			found["growth"] += g.PerStep
		}
	}
	return found, nil
}

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

// check holds what was found against the limit.
func (l *limit) check(found, baseline mem.Bytes) report.Checked {
	c := report.Checked{Name: l.name, Limit: l.bytes, Found: found, Line: l.line}
	if l.relative {
		c.Baseline = mem.Some(int64(baseline))
		c.Limit = baseline + l.bytes + mem.Bytes(l.percent/100*float64(baseline))
	}
	c.Over = c.Found > c.Limit
	return c
}

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
