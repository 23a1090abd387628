package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestListThatIsTooWide: what can be spared is left out, so that the last column, and figures that are not spare, can
// be read; without a limit all is there.
func TestListThatIsTooWide(t *testing.T) {
	columns := []ListColumn{{Title: "RUN"}, {Title: "STARTED", Spare: 1}, {Title: "FINDINGS", Right: true},
		{Title: "SIZE", Right: true, Spare: 2}, {Title: "COMMAND"}}
	rows := [][]string{{"06ft5ys466", "25 seconds ago", "3", "307 KiB", "a_long_name_of_a_program.py"}}
	for width, want := range map[int][]string{
		0:  {"STARTED", "SIZE", "a_long_name_of_a_program.py"},
		80: {"STARTED", "SIZE", "a_long_name_of_a_program.py"},
		58: {"STARTED", "3", "a_long_name_of_a"},
		40: {"3", "a_long_name_of_a"},
	} {
		var b strings.Builder
		if err := WriteList(&b, columns, rows, width, false); err != nil {
			t.Fatal(err)
		}
		for _, word := range want {
			if !strings.Contains(b.String(), word) {
				t.Errorf("at %d columns without %q:\n%s", width, word, b.String())
			}
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if width > 0 && utf8.RuneCountInString(line) > width {
				t.Errorf("at %d columns: %q", width, line)
			}
		}
	}
}
