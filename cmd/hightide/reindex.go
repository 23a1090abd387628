package main

import (
	"fmt"

	"hightide/internal/event"

	"github.com/spf13/cobra"

	"hightide/internal/report"
)

func reindexCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "reindex",
		Short: "Rebuild the index of runs from their recordings",
		Long: `Rebuild the index of runs (index.sqlite in the data directory) from the recordings. The index is only
there to be fast; it is repaired by itself where it is missing or old.`,
		Example: "  hightide reindex",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var events event.Sink
			if !asJSON {
				if _, terminal := a.terminalWidth(); terminal {
					events = func(e event.Event) {
						if p, ok := e.(event.Progress); ok {
							fmt.Fprintf(a.stderr, "\rreading recordings: %d of %d", p.Done, p.All)
						}
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
			if asJSON {
				return a.printJSON(map[string]int{"version": 1, "runs": count})
			}
			_, err = fmt.Fprintf(a.stdout, "%s in the index\n", report.Counted(int64(count), "run"))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
