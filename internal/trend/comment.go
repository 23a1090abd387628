package trend

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Comment is what a pull request is told of a commit, as Markdown.
type Comment struct {
	Trend         *Trend
	Commit        *Commit
	Of            url.Values // what the trend is of, as the page of it is asked
	Server        string     // its address; empty: the runs are this machine's
	Before, After []Line     // what held most in the two runs that are compared; empty: not known
	Spark         string     // the means of all commits as one line of text
}

// Line is what a line of the program held of the sampled heap at its highest.
type Line struct {
	Name     string // train.py:12
	Function string
	Bytes    int64
}

// Find is the commit of a hash or of its beginning; the last one where there is none. nil: no run of it can be compared.
func (t *Trend) Find(commit string) *Commit {
	for i, c := range slices.Backward(t.Commits) {
		if strings.HasPrefix(c.Commit, strings.ToLower(commit)) {
			return &t.Commits[i]
		}
	}
	return nil
}

// Markdown is the comment.
func (c *Comment) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.verdict())
	if n := len(c.Trend.Commits); n > 1 {
		fmt.Fprintf(&b, "\n`%s` %d commits, the newest at the right\n", c.Spark, n)
	}
	if c.Commit.Verdict == Changed {
		b.WriteString(c.where())
	}
	for i, check := range c.Commit.Statuses[:min(len(c.Commit.Statuses), mostChecks)] {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s: **%s** %s\n", code(check.Context), check.State, code(check.Description))
	}
	if links := c.links(); links != "" {
		fmt.Fprintf(&b, "\n%s\n", links)
	}
	if len(c.Trend.Left) > 0 {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", strings.Join(c.Trend.Left, ", "))
	}
	return b.String()
}

func (c *Comment) verdict() string {
	now := c.Commit
	peak := fmt.Sprintf("peak %s, %s, of %s", c.Trend.What, c.Trend.Label, runs(now.Runs))
	change, known := now.Change.Get()
	if !known {
		return fmt.Sprintf("**Memory: %v** with %s (%s). It is the first commit: there is nothing to compare it with.",
			mem.Bytes(now.Mean), code(now.Short()), peak)
	}
	before := &c.Trend.Commits[slices.IndexFunc(c.Trend.Commits, func(o Commit) bool {
		return o.Commit == now.Commit && o.Dirty == now.Dirty
	})-1]
	was := fmt.Sprintf("It was %v with %s (%s)", mem.Bytes(before.Mean), code(before.Short()), runs(before.Runs))
	switch now.Verdict {
	case Changed:
		return fmt.Sprintf("**Memory: %s** with %s, to %v (%s). %s. That is more than the noise of ±%v.", Signed(change),
			code(now.Short()), mem.Bytes(now.Mean), peak, was, mem.Bytes(now.Noise.Or(0)))
	case Noise:
		return fmt.Sprintf("**Memory: no change above the noise** with %s: %v (%s). %s. The noise is ±%v.", code(now.Short()),
			mem.Bytes(now.Mean), peak, was, mem.Bytes(now.Noise.Or(0)))
	}
	why := cmp.Or(c.Trend.Unknown, "a peak is only known to be at least so much, as of a short run")
	return fmt.Sprintf("**Memory: %s, which may be noise** with %s, to %v (%s). %s. The noise is not known: %s.", Signed(change),
		code(now.Short()), mem.Bytes(now.Mean), peak, was, why)
}

// mostChecks are those of a commit in a comment.
const mostChecks = 10

// leastMoved is how much of a change a function must hold more or less of, to be named.
const leastMoved = 0.05

// where names the functions whose lines held more or less, and the line that held most of each. Lines move from commit
// to commit, so functions are compared.
func (c *Comment) where() string {
	type function struct{ file, name string }
	sums := func(lines []Line) map[function]int64 {
		sum := map[function]int64{}
		for _, l := range lines {
			sum[function{fileOf(l.Name), l.Function}] += l.Bytes
		}
		return sum
	}
	before, after := sums(c.Before), sums(c.After)
	moved := map[function]int64{}
	for _, held := range []map[function]int64{before, after} {
		for f := range held {
			if d := after[f] - before[f]; math.Abs(float64(d)) >= leastMoved*math.Abs(float64(c.Commit.Change.Or(0))) && d != 0 {
				moved[f] = d
			}
		}
	}
	if len(c.Before) == 0 || len(c.After) == 0 || len(moved) == 0 {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(moved), func(a, b function) int {
		return cmp.Or(cmp.Compare(max(moved[b], -moved[b]), max(moved[a], -moved[a])), cmp.Compare(a.name, b.name))
	})
	var b strings.Builder
	b.WriteString("\nOf the lines that held most of the heap (sampled, one run of each):\n\n" +
		"| line that held most | function | before | now |\n| --- | --- | ---: | ---: |\n")
	for _, f := range names[:min(len(names), 3)] {
		line := Line{}
		for _, l := range slices.Concat(c.After, c.Before) {
			if line.Name == "" && fileOf(l.Name) == f.file && l.Function == f.name {
				line = l
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(line.Name), code(f.name), held(before, f), held(after, f))
	}
	return b.String()
}

// fileOf is train.py of train.py:12: two runs may lie in two folders.
func fileOf(line string) string {
	return line[:max(strings.LastIndexByte(line, ':'), 0)]
}

// held is what a function held; a dash where none of its lines was among those that held most.
func held[F comparable](sums map[F]int64, f F) string {
	if bytes, ok := sums[f]; ok {
		return mem.Bytes(bytes).String()
	}
	return "–"
}

// links lead to the two runs and to the trend, or say how to get there.
func (c *Comment) links() string {
	before, now := url.QueryEscape(c.Commit.Before), url.QueryEscape(c.Commit.First)
	switch {
	case c.Server == "" && before == "":
		return ""
	case c.Server == "":
		return fmt.Sprintf("Which parts and functions: `hightide diff %s %s`", before, now)
	}
	var said []string
	if before != "" {
		said = append(said, fmt.Sprintf("[Compare the two runs](%s/diff?a=%s&b=%s)", c.Server, before, now))
	}
	said = append(said, fmt.Sprintf("[The run](%s/runs/%s)", c.Server, now), fmt.Sprintf("[The trend](%s/trend?%s)", c.Server, c.Of.Encode()))
	return strings.Join(said, " · ")
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// Signed is a change with its sign.
func Signed(change int64) string {
	if change < 0 {
		return "-" + mem.Bytes(-change).String()
	}
	return "+" + mem.Bytes(change).String()
}

// Short is a commit as people know it; + says that files differed from it.
func (c *Commit) Short() string {
	text := c.Commit[:min(len(c.Commit), 10)]
	if c.Dirty {
		text += "+"
	}
	return text
}

// code is text that Markdown shows as it is: a hash or a name of a program comes from whoever pushed the run.
func code(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '`' || r == '|' || r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	return "`" + text + "`"
}
