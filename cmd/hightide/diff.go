package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/analyze/trace"
	"hightide/internal/engine"
	"hightide/internal/options"
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
  hightide diff before.pickle after.pickle --by category --json`,
		Args: cobra.ExactArgs(2),
	}, &diffOptions{})
}

func (o *diffOptions) AddFlags(flags *pflag.FlagSet) {
	o.reportOptions.AddFlags(flags)
	addSettings(flags, options.Setting{Name: "by", To: &o.by, Default: "site", Among: trace.Differences,
		Help: "match by `what`: site, module, category"})
}

func (o *diffOptions) run(a *app, c *cobra.Command, args []string) error {
	by := o.by
	if !c.Flags().Changed("by") {
		by = ""
	}
	found, err := a.engine().Differ(c.Context(), args[0], args[1], by)
	compared, pair := found.Report, found.Pair
	switch {
	case found.Blocks != nil:
		return o.show(a, c, args, found.Blocks)
	case compared != nil && !o.asked():
		_, err := fmt.Fprint(a.stdout, compared.Text(textOptions(a.stdout)))
		return err
	case compared == nil && (o.json != "" || o.markdown != "" || !o.asked()):
		return err
	case pair == nil:
		var unread error
		if pair, unread = a.engine().Pair(c.Context(), args[0], args[1]); unread != nil {
			return err
		}
	}
	pair.Why = "a side " + engine.ErrNoSnapshot.Error()
	if err != nil {
		pair.Why = err.Error()
	}
	return o.writePage(a, compared, "diff", func() ([]byte, error) { return compared.JSON() }, pair.HTML)
}

// show writes the difference of two devices' blocks. The page has what both recorded besides.
func (o *diffOptions) show(a *app, c *cobra.Command, args []string, d *trace.Difference) error {
	if !o.asked() {
		table := d.Table()
		_, err := fmt.Fprintf(a.stdout, "%s  %s\n", table.Text(textOptions(a.stdout)), table.Note)
		return err
	}
	r := d.Report(args[0], args[1])
	page := r.HTML
	if o.html != "" || o.open {
		// not of one that comes from stdin, which is read once
		if pair, err := a.engine().Pair(c.Context(), args[0], args[1]); err == nil {
			pair.Device, pair.By = r, o.by
			page = pair.HTML
		}
	}
	return o.writePage(a, r, "diff", func() ([]byte, error) { return report.Line(d) }, page)
}
