package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// TestCase is one of a suite as CI systems read it.
type TestCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    int      `xml:"time,attr"` // seconds, which some readers demand
	Failure *Outcome `xml:"failure,omitempty"`
	Skipped *Outcome `xml:"skipped,omitempty"`
}

// Outcome is why a test case failed, or says nothing.
type Outcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
}

// WriteJUnit writes test cases as JUnit XML.
func WriteJUnit(w io.Writer, name string, cases []TestCase) error {
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     int        `xml:"time,attr"`
		Cases    []TestCase `xml:"testcase"`
	}{Name: name, Tests: len(cases), Cases: cases}
	for _, c := range cases {
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
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

// Annotation is the workflow command that has GitHub show a text at a line of a file. Level is error, warning or
// notice; without a file it belongs to the whole change, a line of 0 is none.
func Annotation(level, file string, line int, title, text string) string {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	at := ""
	if file != "" {
		at = "file=" + property.Replace(file) + ","
	}
	if line > 0 {
		at += fmt.Sprintf("line=%d,", line)
	}
	return fmt.Sprintf("::%s %stitle=%s::%s", level, at, property.Replace(title), data.Replace(text))
}

// Checked is one budget and what was found.
type Checked struct {
	Name  string    `json:"name"` // "peak", "category activations", …
	Limit mem.Bytes `json:"limit_bytes"`
	Found mem.Bytes `json:"found_bytes"`
	Label mem.Label `json:"label"` // of what was found
	// the device of several that has most, and its file: "device 1 of rank0.pickle"
	Of string `json:"of,omitempty"`
	// from before the trace: of which no file tells whether it belongs to it too
	Open mem.Bytes `json:"open_bytes,omitempty"`
	Over bool      `json:"over"`
	Line int       `json:"line"` // of the budget's file

	// Baseline is what Limit is relative to.
	Baseline mem.Optional `json:"baseline_bytes,omitzero"`
}

// CheckJSON is what check --json prints (docs/formats/json.md).
func CheckJSON(checked []Checked) ([]byte, error) {
	over := slices.ContainsFunc(checked, func(c Checked) bool { return c.Over })
	return Line(struct {
		Version int       `json:"version"`
		OK      bool      `json:"ok"`
		Budgets []Checked `json:"budgets"`
	}{Version, !over, append([]Checked{}, checked...)})
}

// JUnit writes the result as a test suite.
func JUnit(w io.Writer, ref string, checked []Checked) error {
	var cases []TestCase
	for _, c := range checked {
		one := TestCase{Name: c.Name, Class: ref}
		if c.Baseline.Known() { // there may be a budget of its own for the same
			one.Name += ", relative to the baseline"
		}
		if c.Over {
			one.Failure = &Outcome{c.Sentence(), "over budget"}
		}
		cases = append(cases, one)
	}
	return WriteJUnit(w, "hightide check", cases)
}

// Annotation is the workflow command that has GitHub show a passed budget at its line.
func (c Checked) Annotation(budget string) string {
	return Annotation("error", budget, c.Line, "Memory over budget", c.Sentence())
}

// Sentence says how a budget was kept.
func (c Checked) Sentence() string {
	what, than := c.Name, ""
	if c.Name == "growth" {
		what = "growth per step"
	}
	if c.Of != "" {
		what += " of " + c.Of
	}
	if was, ok := c.Baseline.Get(); ok {
		than = fmt.Sprintf(" (the baseline has %v)", mem.Bytes(was))
	}
	if c.Over {
		return fmt.Sprintf("%s is %v (%s), %v over its budget of %v%s", what, c.Found, c.Label, c.Found-c.Limit, c.Limit,
			than)
	}
	if c.Open > 0 {
		return fmt.Sprintf("%s is at most %v (%s) of %v%s, with all that was there before the trace", what, c.Found+c.Open,
			c.Label, c.Limit, than)
	}
	return fmt.Sprintf("%s is %v (%s) of %v%s", what, c.Found, c.Label, c.Limit, than)
}
