package trace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Options choose what of a snapshot is explained. The zero value: every device, at its peak, by line.
type Options struct {
	Device mem.Optional
	Range  *usage.Stretch // of events; nil: the whole trace
	At     string         // "", "peak", "end", "event N" or ns of the wall clock
	By     string         // one of Groupings; "": site
	Top    int            // groups listed; 0: all
	Filter *regexp.Regexp
	Batch  int64 // of a program of XLA, for what half of it would need; 0: as it is guessed
	Rules  []usage.CategoryRule

	// Pictures adds what only pictures and programs need: the course of the memory by category and site, and
	// every block of the segment map. Columns is how many parts that course has, at most; 0: 600.
	Pictures bool
	Columns  int

	// Brief stops at the peak and who holds it: no steps, growth, turnover and fragmentation, which together
	// take longer than the file does to read.
	Brief bool

	Several bool // other files are in the report
	// of Top, Device and so on those that were asked for, by the names of their flags: what no file answers is an error
	Asked []string
	Flame string // of Flames: also as a table; "": none

	Replayer mem.Replayer // says which settings would have avoided a request that failed; nil: nobody is asked
}

// ParseRange reads "a:b", "a:" or ":b".
func ParseRange(text string) (usage.Stretch, error) {
	r := usage.Whole
	from, to, ok := strings.Cut(text, ":")
	for _, end := range []struct {
		text string
		to   *int
	}{{from, &r.From}, {to, &r.To}} {
		if end.text == "" {
			continue
		}
		n, err := strconv.ParseInt(end.text, 10, 32)
		if err != nil || n < 0 {
			return r, fmt.Errorf("%q is not a range of events such as 1000:2000", text)
		}
		*end.to = int(n)
	}
	if !ok {
		return r, fmt.Errorf("%q is not a range of events such as 1000:2000", text)
	}
	if r.From > r.To {
		return r, fmt.Errorf("%q ends before it begins", text)
	}
	return r, nil
}

// rangeWords is " among events 1,000 to 2,000", "" for the whole trace.
func rangeWords(r usage.Stretch) string {
	switch {
	case r == usage.Whole:
		return ""
	case r.From < 0:
		return fmt.Sprintf(" up to event %s", report.Count(int64(r.To)))
	case r.To == usage.Never:
		return fmt.Sprintf(" from event %s on", report.Count(int64(r.From)))
	}
	return fmt.Sprintf(" among events %s to %s", report.Count(int64(r.From)), report.Count(int64(r.To)))
}

// Groupings are what blocks can be grouped by.
var Groupings = []string{"site", "module", "category", "file", "function", "size", "stream", "pool", "annotation",
	"age"}

// hostName is what pinned host memory is called among devices.
const hostName = "host (pinned)"

// CheckMoment says whether a moment is written as Options.At is.
func CheckMoment(at string) error {
	_, err := strconv.ParseInt(strings.TrimPrefix(at, "event "), 10, 64)
	if err != nil && at != "" && at != "peak" && at != "end" {
		return fmt.Errorf("%q is not peak, end, event N or a time in ns", at)
	}
	return nil
}

// bytesInBlocks is "2.00 GiB in 3 blocks".
func bytesInBlocks(bytes mem.Bytes, blocks int) string {
	if blocks == 1 {
		return fmt.Sprintf("%v in 1 block", bytes)
	}
	return fmt.Sprintf("%v in %s blocks", bytes, report.Count(int64(blocks)))
}
