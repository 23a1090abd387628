package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func rmCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Delete runs",
		Long: `Delete runs with everything that belongs to them. RUN is an id, the unique beginning of one, a name
(the newest run of that name) or "last". Nothing is deleted if one of them is not found.`,
		Example: `  hightide rm last
  hightide rm 06k3a 06k3b`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removed, err := a.engine().Remove(c.Context(), args...)
			if asJSON {
				if err != nil {
					return err
				}
				return a.printJSON(runList{1, append([]engine.Run{}, removed...)})
			}
			for _, run := range removed {
				fmt.Fprintf(a.stdout, "deleted %s, %v\n", describe(run), mem.Bytes(run.Size))
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was deleted as JSON")
	return c
}

// describe names a run in a sentence.
func describe(run engine.Run) string {
	if run.Name != "" {
		return fmt.Sprintf("%s (%s)", run.ID, report.Clean(run.Name))
	}
	return run.ID
}
