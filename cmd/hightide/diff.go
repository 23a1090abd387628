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

A and B are snapshots, compressed or not, or runs that recorded one; one of them may be - for stdin. The page
of --html compares runs without a snapshot too: what their peaks were made of, and their curves.

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
	if onlyPage := o.asked() && o.json == "" && o.markdown == ""; err != nil && !onlyPage {
		return err
	}
	if o.asked() {
		return o.page(a, c, args, d, err)
	}
	table := d.Table()
	_, err = fmt.Fprintf(a.stdout, "%s  %s\n", table.Text(textOptions(a.stdout)), table.Note)
	return err
}

// page writes what was asked for. Where the device cannot be compared, the page has what both recorded besides.
func (o *diffOptions) page(a *app, c *cobra.Command, args []string, d *analyze.Difference, why error) error {
	var difference *report.Report
	if d != nil {
		difference = d.Report(args[0], args[1])
	}
	if o.html == "" && !o.open {
		return o.write(a, difference, "diff", func() ([]byte, error) { return report.Line(d) })
	}
	pair, err := a.engine().Pair(c.Context(), args[0], args[1])
	switch {
	case err != nil && why != nil:
		return why // of the two it says more
	case err != nil: // as one that comes from stdin, which is read once
		return o.write(a, difference, "diff", func() ([]byte, error) { return report.Line(d) })
	}
	if pair.Device, pair.By = difference, o.by; why != nil {
		pair.Why = why.Error()
	}
	return o.writePage(a, difference, "diff", func() ([]byte, error) { return report.Line(d) }, pair.HTML)
}
