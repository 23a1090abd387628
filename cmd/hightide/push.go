package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/report"
)

// pushOptions of push.
type pushOptions struct{ json string }

func pushCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "push [RUN...]",
		Short: "Send runs of this machine to a team's store",
		Long: `Send runs of the data directory to the store of a team (--store, or $HIGHTIDE_STORE), with their reports and
snapshots. They stay here too. What waits to be sent, as the store was away, goes first; without RUN it goes
alone. What was cut off goes on where it ended.

Exit codes: 0 sent, or there already; 2 wrong usage, 3 no such run, 4 the store cannot be used.`,
		Example: `  hightide push last
  hightide push baseline --store postgres://hightide@db/hightide --objects s3://our-runs
  hightide push`,
	}, &pushOptions{})
}

func (o *pushOptions) AddFlags(flags *pflag.FlagSet) { jsonFlag(flags, &o.json) }

func (o *pushOptions) run(a *app, c *cobra.Command, args []string) error {
	all, failed := a.engine().Push(c.Context(), args)
	if failed != nil && len(all) == 0 {
		return failed
	}
	err := a.show(o.json, pushedList{1, all}, func() error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(a.stdout, "Nothing waits to be sent. A run of this machine: hightide push RUN")
			return err
		}
		for _, p := range all {
			what := "sent"
			if p.There {
				what = "there already"
			}
			name := strings.TrimSpace(p.ID + "  " + report.Clean(p.Name))
			if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", name, what); err != nil {
				return err
			}
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// pushedList is the JSON of push.
type pushedList struct {
	Version int             `json:"version"`
	Runs    []engine.Pushed `json:"runs"`
}
