package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"hightide/internal/analyze"
	"hightide/internal/engine"
	"hightide/internal/report"
)

func diffCommand(a *app) *cobra.Command {
	var by, json string
	var f reportFlags
	c := &cobra.Command{
		Use:   "diff A B [--by site|module|category] [--html FILE | --json[=FILE]]",
		Short: "Explain to the byte why the peak of two snapshots or runs differs",
		Long: `Explain to the byte why the peak of two snapshots or runs differs. The blocks alive at both peaks are
matched by the functions that allocated them, so lines may move; the rows add up to the difference.

A and B are snapshots, compressed or not, or runs that recorded one; one of them may be - for stdin.

Exit codes: 0 fine, 2 wrong usage, 3 a file that cannot be read or compared.`,
		Example: `  hightide diff before.pickle after.pickle
  hightide diff before.pickle after.pickle --html change.html
  hightide diff baseline last --by category --json`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(analyze.Differences, by) {
				return engine.ChoiceError("--by", by, analyze.Differences)
			}
			d, err := a.engine().Diff(c.Context(), args[0], args[1], by)
			if err != nil {
				return err
			}
			if json != "" {
				text, err := report.Line(d)
				if err != nil {
					return err
				}
				return a.output(json, text)
			}
			if f.html != "" {
				return f.writeHTML(a, d.Report(args[0], args[1]))
			}
			table := d.Table()
			_, err = fmt.Fprintf(a.stdout, "%s  %s\n", table.Text(textOptions(a.stdout)), table.Note)
			return err
		},
	}
	c.Flags().StringVar(&by, "by", "site", "match by `what`: site, module, category")
	c.Flags().StringVar(&f.html, "html", "", "write one HTML `file`")
	c.Flags().BoolVar(&f.open, "open", false, "open the HTML file in a browser")
	c.Flags().StringVar(&json, "json", "", "print JSON; with =`FILE` into a file")
	c.Flags().Lookup("json").NoOptDefVal = jsonToStdout
	return c
}
