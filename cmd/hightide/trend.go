package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// trendOptions of trend.
type trendOptions struct {
	store.Filter
	of         string
	html, json string
	server     string
	comment    bool
	commit     string
	base       string
}

func trendCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "trend [TEXT]",
		Short: "How the peak changed from commit to commit, and where by more than its noise",
		Long: `Hold the peaks of runs against each other by the commit that was checked out in the folder where they began.
Choose runs of one program: by TEXT in their name, id or command, by --name or by --tag.

--of names another figure than the peak: allocated or reserved, the peaks of a framework's allocator; growth, of the
whole run with each step; fragmentation, what the allocator had and nobody used at the peak; or what a line or a
function held at the peak, as train.py:12 or models/net.py:forward. Lines move from commit to commit, functions do not.
Of a run at most 30 lines are kept, those that held most: "≤" says what another one may have held.

The noise is known from commits that were run twice or more. A change is said to be one where it exceeds
that: in 19 of 20 trends in which nothing changes, none is. Without repeats nothing is said to have changed.
Commits stand in the order of their first runs, each against the one before, so a slow creep is not found.
Left out, and counted: runs without a commit, that failed, or that are known by another kind of figure.

--server asks a team's server for the runs that were sent to it. --comment prints what a pull request is told of a
commit, as Markdown: the change, its noise, what held more, the curve, and links to the server's pages. --commit and
--base name the two that are held against each other: by a hash or its beginning, by what git calls a commit in this
folder, as main, or else by what a run is called. --json has the comment and its figures.

Exit codes: 0 fine, 2 wrong usage, 3 no run of the commit, or the server refuses, 4 it cannot be asked.`,
		Example: `  hightide trend --tag project=ranker
  hightide trend --tag project=ranker --of growth
  hightide trend --tag project=ranker --of models/net.py:forward
  hightide trend train.py --json
  hightide trend --tag project=ranker --html trend.html
  hightide trend --tag project=ranker --server https://runs.example.org:7333 --commit "$SHA" --comment > comment.md
  hightide trend --commit HEAD --base "$(git merge-base origin/main HEAD)" --comment
  hightide trend --store postgres://hightide@db/hightide --objects s3://our-runs --name nightly`,
		Args: cobra.MaximumNArgs(1),
	}, &trendOptions{})
}

func (o *trendOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Name, "name", "", "only runs of this `name`")
	addSettings(flags, options.Setting{Name: "tag", To: options.Tags{To: &o.Tags, Bare: true},
		Help: "only runs with this tag, `key` or key=value; may be given several times"})
	flags.StringVar(&o.of, "of", string(trend.Peak),
		"the `figure`: peak, allocated, reserved, growth, fragmentation, FILE:LINE or FILE:FUNCTION")
	flags.StringVar(&o.html, "html", "", "write the page of it as one HTML `file`")
	flags.StringVar(&o.server, "server", "", "the runs of the team's server at this `address`, as https://runs.example.org")
	flags.BoolVar(&o.comment, "comment", false, "print a comment for a pull request, as Markdown")
	flags.StringVar(&o.commit, "commit", "",
		"with --comment: the commit or run that it is about, by `name`; without: the last commit")
	flags.StringVar(&o.base, "base", "",
		"with --comment: the commit or run that it is held against, by `name`; without: the commit before")
	jsonFlag(flags, &o.json)
}

func (o *trendOptions) run(a *app, c *cobra.Command, args []string) error {
	o.Text, o.Brief = strings.Join(args, ""), true
	switch {
	case (o.commit != "" || o.base != "") && !o.comment:
		return fail.Usage("hightide trend --commit NAME --base NAME --comment", "--commit and --base go with --comment")
	case o.comment && o.html != "":
		return fail.Usage("ask for one of them", "--comment prints Markdown, and no page")
	}
	of, err := trend.ParseMeasure(o.of)
	if err != nil {
		return err
	}
	from, err := a.trendOf(o.Filter, of, o.server)
	if err != nil {
		return err
	}
	if o.comment {
		told, err := from.comment(c.Context(), hashOf(c.Context(), o.commit), hashOf(c.Context(), o.base))
		if err != nil {
			return err
		}
		if o.json != "-" {
			if _, err := fmt.Fprint(a.stdout, told.Text); err != nil {
				return err
			}
		}
		return a.show(o.json, told, func() error { return nil })
	}
	t, err := from.trend(c.Context())
	if err != nil {
		return err
	}
	saved := &report.Saved{Trend: t, Of: o.Filter.String(), Made: time.Now()}
	return a.showOr(o.html, saved, o.json, t, func() error { return a.printTrend(t) })
}

// trendColumns are those of the list of commits.
var trendColumns = []report.ListColumn{{Title: "COMMIT"}, {Title: "RUNS", Right: true}, {Title: "MEAN", Right: true},
	{Title: "LOWEST", Right: true, Spare: 2}, {Title: "HIGHEST", Right: true, Spare: 1}, {Title: "CHANGE", Right: true},
	{Title: "NOISE", Right: true}, {Title: "VERDICT"}}

func (a *app) printTrend(t trend.Trend) error {
	var rows [][]string
	var notes []string
	for _, c := range t.Commits {
		row := []string{report.Clean(c.Short()), strconv.Itoa(c.Runs), c.Text(c.Mean), c.Text(c.Low), c.Text(c.High),
			"", "", string(c.Verdict)}
		if change, ok := c.Change.Get(); ok {
			row[5] = trend.Signed(change)
		}
		if noise, ok := c.Noise.Get(); ok {
			row[6] = "±" + mem.Bytes(noise).String()
		}
		rows = append(rows, row)
		if c.Verdict == trend.Changed {
			notes = append(notes, fmt.Sprintf("%s changed it by %s. Which lines: hightide diff %s %s", report.Clean(c.Short()),
				row[5], c.Before, c.First))
		}
	}
	options := textOptions(a.stdout)
	columns := trendColumns
	if slices.ContainsFunc(t.Commits, func(c trend.Commit) bool { return len(c.Statuses) > 0 }) {
		columns = append(slices.Clip(columns), report.ListColumn{Title: "CHECKS"})
		for i, c := range t.Commits {
			rows[i] = append(rows[i], c.Checked())
		}
	}
	if len(rows) == 0 {
		notes = append(notes, "No run that can be compared.")
	} else if err := report.WriteList(a.stdout, columns, rows, options.Width, options.Color); err != nil {
		return err
	}
	if len(t.Commits) > 0 {
		notes = append([]string{fmt.Sprintf("MEAN is of %s, %s.", t.Measure.Of(t.What), t.Label)}, notes...)
		if t.Note != "" {
			notes = append(notes, t.Note)
		}
		if t.Unknown != "" {
			notes = append(notes, "The noise is not known: "+t.Unknown+".")
		}
	}
	if len(t.Left) > 0 {
		notes = append(notes, "Left out: "+strings.Join(t.Left, ", ")+".")
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(a.stdout, "\n%s\n", note); err != nil {
			return err
		}
	}
	return nil
}
