package budget

import (
	"strings"
	"testing"
)

// TestFaults: what is wrong with a file of budgets is told with its line and column, also where it is not YAML at all.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"peak: 1GiB\n  bad: x: y\n": "2:6: mapping values",
		"a: b: c":                   "1:5: mapping values",
		"peak: 1GiB\n\tgrowth: 1\n": "2:1: found a tab",
		"peak: \"a\n":               "1:7: found unexpected end",
		"peak: [\n":                 "1:7: did not find",
		"peak: 1GiB\n  reserved: 2": "2:11: mapping values",
		"peak: *x\n":                "1:7: unknown anchor",
		"peek: 1GiB\n":              "1:1: there is no budget",
		"peak: 1GiBB\n":             "1:7: peak must be",
		"":                          "1:1: there is no budget",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %s…", text, err, want)
		}
	}
}
