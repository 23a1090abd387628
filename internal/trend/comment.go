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
	"hightide/internal/report"
)

// PullComment is what a pull request is told of a commit or a run, held against another.
type PullComment struct {
	Version int           `json:"version" doc:"Of this form: 1."`
	Measure Measure       `json:"of" doc:"What the trend is of, as peak or growth."`
	What    string        `json:"what" doc:"The figure, as PSS."`
	Label   string        `json:"label" doc:"Where it comes from: measured or imagined."`
	Now     Commit        `json:"commit" doc:"What it is about, with its change, noise and verdict against base."`
	NowRun  string        `json:"run,omitempty" doc:"The run that was named in place of a commit; absent: all runs of the commit count."`
	Base    *Commit       `json:"base,omitempty" doc:"What it is held against; absent: it is the first commit, and none was named."`
	BaseRun string        `json:"base_run,omitempty" doc:"The run that was named in place of the base's commit; absent: all runs of it count."`
	Named   bool          `json:"base_named" doc:"Whether the base was named; false: it is the commit before in the trend."`
	Unknown string        `json:"noise_unknown,omitempty" doc:"Why the noise of the change is not known; absent: it is, or there is no change."`
	Curve   string        `json:"curve" doc:"The means of the newest commits of the trend, at most 60, as one line of text."`
	Commits int           `json:"commits" doc:"How many commits the trend has."`
	Held    []CommentLine `json:"held" doc:"The lines that held most in a run of it; empty: not known."`
	HeldWas []CommentLine `json:"held_by_base" doc:"The same of a run of the base."`
	Left    []string      `json:"left_out" doc:"Which runs of the trend say nothing here, and why."`
	Of      string        `json:"trend" doc:"What the trend is of, as the address of its page asks for it."`
	Text    string        `json:"markdown" doc:"What the pull request is told."`

	Server string `json:"-"` // its address; empty: the runs are this machine's
}

// CommentLine is what a line of the program held of the sampled heap at its highest.
type CommentLine struct {
	Name     string `json:"name" doc:"As train.py:12."`
	Function string `json:"function" doc:"The function that it is in."`
	Bytes    int64  `json:"bytes" doc:"What it held."`
}

// Markdown is the comment.
func (c *PullComment) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.verdict())
	if c.Commits > 1 {
		fmt.Fprintf(&b, "\n`%s` %d commits, the newest at the right\n", c.Curve, c.Commits)
	}
	if c.tellsLines() {
		b.WriteString(c.where())
	}
	for i, check := range c.Now.Statuses[:min(len(c.Now.Statuses), mostChecks)] {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s: **%s** %s\n", code(check.Context), check.State, code(check.Description))
	}
	if links := c.links(); links != "" {
		fmt.Fprintf(&b, "\n%s\n", links)
	}
	if len(c.Left) > 0 {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", strings.Join(c.Left, ", "))
	}
	return b.String()
}

func (c *PullComment) verdict() string {
	now := &c.Now
	called, peak := title(c.Measure), fmt.Sprintf("%s, %s, of %s", c.Measure.Of(c.What), c.Label, runs(now.Runs))
	change, known := now.Change.Get()
	if !known {
		return fmt.Sprintf("**%s: %s** with %s (%s). It is the first commit: there is nothing to compare it with.",
			called, now.Text(now.Mean), name(now, c.NowRun), peak)
	}
	was := "It was"
	if c.Named {
		was = "The base has"
	}
	was = fmt.Sprintf("%s %s with %s (%s)", was, c.Base.Text(c.Base.Mean), name(c.Base, c.BaseRun), runs(c.Base.Runs))
	switch now.Verdict {
	case Changed:
		return fmt.Sprintf("**%s: %s** with %s, to %s (%s). %s. That is more than the noise of ±%v.", called,
			Signed(change), name(now, c.NowRun), now.Text(now.Mean), peak, was, mem.Bytes(now.Noise.Or(0)))
	case Noise:
		return fmt.Sprintf("**%s: no change above the noise** with %s: %s (%s). %s. The noise is ±%v.", called,
			name(now, c.NowRun), now.Text(now.Mean), peak, was, mem.Bytes(now.Noise.Or(0)))
	}
	return fmt.Sprintf("**%s: %s, which may be noise** with %s, to %s (%s). %s. The noise is not known: %s.", called,
		Signed(change), name(now, c.NowRun), now.Text(now.Mean), peak, was, c.Unknown)
}

// title is what a comment calls a figure.
func title(m Measure) string {
	switch {
	case m.ofLines():
		return code(string(m))
	case m == "" || m == Peak:
		return "Memory"
	}
	return strings.ToUpper(string(m[:1])) + string(m[1:])
}

// tellsLines says whether lines that held more or less tell why.
func (c *PullComment) tellsLines() bool {
	return c.Measure != Growth && c.Measure != Fragmentation && (c.Now.Verdict == Changed || c.Now.Verdict == Unknown)
}

// name is what one of the two is called: a commit, or a run and the commit that it is of.
func name(c *Commit, run string) string {
	switch {
	case run == "":
		return code(c.Short())
	case c.Commit == "":
		return "run " + code(run)
	}
	return "run " + code(run) + " of " + code(c.Short())
}

// mostChecks are those of a commit in a comment.
const mostChecks = 10

// leastMoved is how much of a change a function must hold more or less of, to be named.
const leastMoved = 0.05

// where names the functions whose lines held more or less, and the line that held most of each. Lines move from commit
// to commit, so functions are compared.
func (c *PullComment) where() string {
	type function struct{ file, name string }
	sums := func(lines []CommentLine) map[function]int64 {
		sum := map[function]int64{}
		for _, l := range lines {
			sum[function{fileOf(l.Name), l.Function}] += l.Bytes
		}
		return sum
	}
	before, after := sums(c.HeldWas), sums(c.Held)
	moved := map[function]int64{}
	for _, held := range []map[function]int64{before, after} {
		for f := range held {
			if d := after[f] - before[f]; math.Abs(float64(d)) >= leastMoved*math.Abs(float64(c.Now.Change.Or(0))) && d != 0 {
				moved[f] = d
			}
		}
	}
	if len(c.HeldWas) == 0 || len(c.Held) == 0 || len(moved) == 0 {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(moved), func(a, b function) int {
		return cmp.Or(cmp.Compare(max(moved[b], -moved[b]), max(moved[a], -moved[a])), cmp.Compare(a.name, b.name))
	})
	var b strings.Builder
	b.WriteString("\nOf the lines that held most of the heap (sampled, one run of each):\n\n" +
		"| line that held most | function | before | now |\n| --- | --- | ---: | ---: |\n")
	for _, f := range names[:min(len(names), 3)] {
		line := CommentLine{}
		for _, l := range slices.Concat(c.Held, c.HeldWas) {
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
func (c *PullComment) links() string {
	before, now := url.QueryEscape(c.Now.Before), url.QueryEscape(c.Now.First)
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
	said = append(said, fmt.Sprintf("[The run](%s/runs/%s)", c.Server, now),
		fmt.Sprintf("[The trend](%s/trend?%s)", c.Server, c.Of))
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
		if r == '`' || r == '|' || r < ' ' || report.Clean(string(r)) == "" {
			return '?'
		}
		return r
	}, text)
	return "`" + text + "`"
}
