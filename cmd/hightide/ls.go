package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/bench"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// lsOptions of ls.
type lsOptions struct {
	store.Filter
	line string
	json string
}

func lsCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "ls [TEXT]",
		Aliases: []string{"list"},
		Short:   "List the runs, newest first",
		Long: `List the runs, newest first: how long, how much memory, how they ended. TEXT selects those whose
id, name or command contains it. PEAK is the figure that the run's report leads with: memory that was
reserved or allocated on a device where one was used, else of several processes what they took together,
shared pages once (PSS), else resident memory (RSS). RESULT is how the program ended; of an imagined run
it is the verdict.

--finding and --line look in what the report found that was made at a run's end: its findings, and the lines
that held most of the heap, or of an imagined device, at the highest. Both together: such a finding at that
line. Runs of which that is not known are counted.

A run is "cut off" where hightide was killed before the program ended: what was recorded until then is
there. A "recovered" run was completed by the next command; how its program ended is not known.

Exit codes: 0 fine, 2 wrong usage, 4 the list cannot be written.`,
		Example: `  hightide ls
  hightide ls bert --limit 5
  hightide ls --tag model=bert --tag keep
  hightide ls --finding leak --line models/net.py:12
  hightide ls --json | jq '.runs[].figure.bytes'`,
		Args: cobra.MaximumNArgs(1),
	}, &lsOptions{})
}

func (o *lsOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Name, "name", "", "only runs of this `name`")
	addSettings(flags,
		options.Setting{Name: "tag", To: options.Tags{To: &o.Tags, Bare: true},
			Help: "only runs with this tag, `key` or key=value; may be given several times"},
		options.Setting{Name: "state", To: (*string)(&o.State), Among: []string{"running", "finished", "cut off"},
			Help: "only runs of this `state`: running, finished, 'cut off'"})
	flags.StringVar(&o.Finding, "finding", "", "only runs with a finding of this `kind`, such as leak or oom")
	flags.StringVar(&o.line, "line", "",
		"only runs with a finding, or much memory, at this `place`: FILE, FILE:LINE or FILE:FUNCTION")
	flags.IntVarP(&o.Limit, "limit", "n", 0, "at most this `number` of runs; 0: all")
	jsonFlag(flags, &o.json)
}

func (o *lsOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.Limit < 0 {
		return fail.Usage("--limit 0 lists all", "--limit %d is less than 0", o.Limit)
	}
	if o.Text = strings.Join(args, ""); o.line != "" {
		at, ok := store.ParseSpot(o.line)
		if !ok {
			return fail.Usage("write --line train.py, --line train.py:12 or --line models/net.py:12",
				"--line %s is no file or line", o.line)
		}
		o.Line = at
	}
	runs, err := a.engine().Runs(c.Context(), o.Filter)
	if err != nil {
		return err
	}
	unsearched, err := a.engine().Unsearched(c.Context(), o.Filter)
	if err != nil {
		return err
	}
	if text := store.UnsearchedText(unsearched); text != "" && o.json == "" {
		fmt.Fprintln(a.stderr, "hightide: "+text)
	}
	// somebody names it, so it should be there
	if dir := a.engine().Dir(); len(runs) == 0 && a.engine().Shared() == "" && store.IsFolder(dir) &&
		(a.dataDir != "" || os.Getenv("HIGHTIDE_DATA") != "") {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(a.stderr,
				"hightide: there is no data directory %s: was it deleted or unmounted? The next run makes it\n", dir)
		}
	}
	if spilled := slices.IndexFunc(runs, func(r store.Run) bool { return a.engine().Elsewhere(r) != "" }); spilled >= 0 {
		fmt.Fprintf(a.stderr, "hightide: some of these runs lie in %s, as %s could not be written then\n",
			a.engine().Elsewhere(runs[spilled]), a.engine().Dir())
	}
	list := runsJSON(runs)
	list.NotSearched = unsearched
	return a.show(o.json, list, func() error {
		if len(runs) == 0 && (o.Text+o.Name+string(o.State)+o.PlaceText() != "" || len(o.Tags) > 0) {
			_, err := fmt.Fprintln(a.stdout, "No run matches. All runs: hightide ls")
			return err
		}
		return a.printRuns(runs, a.runtime.Time())
	})
}

// runList is the JSON of commands that print runs.
type runList struct {
	Version int         `json:"version"`
	Runs    []store.Run `json:"runs"`
	// of these nothing is known that --finding and --line could ask for; at most 1,000 are counted
	NotSearched int `json:"not_searched,omitempty"`
}

func runsJSON(runs []store.Run) runList {
	return runList{Version: 1, Runs: append([]store.Run{}, runs...)}
}

// lsColumn is a column of the list and what stands in it.
type lsColumn struct {
	report.ListColumn
	cell func(store.Run) string
}

func lsColumns(now time.Time) []lsColumn {
	return []lsColumn{
		{report.ListColumn{Title: "RUN"}, func(r store.Run) string { return r.ID }},
		{report.ListColumn{Title: "NAME"}, func(r store.Run) string { return r.Name }},
		{report.ListColumn{Title: "STARTED", Spare: 3}, func(r store.Run) string { return ago(now, time.Unix(0, r.Start)) }},
		{report.ListColumn{Title: "TIME", Right: true, Spare: 1},
			func(r store.Run) string { return shortDuration(time.Duration(r.Duration)) }},
		{report.ListColumn{Title: "STEPS", Right: true, Spare: 2},
			func(r store.Run) string { return nonZero(int64(r.Steps)) }},
		{report.ListColumn{Title: "PEAK"}, func(r store.Run) string { return r.Figure.String() }},
		{report.ListColumn{Title: "RESULT"}, result},
		{report.ListColumn{Title: "FINDINGS", Right: true}, func(r store.Run) string { return nonZero(r.Findings.Or(0)) }},
		{report.ListColumn{Title: "SIZE", Right: true, Spare: 4},
			func(r store.Run) string { return mem.Bytes(r.Size).String() }},
		{report.ListColumn{Title: "TAGS"}, tagsText},
		{report.ListColumn{Title: "COMMAND"}, func(r store.Run) string { return mem.CommandLine(mem.Program(r.Command)) }},
	}
}

func result(r store.Run) string {
	text := r.Ended.Text
	if r.Label == mem.Imagined {
		text += ", imagined"
	}
	if r.Damaged && r.State != store.Running {
		text += ", damaged"
	}
	return text
}

func tagsText(r store.Run) string {
	var all []string
	for key, value := range r.Tags {
		if value != "" {
			key += "=" + value
		}
		all = append(all, key)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (a *app) printRuns(runs []store.Run, now time.Time) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(a.stdout, "No runs. Record one: hightide run -- python train.py")
		return err
	}
	var columns []report.ListColumn
	rows := make([][]string, len(runs))
	for _, c := range lsColumns(now) {
		columns = append(columns, c.ListColumn)
		for i, r := range runs {
			rows[i] = append(rows[i], c.cell(r))
		}
	}
	options := textOptions(a.stdout)
	err := report.WriteList(a.stdout, columns, rows, options.Width, options.Color)
	if err != nil || terminal(a.stdout) == nil {
		return err
	}
	for _, text := range notOneFigure(runs) {
		fmt.Fprintf(a.stdout, "\n%s\n", text)
	}
	var size int64
	for _, r := range runs {
		size += r.Size
	}
	_, err = fmt.Fprintf(a.stdout, "\n%s, %v in %s\n", report.Counted(int64(len(runs)), "run"), mem.Bytes(size),
		a.engine().Place())
	return err
}

// notOneFigure names the matrices whose trials are known by figures of different kinds: a trial of one process by its
// RSS, one of several by their PSS.
func notOneFigure(runs []store.Run) (texts []string) {
	kinds := map[string][]string{}
	var order []string
	for _, r := range runs {
		name := r.Tags[bench.TagMatrix]
		if name == "" || !r.Figure.Known() || slices.Contains(kinds[name], r.Figure.What) {
			continue
		}
		if kinds[name] == nil {
			order = append(order, name)
		}
		kinds[name] = append(kinds[name], r.Figure.What)
	}
	for _, name := range order {
		if all := kinds[name]; len(all) > 1 {
			texts = append(texts, fmt.Sprintf("PEAK of the trials of %s is %s: do not compare one kind with another. What "+
				"hightide bench prints compares each kind by itself.", name, strings.Join(all, " or ")))
		}
	}
	return texts
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
