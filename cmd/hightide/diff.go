package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/analyze"
	"hightide/internal/report"
)

// diffOptions of diff.
type diffOptions struct {
	reportOptions
	by string
}

func diffCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "diff A B [--by site|module|category] [--html FILE | --json[=FILE] | --markdown[=FILE]]",
		Short: "Explain to the byte why the peak of two snapshots or runs differs",
		Long: `Explain to the byte why the peak of two snapshots or runs differs. The blocks alive at both peaks are
matched by the functions that allocated them, so lines may move; the rows add up to the difference.

A and B are snapshots, compressed or not, or runs that recorded one; one of them may be - for stdin.

Exit codes: 0 fine, 2 wrong usage, 3 a file that cannot be read or compared.`,
		Example: `  hightide diff before.pickle after.pickle
  hightide diff before.pickle after.pickle --html change.html
  hightide diff baseline last --by category --json`,
		Args: cobra.ExactArgs(2),
	}, &diffOptions{})
}

func (o *diffOptions) AddFlags(flags *pflag.FlagSet) {
	o.reportOptions.AddFlags(flags)
	flags.Var(choice(&o.by, "--by", "site", analyze.Differences), "by", "match by `what`: site, module, category")
}

func (o *diffOptions) run(a *app, c *cobra.Command, args []string) error {
	d, err := a.engine().Diff(c.Context(), args[0], args[1], o.by)
	if err != nil {
		return err
	}
	if o.asked() {
		return o.write(a, d.Report(args[0], args[1]), "diff", func() ([]byte, error) { return report.Line(d) })
	}
	table := d.Table()
	_, err = fmt.Fprintf(a.stdout, "%s  %s\n", table.Text(textOptions(a.stdout)), table.Note)
	return err
}
