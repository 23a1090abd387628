package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
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

// Annotation is the workflow command that has GitHub show a text at a line of a file. Level is error, warning or notice;
// without a file it belongs to the whole change, a line of 0 is none.
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
