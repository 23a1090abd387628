package budget

import (
	"slices"
	"strings"

	"hightide/internal/analyze/trace"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// fewestSteps is how many a trace must have more of for its growth to be known.
const fewestSteps = 3

// Check holds what was found of a file or run against the budgets of a file, and what of its baseline where they are
// relative. A budget for something of which nothing is known is an input error, of which the first is given; the
// others are held all the same.
func (f *File) Check(file string, found, before Found, ref, baseline string) (checked []report.Checked, err error) {
	for _, l := range f.Limits {
		c, fault := l.check(file, found, before, ref, baseline)
		if fault == nil {
			checked = append(checked, c)
		} else if err == nil {
			err = fault
		}
	}
	return checked, err
}

func (l *Limit) check(file string, found, before Found, ref, baseline string) (c report.Checked, err error) {
	n, ok := found[l.Name]
	was, had := before[l.Name]
	switch {
	case !ok:
		return c, unknown(file, l, ref)
	case l.Relative && !had:
		return c, unknown(file, l, baseline)
	}
	c = report.Checked{Name: l.Name, Limit: l.allows(was.bytes), Found: n.bytes, Label: n.label, Open: n.open, Of: n.of,
		Line: l.Line}
	if l.Relative {
		c.Baseline = mem.Some(int64(was.bytes))
	}
	c.Over = c.Found > c.Limit
	if n.open > 0 && !c.Over && n.bytes+n.open > c.Limit || l.Relative && was.open > 0 {
		return c, notTold(file, l, ref, max(n.open, was.open))
	}
	if n.unknown > 0 && !c.Over && n.unknown > c.Limit {
		return c, fail.Input("rules of your own tell it (hightide explain --rules), as does what the agent writes of a "+
			"run; or set a budget for \"unknown\"",
			"%s:%d: %s does not tell %s from memory of no known category: together they may be %v", file, l.Line, ref,
			strings.TrimPrefix(l.Name, "category "), n.unknown)
	}
	return c, nil
}

// unknown says what it takes to know of a budget's subject.
func unknown(file string, l *Limit, ref string) error {
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
func notTold(file string, l *Limit, ref string, open mem.Bytes) error {
	return fail.Input("record from the program's beginning, or set a budget for \"before the trace\"",
		"%s:%d: %s does not tell %s from the %v that were there before the trace", file, l.Line, ref,
		strings.TrimPrefix(l.Name, "category "), open)
}

// amount is what was found of something, on which device of which file: "" where there is no other.
type amount struct {
	bytes mem.Bytes
	label mem.Label
	open  mem.Bytes // from before the trace, which may belong to it too
	// unknown is what it may be with all that is of no known category, at most on any device; 0: that does not count.
	unknown mem.Bytes
	of      string
}

// Found is what can be held against budgets, by name; what is not known is not in it. Of several devices it is the
// most that any one of them has.
type Found map[string]amount

// Add adds an amount that is known, and how.
func (a Found) Add(name string, n mem.Optional, label mem.Label, of string) {
	if value, ok := n.Get(); ok {
		a.most(name, amount{bytes: mem.Bytes(value), label: label, of: of})
	}
}

// most keeps the larger of two.
func (a Found) most(name string, n amount) {
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

// Device adds what one device of a snapshot holds.
func (a Found) Device(s *mem.AllocatorSnapshot, device int, ref, of string) error {
	x, err := trace.OfDevice(s, device, ref, trace.Options{By: "category"})
	if err != nil {
		return err
	}
	a.Add("peak", mem.Some(int64(x.Peak.Allocated)), x.Label, of)
	a.Add("requested", x.Highest.Requested, x.Label, of)
	a.Add("reserved", x.Highest.Reserved, x.Label, of)
	held := map[string]int64{}
	for _, group := range x.Blame {
		held[group.Name] += int64(group.Bytes)
	}
	for _, name := range Categories {
		n := amount{bytes: mem.Bytes(held[name]), label: x.Label, of: of}
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
		a.Add("growth", mem.Some(growth), x.Label, of)
	}
	return nil
}
