package main

import (
	"fmt"
	"strings"

	"hightide/internal/engine"

	"github.com/spf13/cobra"
)

func exportCommand(a *app) *cobra.Command {
	var o engine.ExportOptions
	chosen := map[string]*bool{}
	c := &cobra.Command{
		Use:   "export RUN (--csv | --json | --parquet | --recording)",
		Short: "Write a run for other tools, or to give away",
		Long:  exportHelp(),
		Example: `  hightide export last --csv > samples.csv
  hightide export last --csv --table steps -o steps.csv
  hightide export baseline --parquet -o baseline/
  hightide export last --json | jq '.series[] | select(.name == "host.rss")'
  hightide export last --recording --redact -o mail-me.hightide`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var formats []engine.ExportName
			for _, f := range engine.ExportFormats() {
				if *chosen[f.Name] {
					formats = append(formats, f)
				}
			}
			if len(formats) != 1 {
				return engine.UsageError("for example: hightide export last --csv", "choose one of %s", formatFlags())
			}
			o.Format, o.Stdout = formats[0].Name, a.stdout
			if _, terminal := a.terminalWidth(); terminal && formats[0].Binary && (o.Out == "" || o.Out == "-") {
				return engine.UsageError("name a file: -o run", "%s is not for a terminal", o.Format)
			}
			files, err := a.engine().Export(args[0], o)
			for _, file := range files {
				fmt.Fprintln(a.stderr, file)
			}
			return err
		},
	}
	for _, f := range engine.ExportFormats() {
		chosen[f.Name] = c.Flags().Bool(f.Name, false, f.Short)
	}
	c.Flags().StringVarP(&o.Out, "output", "o", "", "file, or folder for several tables; - or none: standard output")
	c.Flags().StringArrayVar(&o.Tables, "table", nil, "`table` to write; may be given several times")
	c.Flags().BoolVar(&o.Redact, "redact", false, "leave out paths, host, arguments, environment and allocator snapshots")
	return c
}

func formatFlags() string {
	var flags []string
	for _, f := range engine.ExportFormats() {
		flags = append(flags, "--"+f.Name)
	}
	return strings.Join(flags, ", ")
}

func exportHelp() string {
	var b strings.Builder
	b.WriteString(`Write a run for other tools, or to give away. Units are in the names of columns or in a column "unit";
times are nanoseconds since the run began; what was not observed is empty.

CSV and Parquet hold one table: the samples, unless --table names another. Into a folder (-o FOLDER/)
go all of them. Tables:
`)
	for _, t := range engine.ExportTables() {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.Short)
	}
	b.WriteString(`
RUN is an id, the unique beginning of one, a name, "last", or a recording's file.`)
	return b.String()
}
