package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/report"
)

// reindexOptions of reindex.
type reindexOptions struct {
	findings bool
	json     string
}

func reindexCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "reindex",
		Short: "Rebuild the index of runs from their recordings",
		Long: `Rebuild the index of runs (index.sqlite in the data directory) from the recordings. The index is only
there to be fast; it is repaired by itself where it is missing or old.

--findings makes the report of each run that hightide ls --finding and --line cannot search yet, and keeps in
its recording what was found. How many findings the run has is then as this report says.

Exit codes: 0 fine, 2 wrong usage, 4 the index cannot be written.`,
		Example: "  hightide reindex\n  hightide reindex --findings",
		Args:    cobra.NoArgs,
	}, &reindexOptions{})
}

func (o *reindexOptions) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.findings, "findings", false, "make the findings of runs that cannot be searched for by them")
	jsonFlag(flags, &o.json)
}

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
	answer := struct {
		Version int `json:"version"`
		Runs    int `json:"runs"`
		*engine.Refound
	}{Version: 1, Runs: count}
	if o.findings {
		did, err := a.engine().FindAgain(c.Context(), events)
		if events != nil {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
		if err != nil {
			return err
		}
		answer.Refound = &did
	}
	return a.show(o.json, answer, func() error {
		text := report.Counted(int64(count), "run") + " in the index"
		if did := answer.Refound; did != nil {
			text += fmt.Sprintf(", findings of %d made", did.Runs)
			if n := len(did.Failed); n > 0 {
				text += fmt.Sprintf(", of %d not (%s): %s", n, strings.Join(did.Failed[:min(n, 5)], ", "), did.Reason)
			}
		}
		_, err := fmt.Fprintln(a.stdout, text)
		return err
	})
}
