package main

import (
	"fmt"
	"regexp"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/mem"

	"github.com/spf13/cobra"
)

func exportCommand(a *app) *cobra.Command {
	var o engine.ExportOptions
	var device int64
	var filter string
	chosen := map[string]*bool{}
	c := &cobra.Command{
		Use:   "export RUN|FILE --FORMAT [OUT]",
		Short: "Write a run or a snapshot for other tools, or to give away",
		Long:  exportHelp(),
		Example: `  hightide export last --csv > samples.csv
  hightide export last --csv --table steps -o steps.csv
  hightide export baseline --parquet -o baseline/
  hightide export last --json | jq '.series[] | select(.name == "host.rss")'
  hightide export last --recording --redact -o mail-me.hightide
  hightide export oom.pickle --pprof peak.pb.gz && go tool pprof -http : peak.pb.gz
  hightide export oom.pickle --folded churn.folded --measure churn
  hightide export oom.pickle.zst --speedscope peak.json --device 1
  hightide export last --perfetto timeline.json
  hightide export oom.pickle --torch-pickle attention.pickle --filter attention
  hightide export trace.pickle --parquet tables/`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			var formats []engine.ExportName
			for _, f := range engine.ExportFormats() {
				if *chosen[f.Name] {
					formats = append(formats, f)
				}
			}
			if len(formats) != 1 {
				return engine.UsageError("for example: hightide export last --csv", "choose one of %s", formatFlags())
			}
			if len(args) == 2 {
				if o.Out != "" {
					return engine.UsageError("name it once", "the output is named twice: %s and %s", o.Out, args[1])
				}
				o.Out = args[1]
			}
			if c.Flags().Changed("device") {
				o.Device = mem.Some(device)
			}
			if filter != "" {
				var err error
				if o.Filter, err = regexp.Compile(filter); err != nil {
					return engine.UsageError("a regular expression as of RE2", "--filter: %w", err)
				}
			}
			o.Format, o.Stdout = formats[0].Name, a.stdout
			if _, terminal := a.terminalWidth(); terminal && formats[0].Binary && (o.Out == "" || o.Out == "-") {
				return engine.UsageError("name a file: -o run", "%s is not for a terminal", o.Format)
			}
			files, err := a.engine().Export(c.Context(), args[0], o)
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
	c.Flags().StringVar(&o.Measure, "measure", "", "`what` graphs by call stack show: bytes (at the peak, the default), bytes-time, count, churn, blocks")
	c.Flags().Int64Var(&device, "device", 0, "of a snapshot, only this device `N`")
	c.Flags().StringVar(&filter, "filter", "", "of a snapshot, only blocks with a frame (file:function) that matches this `regex`")
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
	runs, snapshots := engine.ExportTables()
	for _, t := range runs {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.Short)
	}
	b.WriteString("Of an allocator snapshot:\n")
	for _, t := range snapshots {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.Short)
	}
	b.WriteString(`
pprof, speedscope, folded and dot show memory by call stack: of a snapshot the device's blocks, as large
as hightide explain says, of a run the process's heap at its peak, as sampled. --measure chooses, of snapshots:
  bytes       held at the peak
  bytes-time  bytes × time, as the average held over the trace
  count       allocations
  churn       bytes allocated and freed again
  blocks      blocks held at the peak
pprof and speedscope hold all of them and show this one first.

FILE is anything that hightide reads: a snapshot of PyTorch (pickle or JSON), a profiler's trace,
a memory profile; compressed or not; - for stdin. RUN is an id, the unique beginning of one, a name, "last", or a recording's file.`)
	return b.String()
}
