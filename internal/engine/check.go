package engine

import (
	"context"
	"os"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// ExitOverBudget is the exit code of check where a budget is passed.
const ExitOverBudget = 1

// fewestSteps is how many a trace must have more of for its growth to be known.
const fewestSteps = 3

// Check holds the peak of a file or run, on the device that holds most, against the budgets of a YAML
// file. baseline, where not empty, stands for the one that the file names. A wrong key or value is an
// input error that names its position and the nearest valid key; so is a budget for something of which
// the file or run says nothing.
func (e *Engine) Check(ctx context.Context, file, ref, baseline string) ([]report.Checked, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, InputError("name a YAML file of budgets", "%w", err)
	}
	all, err := readBudgets(text)
	if err != nil {
		return nil, InputError("hightide check --help shows such a file", "%s:%w", file, err)
	}
	found, err := e.measured(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := map[string]mem.Bytes{}
	if all.relative() {
		if baseline == "" && all.baseline == "" {
			return nil, InputError("file: main.pickle under baseline, or --baseline main.pickle", "%s: the baseline names no file", file)
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
		if !ok || l.relative && !had {
			which := ref
			if ok {
				which = baseline
			}
			return nil, InputError(missing(l.name), "%s:%d: %s says nothing of %s", file, l.line, which, l.name)
		}
		c := report.Checked{Name: l.name, Limit: l.bytes, Found: n, Line: l.line}
		if l.relative {
			c.Baseline = mem.Some(int64(was))
			c.Limit = was + l.bytes + mem.Bytes(l.percent/100*float64(was))
		}
		c.Over = c.Found > c.Limit
		checked = append(checked, c)
	}
	return checked, nil
}

// missing says what it takes to know of a budget's subject.
func missing(name string) string {
	switch name {
	case "growth":
		return "growth takes a trace, or a run, of several steps"
	case "host":
		return "a run has the host's memory, a snapshot has not"
	}
	return "name a snapshot, or a run that recorded one"
}

// measured is what can be held against budgets; what is not known is not there.
func (e *Engine) measured(ctx context.Context, ref string) (map[string]mem.Bytes, error) {
	all, run, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	found := map[string]mem.Bytes{}
	if run != nil {
		headline := Analyze(run).Headline
		for name, n := range map[string]mem.Optional{"host": headline.Peak.HostRSS, "peak": headline.Peak.Allocated,
			"reserved": headline.Peak.Reserved, "growth": headline.Growth} {
			if value, ok := n.Get(); ok {
				found[name] = mem.Bytes(value)
			}
		}
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
	for name, n := range map[string]mem.Optional{"requested": a.Highest.Requested, "reserved": a.Highest.Reserved} {
		if value, ok := n.Get(); ok {
			found[name] = mem.Bytes(value)
		}
	}
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
