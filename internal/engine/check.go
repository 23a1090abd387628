package engine

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// ExitOverBudget is the exit code of check where a budget is passed.
const ExitOverBudget = 1

// fewestSteps is how many a trace must have more of for its growth to be known.
const fewestSteps = 3

// Checked is one budget and what was found.
type Checked struct {
	Name  string    `json:"name"` // "peak", "category activations", …
	Limit mem.Bytes `json:"limit_bytes"`
	Found mem.Bytes `json:"found_bytes"`
	Over  bool      `json:"over"`
	Line  int       `json:"line"` // of the budget's file

	// Baseline is what Limit is relative to.
	Baseline mem.Optional `json:"baseline_bytes,omitzero"`
}

// Check holds the peak of a file or run, on the device that holds most, against the budgets of a YAML
// file. baseline, where not empty, stands for the one that the file names. A wrong key or value is an
// input error that names its position and the nearest valid key; so is a budget for something of which
// the file or run says nothing.
func (e *Engine) Check(ctx context.Context, file, ref, baseline string) ([]Checked, error) {
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
	var checked []Checked
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
		c := Checked{Name: l.name, Limit: l.bytes, Found: n, Line: l.line}
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

// CheckJSON is what check --json prints (docs/formats/json.md).
func CheckJSON(checked []Checked) ([]byte, error) {
	over := slices.ContainsFunc(checked, func(c Checked) bool { return c.Over })
	text, err := json.Marshal(struct {
		Version int       `json:"version"`
		OK      bool      `json:"ok"`
		Budgets []Checked `json:"budgets"`
	}{report.Version, !over, append([]Checked{}, checked...)})
	if err != nil {
		return nil, fmt.Errorf("write result as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// JUnit writes the result as a test suite.
func JUnit(w io.Writer, ref string, checked []Checked) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Time    int      `xml:"time,attr"` // seconds, which some readers demand
		Failure *failure `xml:"failure,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     int        `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "hightide check", Tests: len(checked)}
	for _, c := range checked {
		one := testcase{Name: c.Name, Class: ref}
		if c.Baseline.Known() { // there may be a budget of its own for the same
			one.Name += ", relative to the baseline"
		}
		if c.Over {
			suite.Failures++
			one.Failure = &failure{c.Sentence(), "over budget"}
		}
		suite.Cases = append(suite.Cases, one)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", " ")
	if err := encoder.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Annotation is the workflow command that has GitHub show a passed budget at its line.
func (c Checked) Annotation(budget string) string {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	return fmt.Sprintf("::error file=%s,line=%d,title=Memory over budget::%s", property.Replace(budget), c.Line, data.Replace(c.Sentence()))
}

// Sentence says how a budget was kept.
func (c Checked) Sentence() string {
	what, than := c.Name, ""
	if c.Name == "growth" {
		what = "growth per step"
	}
	if was, ok := c.Baseline.Get(); ok {
		than = fmt.Sprintf(" (the baseline has %v)", mem.Bytes(was))
	}
	if c.Over {
		return fmt.Sprintf("%s is %v, %v over its budget of %v%s", what, c.Found, c.Found-c.Limit, c.Limit, than)
	}
	return fmt.Sprintf("%s is %v of %v%s", what, c.Found, c.Limit, than)
}
