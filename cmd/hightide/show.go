package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// showOptions of show.
type showOptions struct {
	brief bool
	json  string
}

func showCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "show [RUN]",
		Short: "Show the report of a run in the terminal",
		Long: `Show the report of a run in the terminal: verdict, findings with their lines, the picture, tables.

RUN is an id, a unique beginning of one, a name (the newest run of it), "last", or the path of a
recording. Without RUN: last.

Exit codes: 0 fine, 2 wrong usage, 3 no such run or not a recording.`,
		Example: `  hightide show last
  hightide show bigger-batch
  hightide show --brief ./run.hightide`,
		Args: cobra.MaximumNArgs(1),
	}, &showOptions{})
}

func (o *showOptions) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.brief, "brief", false, "verdict, findings and picture only")
	fileFlag(flags, &o.json, "json", "print the report as JSON, as report --json does")
}

func (o *showOptions) run(a *app, c *cobra.Command, args []string) error {
	r, _, err := a.engine().Report(c.Context(), runRef(args))
	if err != nil {
		return err
	}
	if o.json != "" {
		return a.outputOf(o.json, r.JSON)
	}
	options := textOptions(a.stdout)
	options.Brief = o.brief
	if _, err := fmt.Fprint(a.stdout, r.Text(options)); err != nil {
		return err
	}
	return a.showComments(c.Context(), r.Run.ID)
}

// runRef is the run that the arguments name.
func runRef(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}
