package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// auditOptions of audit.
type auditOptions struct {
	limit int
	json  string
}

func auditCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "audit",
		Short: "Who changed what on a team's server, or was refused to",
		Long: `List the requests to a hightide serve that changed something, started a program or were refused to, and the
keys that were made and revoked: when, who, from where, with which answer. The newest come first. What was only
read is not kept; nor is what a request had in its query or body.

Exit codes: 0 fine, 2 wrong usage, 4 the store cannot be used.`,
		Example: `  hightide audit
  hightide audit --limit 1000 --json`,
		Args: cobra.NoArgs,
	}, &auditOptions{limit: 50})
}

func (o *auditOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags, options.Setting{Name: "limit", To: &o.limit, Least: 1, Help: "the most that are listed"})
	jsonFlag(flags, &o.json)
}

func (o *auditOptions) run(a *app, c *cobra.Command, _ []string) error {
	team, err := a.engine().SharedStore()
	if err != nil {
		return err
	}
	defer team.Close()
	acts, err := team.Acts(c.Context(), 0, o.limit)
	if err != nil {
		return a.engine().Advised(err)
	}
	return a.show(o.json, actList{1, append([]store.Act{}, acts...)}, func() error {
		if len(acts) == 0 {
			_, err := fmt.Fprintln(a.stdout, "Nothing was changed yet.")
			return err
		}
		var rows [][]string
		for _, act := range acts {
			status := ""
			if act.Status != 0 {
				status = strconv.Itoa(act.Status)
			}
			rows = append(rows, []string{act.Time.Local().Format("2006-01-02 15:04:05"), report.Clean(act.Who),
				report.Clean(act.From), report.Clean(act.What), status})
		}
		o := textOptions(a.stdout)
		columns := []report.ListColumn{{Title: "WHEN"}, {Title: "WHO"}, {Title: "FROM"}, {Title: "WHAT"},
			{Title: "ANSWER", Right: true}}
		return report.WriteList(a.stdout, columns, rows, o.Width, o.Color)
	})
}

// actList is the JSON of audit.
type actList struct {
	Version int         `json:"version"`
	Acts    []store.Act `json:"acts"`
}
