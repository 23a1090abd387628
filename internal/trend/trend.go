// Package trend says how a figure of runs changed from commit to commit, and where by more than their noise.
//
//	[]store.Run, Measure ──▶ Of ──▶ Trend: commits in the order of their first runs, each held against the one before
//
// The noise is known from repeats, which are runs of one commit: without them nothing is said to have changed.
package trend

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// Trend of runs that are known by the same kind of figure.
type Trend struct {
	Version int      `json:"version" doc:"Of this form: 1."`
	Measure Measure  `json:"of" doc:"What it is of: peak, the figure by which runs are known; allocated; reserved; growth; fragmentation; or FILE:LINE or FILE:FUNCTION, for what lines there held at the peak."`
	What    string   `json:"what" doc:"The figure, as PSS; empty: no run can be compared."`
	Label   string   `json:"label" doc:"Where it comes from: measured or imagined; empty: no run can be compared."`
	Commits []Commit `json:"commits" doc:"In the order of their first runs."`
	Left    []string `json:"left_out" doc:"Which runs say nothing here, and why."`
	Note    string   `json:"note,omitempty" doc:"What else there is to say of it."`
	Unknown string   `json:"noise_unknown,omitempty" doc:"Why the noise of no change is known; absent: it is of one, or there is no change."`

	of    kind    // of all figures
	reach float64 // what the difference of two means with one run each has to exceed, over the square root of 1/n + 1/m
	df    float64 // of how many repeats that is known, beyond the first run of each commit
}

// kind of figure: two kinds cannot be held against each other.
type kind struct {
	what, label string
	source      mem.Quantity
}

func kindOf(f mem.Figure) kind { return kind{f.What, string(f.Label), f.Source} }

// Commit is what its runs took.
type Commit struct {
	Commit string `json:"commit" doc:"The commit that was checked out where its runs began."`
	Dirty  bool   `json:"dirty,omitempty" doc:"Whether files differed from the commit: its runs are then no repeats of one another."`
	First  string `json:"first_run" doc:"The id of its first run."`
	Last   string `json:"last_run" doc:"That of its last one."`
	Runs   int    `json:"runs" doc:"How many runs it has."`
	Mean   int64  `json:"mean_bytes" doc:"The mean of the figures of its runs."`
	Low    int64  `json:"lowest_bytes" doc:"The lowest of them."`
	High   int64  `json:"highest_bytes" doc:"The highest."`
	Error  int64  `json:"error_bytes,omitempty" doc:"How far the figure that is known least well may be off to either side, in bytes; of 0, what was not told; absent: exact, or not known."`

	Change   mem.Optional         `json:"change_bytes,omitzero" doc:"How the mean differs from that of the commit before; absent: it is the first."`
	Noise    mem.Optional         `json:"noise_bytes,omitzero" doc:"What a change has to exceed, or it may be noise; absent: no commit was run twice, or a figure is only a bound."`
	Verdict  Verdict              `json:"verdict,omitempty" enum:"changed,within noise,unknown" doc:"On the change; absent: it is the first."`
	Statuses []store.CommitStatus `json:"statuses,omitempty" doc:"How checks of the commit ended, such as of its budgets; absent: none is known."`

	Before string `json:"before_run,omitempty" doc:"The run of the commit before that is to be compared with first_run."`

	start   int64
	sum     float64
	squares float64 // of what its runs differ from their mean
	bound   bool    // a figure is "at least"
}

// Text is a figure of the commit for people. What may be no more than was not told is no nothing.
func (c *Commit) Text(bytes int64) string {
	if bytes == 0 && c.Error > 0 {
		return "≤ " + mem.Bytes(c.Error).String()
	}
	return mem.Bytes(bytes).String()
}

// Verdict on a change.
type Verdict string

// Verdicts.
const (
	Changed Verdict = "changed"
	Noise   Verdict = "within noise"
	Unknown Verdict = "unknown"
)

// StatusContext is what checks are called that have no name of their own.
const StatusContext = "hightide"

// Hashes are those of its commits: of others nothing need be asked, however much was said of them.
func (t *Trend) Hashes() []string {
	var all []string
	for i := range t.Commits {
		all = append(all, t.Commits[i].Commit)
	}
	return all
}

// Tell adds how checks of the commits ended. Runs with changed files are of no commit that was checked.
func (t *Trend) Tell(statuses map[string][]store.CommitStatus) {
	for i := range t.Commits {
		if c := &t.Commits[i]; !c.Dirty {
			c.Statuses = statuses[c.Commit]
		}
	}
}

// Checked is how all checks of a commit ended; empty: none is known.
func (c *Commit) Checked() string {
	if len(c.Statuses) == 0 {
		return ""
	}
	return store.Combined(c.Statuses)
}

// wrongly is how often a trend in which nothing changes may have a change.
const wrongly = 0.05

// Of makes the trend of a figure of runs, in any order. They are what the filter of the measure lists.
func Of(runs []store.Run, of Measure) Trend {
	t := Trend{Version: 1, Measure: of, Commits: []Commit{}, Left: []string{}}
	kept := t.choose(runs)
	slices.SortFunc(kept, func(a, b *store.Run) int { return cmp.Compare(a.Start, b.Start) })
	for key, group := range grouped(kept) {
		t.Commits = append(t.Commits, commitOf(key, group, of))
	}
	slices.SortFunc(t.Commits, func(a, b Commit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.Commit, b.Commit))
	})
	t.compare()
	if of.ofLines() && len(t.Commits) > 0 && !slices.ContainsFunc(t.Commits, func(c Commit) bool { return c.High > 0 }) {
		t.Note = fmt.Sprintf("No run has %s among its lines that held most.", of)
	}
	return t
}

// choose keeps the runs that have something to say, of the kind of figure that most of them have.
func (t *Trend) choose(runs []store.Run) []*store.Run {
	kinds := map[kind][]*store.Run{}
	var no, ended, figure, older int
	for i := range runs {
		r := &runs[i]
		switch {
		case !ends(r):
			ended++
		case r.GitCommit == "":
			no++
		case t.Measure.kept() && r.Figures == nil:
			older++
		case !t.Measure.figure(r).Known():
			figure++
		default:
			of := kindOf(t.Measure.figure(r))
			kinds[of] = append(kinds[of], r)
		}
	}
	var most kind
	for k, of := range kinds {
		if n := cmp.Compare(len(of), len(kinds[most])); n > 0 || n == 0 && fmt.Sprint(k) < fmt.Sprint(most) {
			most = k
		}
	}
	other := 0
	for k, of := range kinds {
		if k != most {
			other += len(of)
		}
	}
	t.What, t.Label, t.of = most.what, most.label, most
	for _, left := range []struct {
		n   int
		why string
	}{
		{no, "without a commit"},
		{ended, notEnded},
		{figure, "without " + t.Measure.lacking()},
		{older, "of a hightide that kept none, until hightide reindex --findings"},
		{other, "known by another kind of figure"},
	} {
		if left.n > 0 {
			runs := "runs"
			if left.n == 1 {
				runs = "run"
			}
			t.Left = append(t.Left, fmt.Sprintf("%d %s %s", left.n, runs, left.why))
		}
	}
	return kinds[most]
}

const notEnded = "that did not end by themselves, or failed"

// ends says whether a run ended as it should, so that it can be held against another.
func ends(r *store.Run) bool {
	switch r.Ended.Kind {
	case mem.EndDone, mem.EndStopped, mem.EndFits, mem.EndTight, mem.EndConditional:
		return true
	}
	return false
}

// state is a commit, with changed files or without.
type state struct {
	commit string
	dirty  bool
}

func grouped(runs []*store.Run) map[state][]*store.Run {
	groups := map[state][]*store.Run{}
	for _, r := range runs {
		s := state{r.GitCommit, r.GitDirty}
		groups[s] = append(groups[s], r)
	}
	return groups
}

// commitOf sums up the runs of a commit, oldest first.
func commitOf(s state, runs []*store.Run, of Measure) Commit {
	c := Commit{Commit: s.commit, Dirty: s.dirty, First: runs[0].ID, Last: runs[len(runs)-1].ID, Runs: len(runs),
		Low: math.MaxInt64, start: runs[0].Start}
	for _, r := range runs {
		f := of.figure(r)
		bytes := f.Bytes
		c.Low, c.High, c.sum = min(c.Low, bytes), max(c.High, bytes), c.sum+float64(bytes)
		c.Error, c.bound = max(c.Error, f.Error), c.bound || f.AtLeast
	}
	mean := c.sum / float64(len(runs))
	c.Mean = int64(math.Round(mean))
	for _, r := range runs {
		off := float64(of.figure(r).Bytes) - mean
		c.squares += off * off
	}
	return c
}

// unknown says why the noise of no change is known.
func (t *Trend) unknown(df float64) string {
	known := false
	for i := 1; i < len(t.Commits); i++ {
		known = known || !t.Commits[i-1].bound && !t.Commits[i].bound
	}
	switch {
	case len(t.Commits) < 2 || df > 0 && known:
		return ""
	case df == 0:
		return noRepeats
	}
	return "of each change a peak is only known to be at least so much, as of a short run"
}

// compare holds each commit against the one before. The noise is taken to be the same for all; the level is shared by
// all comparisons, so that a long trend has no more false changes than a short one (Bonferroni).
func (t *Trend) compare() {
	var squares float64
	for _, c := range t.Commits {
		if !c.Dirty {
			squares, t.df = squares+c.squares, t.df+float64(c.Runs-1)
		}
	}
	if t.df > 0 {
		t.reach = matrix.Student(t.df, 1-wrongly/float64(max(len(t.Commits)-1, 1))) * math.Sqrt(squares/t.df)
	}
	t.Unknown = t.unknown(t.df)
	for i := 1; i < len(t.Commits); i++ {
		t.hold(&t.Commits[i], &t.Commits[i-1], t.of)
	}
}

// hold says how b differs from a, and whether by more than the noise of the trend; else why that is not known.
func (t *Trend) hold(b, a *Commit, of kind) (unknown string) {
	b.Before, b.Change, b.Noise, b.Verdict = a.Last, mem.Some(b.Mean-a.Mean), mem.Optional{}, Unknown
	switch {
	case t.df == 0:
		return noRepeats
	case a.bound || b.bound:
		return "a peak is only known to be at least so much, as of a short run"
	case of != t.of:
		return "the repeats are of another kind of figure"
	}
	noise := t.reach*math.Sqrt(1/float64(a.Runs)+1/float64(b.Runs)) + float64(a.Error+b.Error)
	b.Noise, b.Verdict = mem.Some(int64(math.Ceil(noise))), Noise
	if math.Abs(float64(b.Mean-a.Mean)) > noise {
		b.Verdict = Changed
	}
	return ""
}

const noRepeats = "no commit without changed files was run twice"
