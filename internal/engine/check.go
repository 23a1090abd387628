package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/budget"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// fewestSteps is how many a trace must have more of for its growth to be known.
const fewestSteps = 3

// Check holds the peak of a file or run, on each device by itself, against the budgets of a YAML file. baseline, where not empty, stands
// for the one that the file names. A wrong key or value is an input error that names its position and the nearest valid key. So is a budget
// for something of which the file or run says nothing.
func (e *Engine) Check(ctx context.Context, file, ref, baseline string) ([]report.Checked, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail.Unread("name a YAML file of budgets; hightide check --help shows one", err)
	}
	budgets, err := budget.Read(text)
	if err != nil {
		return nil, fail.Input("hightide check --help shows such a file", "%s:%w", file, err)
	}
	found, err := e.measured(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := amounts{}
	if baseline != "" && !budgets.Relative() {
		return nil, fail.Usage("put limits under baseline into it, as peak: 5%; hightide check --help shows such a file", "%s has no budget relative to a baseline, so %s would be compared with nothing", file, baseline)
	}
	if budgets.Relative() {
		if baseline == "" && budgets.Baseline == "" {
			return nil, fail.Input("file: main.pickle under baseline, or --baseline main.pickle", "%s: the baseline names no file", file)
		}
		if baseline == "" {
			baseline = baselineOf(budgets.Baseline, file)
		}
		if before, err = e.measured(ctx, baseline); err != nil {
			return nil, err
		}
	}
	var checked []report.Checked
	for _, l := range budgets.Limits {
		n, ok := found[l.Name]
		was, had := before[l.Name]
		switch {
		case !ok:
			return nil, unknown(file, l, ref)
		case l.Relative && !had:
			return nil, unknown(file, l, baseline)
		}
		c := report.Checked{Name: l.Name, Limit: l.Allows(was.bytes), Found: n.bytes, Open: n.open, Of: n.of, Line: l.Line}
		if l.Relative {
			c.Baseline = mem.Some(int64(was.bytes))
		}
		c.Over = c.Found > c.Limit
		if n.open > 0 && !c.Over && n.bytes+n.open > c.Limit || l.Relative && was.open > 0 {
			return nil, notTold(file, l, ref, max(n.open, was.open))
		}
		if n.unknown > 0 && !c.Over && n.unknown > c.Limit {
			return nil, fail.Input("rules of your own tell it (hightide explain --rules), as does what the agent writes of a run; or set a budget for \"unknown\"",
				"%s:%d: %s does not tell %s from memory of no known category: together they may be %v", file, l.Line, ref, strings.TrimPrefix(l.Name, "category "), n.unknown)
		}
		checked = append(checked, c)
	}
	return checked, nil
}

// unknown says what it takes to know of a budget's subject.
func unknown(file string, l budget.Limit, ref string) error {
	hint := "name a snapshot, or a run that recorded one"
	switch l.Name {
	case "growth":
		hint = "growth takes a trace, or a run, of several steps"
	case "host":
		hint = "a run has the host's memory, a snapshot has not"
	}
	return fail.Input(hint, "%s:%d: %s says nothing about %s", file, l.Line, ref, l.Name)
}

// notTold says that memory from before a trace may or may not count.
func notTold(file string, l budget.Limit, ref string, open mem.Bytes) error {
	return fail.Input("record from the program's beginning, or set a budget for \"before the trace\"",
		"%s:%d: %s does not tell %s from the %v that were there before the trace", file, l.Line, ref, strings.TrimPrefix(l.Name, "category "), open)
}

// amount is what was found of something, on which device of which file: "" where there is no other.
type amount struct {
	bytes mem.Bytes
	open  mem.Bytes // from before the trace, which may belong to it too
	// unknown is what it may be with all that is of no known category, at most on any device; 0: that does not count.
	unknown mem.Bytes
	of      string
}

// amounts are what can be held against budgets, by name; what is not known is not there. Of several devices it is the most that any
// one of them has.
type amounts map[string]amount

func (a amounts) add(name string, n mem.Optional, of string) {
	if value, ok := n.Get(); ok {
		a.most(name, amount{bytes: mem.Bytes(value), of: of})
	}
}

func (a amounts) most(name string, n amount) {
	was, had := a[name]
	unknown := max(was.unknown, n.unknown)
	if had && n.bytes+n.open <= was.bytes+was.open {
		n = was
	}
	n.unknown = unknown
	a[name] = n
}

// lasting are the categories that memory from before a trace may belong to.
var lasting = []string{"parameters", "gradients", "optimizer state"}

// measured is what a file or run holds.
func (e *Engine) measured(ctx context.Context, ref string) (amounts, error) {
	from, err := e.source(ctx, ref)
	if err != nil {
		return nil, err
	}
	all, err := from.snapshots()
	if err != nil {
		return nil, err
	}
	found := amounts{}
	for _, s := range all {
		devices := devicesOf(s.AllocatorSnapshot)
		for _, device := range devices {
			of := ""
			if len(devices) > 1 {
				of = fmt.Sprintf("device %d", device)
			}
			if len(all) > 1 {
				of = strings.TrimPrefix(of+" of "+s.name, " of ")
			}
			if err := found.device(s.AllocatorSnapshot, device, ref, of); err != nil {
				return nil, err
			}
		}
	}
	if from.Recording == nil {
		return found, nil
	}
	headline := Analyze(from.Recording).Headline
	found.add("host", headline.Peak.HostRSS, "")
	if len(all) == 0 { // the headline's are sums over devices
		found.add("peak", headline.Peak.Allocated, "")
		found.add("reserved", headline.Peak.Reserved, "")
	}
	if _, ok := found["growth"]; !ok {
		found.add("growth", headline.Growth, "")
	}
	return found, nil
}

// devicesOf are the devices of a snapshot, without pinned memory of the host where there are others.
func devicesOf(s *mem.AllocatorSnapshot) []int {
	all := s.AllDevices()
	if real := slices.DeleteFunc(slices.Clone(all), func(device int) bool { return device < 0 }); len(real) > 0 {
		return real
	}
	return all
}

// device adds what one device of a snapshot holds.
func (a amounts) device(s *mem.AllocatorSnapshot, device int, ref, of string) error {
	x, err := analyze.ExplainDevice(s, device, ref, analyze.ExplainOptions{By: "category"})
	if err != nil {
		return err
	}
	a.add("peak", mem.Some(int64(x.Peak.Allocated)), of)
	a.add("requested", x.Highest.Requested, of)
	a.add("reserved", x.Highest.Reserved, of)
	held := map[string]int64{}
	for _, group := range x.Blame {
		held[group.Name] += int64(group.Bytes)
	}
	for _, name := range budget.Categories {
		n := amount{bytes: mem.Bytes(held[name]), of: of}
		if slices.Contains(lasting, name) {
			n.open = mem.Bytes(held[usage.BeforeTrace])
			n.unknown = n.bytes + n.open + mem.Bytes(held[usage.UnknownCategory])
		}
		a.most("category "+name, n)
	}
	if x.Steps != nil && len(x.Steps.Steps) > fewestSteps {
		var growth int64
		for _, g := range x.Growth {
			growth += int64(g.PerStep)
		}
		a.add("growth", mem.Some(growth), of)
	}
	return nil
}

// baselineOf is the baseline that a file of budgets names: a file, which a relative name has beside the budgets, or a run.
func baselineOf(named, file string) string {
	if path := filepath.Join(filepath.Dir(file), named); !filepath.IsAbs(named) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return named
}
