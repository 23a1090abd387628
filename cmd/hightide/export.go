package main

import (
	"fmt"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/format"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exportOptions of export.
type exportOptions struct {
	engine.ExportOptions
	chosen map[string]*bool // formats
}

func exportCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
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
	}, &exportOptions{chosen: map[string]*bool{}})
}

func (o *exportOptions) AddFlags(flags *pflag.FlagSet) {
	for _, f := range format.Written() {
		o.chosen[f.Name] = flags.Bool(f.Name, false, f.Writes)
	}
	outputFlag(flags, &o.Out, "`file`, or folder/ for several tables; - or none: standard output")
	flags.StringArrayVar(&o.Tables, "table", nil, "`table` to write; may be given several times")
	flags.StringVar(&o.Measure, "measure", "",
		"`what` graphs by call stack show: bytes (at the peak, the default), bytes-time, count, churn, blocks")
	flags.Func("device", "of a snapshot, only this device `N`", device(&o.Device))
	flags.Func("filter", "of a snapshot, only blocks with a frame (file:function) that matches this `regex`",
		frames(&o.Filter))
	flags.BoolVar(&o.Redact, "redact", false, "leave out paths, host, arguments, environment and allocator snapshots")
}

func (o *exportOptions) run(a *app, c *cobra.Command, args []string) error {
	binary := false
	var chosen, all []string
	for _, f := range format.Written() {
		all = append(all, "--"+f.Name)
		if *o.chosen[f.Name] {
			chosen, binary = append(chosen, f.Name), f.Binary
		}
	}
	if len(chosen) != 1 {
		return fail.Usage("for example: hightide export last --csv", "choose one of %s", strings.Join(all, ", "))
	}
	if len(args) == 2 {
		if o.Out != "" {
			return fail.Usage("name it once", "the output is named twice: %s and %s", o.Out, args[1])
		}
		o.Out = args[1]
	}
	o.Format, o.Stdout = chosen[0], a.stdout
	if binary && terminal(a.stdout) != nil && (o.Out == "" || o.Out == "-") {
		return fail.Usage("name a file: -o run", "%s is not for a terminal", o.Format)
	}
	files, err := a.engine().Export(c.Context(), args[0], o.ExportOptions)
	for _, file := range files {
		fmt.Fprintln(a.stderr, file)
	}
	return err
}

func exportHelp() string {
	var b strings.Builder
	b.WriteString(`Write a run for other tools, or to give away. Units are in the names of columns or in a column "unit";
times are nanoseconds since the run began; what was not observed is empty.

CSV, Parquet and Arrow hold one table: the samples, unless --table names another. Into a folder (-o FOLDER/)
go all of them. Tables:
`)
	for _, t := range format.TablesOf(format.Runs) {
		fmt.Fprintf(&b, "  %-10s %s\n", t.Name, t.Short)
	}
	b.WriteString("Of an allocator snapshot:\n")
	for _, t := range format.TablesOf(format.Snapshots) {
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
a memory profile; compressed or not; - for stdin. RUN is an id, the unique beginning of one, a name,
"last", or a recording's file.

Exit codes: 0 fine, 2 wrong usage, 3 no such run or file, or nothing in it to export, 4 no room for the output.`)
	return b.String()
}
