package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// rmOptions of rm.
type rmOptions struct{ json string }

func rmCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "rm RUN...",
		Short: "Delete runs",
		Long: `Delete runs with everything that belongs to them. RUN is an id, the unique beginning of one, a name
(the newest run of that name) or "last". Nothing is deleted if one of them is not found.

Exit codes: 0 fine, 2 wrong usage, 3 no such run.`,
		Example: `  hightide rm last
  hightide rm 06k3a 06k3b`,
		Args: cobra.MinimumNArgs(1),
	}, &rmOptions{})
}

func (o *rmOptions) AddFlags(flags *pflag.FlagSet) { jsonFlag(flags, &o.json) }

func (o *rmOptions) run(a *app, c *cobra.Command, args []string) error {
	removed, err := a.engine().Remove(c.Context(), args...)
	if err != nil && o.json != "" {
		return err
	}
	return a.show(o.json, runsJSON(removed), func() error {
		for _, run := range removed {
			fmt.Fprintf(a.stdout, "deleted %s, %v\n", describe(run), mem.Bytes(run.Size))
		}
		return err
	})
}

// describe names a run in a sentence.
func describe(run store.Run) string {
	if run.Name != "" {
		return fmt.Sprintf("%s (%s)", run.ID, report.Clean(run.Name))
	}
	return run.ID
}
