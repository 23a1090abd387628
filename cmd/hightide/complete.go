package main

import (
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/store"
)

// completed is how many runs a shell is offered.
const completed = 50

// completeRuns offers a shell the runs, by name and id, newest first; it offers files besides.
func (a *app) completeRuns(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	runs, err := a.engine().Runs(c.Context(), store.Filter{Limit: completed})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	words := []string{"last"}
	for _, r := range runs {
		words = append(words, r.ID)
		if r.Name != "" {
			words = append(words, r.Name)
		}
	}
	var fitting []string
	for _, w := range words {
		if strings.HasPrefix(w, begun) {
			fitting = append(fitting, w)
		}
	}
	return fitting, cobra.ShellCompDirectiveDefault
}
