package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/analyze"
	"hightide/internal/engine"
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
		Short: "Explain why the peak of two snapshots or runs differs",
		Long: `Explain why the peak of two snapshots or runs differs. A and B are snapshots, compressed or not, or runs; one
of them may be - for stdin.

Where both have a snapshot, the blocks alive at both peaks are matched by the functions that allocated them, so
lines may move; the rows add up to the difference, to the byte. Runs without one are compared by their peaks, by
what the processes held at them, and by the functions that held the heap: measured or sampled, with the error.

Exit codes: 0 fine, 2 wrong usage, 3 a file that cannot be read or compared.`,
		Example: `  hightide diff before.pickle after.pickle
  hightide diff before.pickle after.pickle --html change.html
  hightide diff baseline last
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
	if d != nil {
		return o.show(a, c, args, d)
	}
	pair, other := a.engine().Pair(c.Context(), args[0], args[1])
	switch {
	case other != nil && errors.Is(err, engine.ErrNoSnapshot):
		return other // one of them is nothing that can be read
	case other != nil:
		return err
	}
	pair.Why = err.Error()
	if r := o.compare(pair, c, err); r != nil {
		return o.compared(a, r, pair)
	}
	if o.json != "" || o.markdown != "" || !o.asked() {
		return err
	}
	return o.writePage(a, nil, "diff", nil, pair.HTML)
}

// show writes the difference of two devices' blocks. The page has what both recorded besides.
func (o *diffOptions) show(a *app, c *cobra.Command, args []string, d *analyze.Difference) error {
	if !o.asked() {
		table := d.Table()
		_, err := fmt.Fprintf(a.stdout, "%s  %s\n", table.Text(textOptions(a.stdout)), table.Note)
		return err
	}
	r := d.Report(args[0], args[1])
	page := r.HTML
	if o.html != "" || o.open {
		if pair, err := a.engine().Pair(c.Context(), args[0], args[1]); err == nil { // not of one that comes from stdin, which is read once
			pair.Device, pair.By = r, o.by
			page = pair.HTML
		}
	}
	return o.writePage(a, r, "diff", func() ([]byte, error) { return report.Line(d) }, page)
}

// compare is what two runs without blocks to match can be compared by; nil: nothing, or the blocks were asked for.
func (o *diffOptions) compare(pair *report.Pair, c *cobra.Command, why error) *report.Report {
	if !errors.Is(why, engine.ErrNoSnapshot) || c.Flags().Changed("by") {
		return nil
	}
	return analyze.Compare(pair)
}

// compared writes that.
func (o *diffOptions) compared(a *app, r *report.Report, pair *report.Pair) error {
	r.AddNote("Blocks of a device are not compared: " + pair.Why + ".")
	if o.asked() {
		return o.writePage(a, r, "diff", r.JSON, pair.HTML)
	}
	_, err := fmt.Fprint(a.stdout, r.Text(textOptions(a.stdout)))
	return err
}
