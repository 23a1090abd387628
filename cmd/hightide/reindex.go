package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/event"
	"hightide/internal/report"
)

// reindexOptions of reindex.
type reindexOptions struct{ json string }

func reindexCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "reindex",
		Short: "Rebuild the index of runs from their recordings",
		Long: `Rebuild the index of runs (index.sqlite in the data directory) from the recordings. The index is only
there to be fast; it is repaired by itself where it is missing or old.

Exit codes: 0 fine, 2 wrong usage, 4 the index cannot be written.`,
		Example: "  hightide reindex",
		Args:    cobra.NoArgs,
	}, &reindexOptions{})
}

func (o *reindexOptions) AddFlags(flags *pflag.FlagSet) { jsonFlag(flags, &o.json) }

func (o *reindexOptions) run(a *app, c *cobra.Command, _ []string) error {
	var events event.Sink
	if o.json == "" && terminal(a.stdout) != nil {
		events = func(e event.Event) {
			if p, ok := e.(event.Progress); ok {
				fmt.Fprintf(a.stderr, "\rreading recordings: %d of %d", p.Done, p.All)
			}
		}
	}
	count, err := a.engine().Reindex(c.Context(), events)
	if events != nil {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	return a.show(o.json, map[string]int{"version": 1, "runs": count}, func() error {
		_, err := fmt.Fprintf(a.stdout, "%s in the index\n", report.Counted(int64(count), "run"))
		return err
	})
}
