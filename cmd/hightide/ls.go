package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func lsCommand(a *app) *cobra.Command {
	var filter engine.RunFilter
	var tags []string
	var asJSON bool
	c := &cobra.Command{
		Use:     "ls [TEXT]",
		Aliases: []string{"list"},
		Short:   "List the runs, newest first",
		Long: `List the runs, newest first: how long, how much memory, how they ended. TEXT selects those whose
id, name or command contains it.

A run whose engine went away before the end is "cut off": what it recorded until then is there.`,
		Example: `  hightide ls
  hightide ls bert --limit 5
  hightide ls --tag model=bert --tag keep
  hightide ls --json | jq '.runs[].peak_host_rss_bytes'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				filter.Text = args[0]
			}
			filter.Tags = map[string]string{}
			for _, tag := range tags {
				key, value, _ := strings.Cut(tag, "=")
				filter.Tags[key] = value
			}
			if states := []string{"running", "finished", "cut off"}; filter.State != "" && !slices.Contains(states, string(filter.State)) {
				return engine.ChoiceError("--state", string(filter.State), states)
			}
			if filter.Limit < 0 {
				return engine.UsageError("--limit 0 lists all", "--limit %d is less than 0", filter.Limit)
			}
			runs, err := a.engine().Runs(c.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(runList{1, append([]engine.Run{}, runs...)})
			}
			if len(runs) == 0 && (filter.Text+filter.Name+string(filter.State) != "" || len(filter.Tags) > 0) {
				_, err := fmt.Fprintln(a.stdout, "No run is like that. All of them: hightide ls")
				return err
			}
			return a.printRuns(runs, time.Now())
		},
	}
	c.Flags().StringArrayVar(&tags, "tag", nil, "only runs with this tag, `key` or key=value; may be given several times")
	c.Flags().StringVar(&filter.Name, "name", "", "only runs of this name")
	c.Flags().StringVar((*string)(&filter.State), "state", "", "only runs that are: running, finished, 'cut off'")
	c.Flags().IntVarP(&filter.Limit, "limit", "n", 0, "at most this many; 0: all")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

// runList is the JSON of commands that print runs.
type runList struct {
	Version int          `json:"version"`
	Runs    []engine.Run `json:"runs"`
}

// lsColumn is a column of the list and what stands in it.
type lsColumn struct {
	report.ListColumn
	cell func(engine.Run) string
}

func lsColumns(now time.Time) []lsColumn {
	return []lsColumn{
		{report.ListColumn{Title: "RUN"}, func(r engine.Run) string { return r.ID }},
		{report.ListColumn{Title: "NAME"}, func(r engine.Run) string { return r.Name }},
		{report.ListColumn{Title: "STARTED"}, func(r engine.Run) string { return ago(now, time.Unix(0, r.Start)) }},
		{report.ListColumn{Title: "TIME", Right: true}, func(r engine.Run) string { return shortDuration(time.Duration(r.Duration)) }},
		{report.ListColumn{Title: "STEPS", Right: true}, func(r engine.Run) string { return nonZero(int64(r.Steps)) }},
		{report.ListColumn{Title: "PEAK HOST", Right: true}, hostPeak},
		{report.ListColumn{Title: "PEAK DEVICE", Right: true}, devicePeak},
		{report.ListColumn{Title: "RESULT"}, result},
		{report.ListColumn{Title: "FINDINGS", Right: true}, func(r engine.Run) string { return nonZero(r.Findings.Or(0)) }},
		{report.ListColumn{Title: "SIZE", Right: true}, func(r engine.Run) string { return mem.Bytes(r.Size).String() }},
		{report.ListColumn{Title: "TAGS"}, tagsText},
		{report.ListColumn{Title: "COMMAND"}, func(r engine.Run) string { return strings.Join(r.Command, " ") }},
	}
}

// hostPeak is the largest sum of RSS over the process tree.
func hostPeak(r engine.Run) string {
	if rss, ok := r.HostRSS.Get(); ok {
		return mem.Bytes(rss).String()
	}
	return ""
}

func devicePeak(r engine.Run) string {
	for _, peak := range []mem.Optional{r.Device, r.Reserved, r.Allocated} {
		if value, ok := peak.Get(); ok && value > 0 {
			return mem.Bytes(value).String()
		}
	}
	return ""
}

func result(r engine.Run) string {
	text := ""
	switch code, exited := r.ExitCode.Get(); {
	case r.State != engine.Finished:
		text = string(r.State)
	case r.Signal.Known():
		text = report.SignalName(r.Signal.Or(0))
	case exited && code != 0:
		text = fmt.Sprintf("exit %d", code)
	case !exited:
		text = "recovered" // its engine went away; how it ended nobody saw
	default:
		text = "ok"
	}
	if r.OOMs > 0 {
		text += ", out of memory"
	}
	if r.Label == mem.Imagined {
		text += ", imagined"
	}
	if r.Damaged && r.State != engine.Running {
		text += ", damaged"
	}
	return text
}

func tagsText(r engine.Run) string {
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

func (a *app) printRuns(runs []engine.Run, now time.Time) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(a.stdout, "No runs. Record one: hightide run -- python train.py")
		return err
	}
	width, terminal := a.terminalWidth()
	var columns []report.ListColumn
	rows := make([][]string, len(runs))
	for _, c := range lsColumns(now) {
		columns = append(columns, c.ListColumn)
		for i, r := range runs {
			rows[i] = append(rows[i], c.cell(r))
		}
	}
	if err := report.WriteList(a.stdout, columns, rows, width, terminal && os.Getenv("NO_COLOR") == ""); err != nil {
		return err
	}
	var size int64
	for _, r := range runs {
		size += r.Size
	}
	if !terminal {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "\n%s, %v in %s\n", report.Counted(int64(len(runs)), "run"), mem.Bytes(size), a.engine().Dir())
	return err
}
