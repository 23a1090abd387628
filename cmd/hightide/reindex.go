package main

import (
	"fmt"

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
			var progress func(done, total int)
			if !asJSON {
				if _, terminal := a.terminalWidth(); terminal {
					progress = func(done, total int) { fmt.Fprintf(a.stderr, "\rreading recordings: %d of %d", done, total) }
				}
			}
			count, err := a.engine().Reindex(c.Context(), progress)
			if progress != nil {
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
