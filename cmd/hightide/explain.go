package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/analyze"
	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

type explainFlags struct {
	reportFlags
	o             analyze.ExplainOptions
	device        int64
	filter, rules string
	events        string
}

func explainCommand(a *app) *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain FILE|RUN… [--by WHAT] [--at WHEN] [--html FILE | --json[=FILE] | --markdown[=FILE]]",
		Short: "Say who holds the GPU's memory in an allocator snapshot",
		Long: `Say who holds the GPU's memory in an allocator snapshot: the peak to the byte, the blocks alive then,
what they are for, what grows from step to step, what comes and goes, what is cached and cannot be
used, and why memory ran out, with the settings that avoid it, verified by replay.

FILE is a snapshot of PyTorch (torch.cuda.memory._dump_snapshot), compressed or not, several of them
for several ranks, a recording, an out-of-memory message, a memory profile of another tool, smaps of
Linux, or - for stdin. A trace that begins in the
middle is played backwards from its final state.

--by groups blocks by ` + strings.Join(analyze.Groupings, ", ") + `.

Exit codes: 0 fine, 2 wrong usage, 3 a file that cannot be read.`,
		Example: `  hightide explain oom.pickle
  hightide explain snapshot.pickle.gz --by category --html report.html
  hightide explain rank0.pickle rank1.pickle --at end --top 20
  hightide explain snapshot.pickle --range 1000:2000
  hightide explain snapshot.pickle --flame churn --filter attention
  hightide explain huge.pickle.zst --brief
  hightide explain last                    # the snapshots of a run, with what it recorded
  hightide explain snapshot.pickle --json | jq '.peak'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(a, c, args) },
	}
	flags := c.Flags()
	flags.Int64Var(&f.device, "device", 0, "only this device `N`")
	flags.StringVar(&f.events, "range", "", "look for the peak among the events `a:b` only, both included; a: and :b are ranges too")
	flags.StringVar(&f.o.At, "at", "peak", "`moment`: peak, end, \"event N\", or a time in ns of the wall clock")
	flags.StringVar(&f.o.By, "by", "site", "group `what`: "+strings.Join(analyze.Groupings, ", "))
	flags.IntVar(&f.o.Top, "top", 0, "list the `N` largest groups; 0: all")
	flags.StringVar(&f.filter, "filter", "", "only blocks with a frame (file:function) that matches this `regex`")
	flags.StringVar(&f.rules, "rules", "", "more category rules from this `file`, before the built-in ones")
	flags.StringVar(&f.o.Flame, "flame", "", "also the flame graph, by `measure`: "+strings.Join(report.Flames, ", "))
	flags.BoolVar(&f.o.Brief, "brief", false, "only the peak and who holds it: the shortest way into a file of gigabytes")
	flags.StringVar(&f.html, "html", "", "write one HTML `file`")
	flags.StringVar(&f.json, "json", "", "print JSON; with =`FILE` into a file")
	flags.StringVar(&f.markdown, "markdown", "", "print Markdown; with =`FILE` into a file")
	flags.Lookup("json").NoOptDefVal = jsonToStdout
	flags.Lookup("markdown").NoOptDefVal = jsonToStdout
	return c
}

func (f *explainFlags) run(a *app, c *cobra.Command, args []string) error {
	if err := f.options(c); err != nil {
		return err
	}
	f.o.Pictures = f.html != "" || f.json != ""
	r, err := a.engine().Explain(c.Context(), args, f.o)
	var said engine.Message
	if errors.As(err, &said) && len(args) == 1 && f.json == "" && f.html == "" && f.markdown == "" {
		_, err := fmt.Fprintln(a.stdout, strings.Join(said, "\n"))
		return err
	}
	if err != nil {
		return err
	}
	if f.json != "" {
		text, err := r.ExplainJSON()
		if err != nil {
			return engine.InputError("without --json there are tables; hightide report RUN --json has what was recorded", "%w", err)
		}
		if err := a.output(f.json, text); err != nil {
			return err
		}
	}
	if f.markdown != "" {
		if err := a.output(f.markdown, []byte(r.Markdown())); err != nil {
			return err
		}
	}
	if f.json == "" && f.markdown == "" && f.html == "" {
		_, err := fmt.Fprint(a.stdout, r.Text(textOptions(a.stdout)))
		return err
	}
	return f.writeHTML(a, r)
}

func (f *explainFlags) options(c *cobra.Command) (err error) {
	if c.Flags().Changed("device") {
		f.o.Device = mem.Some(f.device)
	}
	if f.events != "" {
		among, err := analyze.ParseRange(f.events)
		if err != nil {
			return engine.UsageError("hightide explain FILE --range 1000:2000", "--range: %w", err)
		}
		f.o.Range = &among
	}
	if f.filter != "" {
		if f.o.Filter, err = regexp.Compile(f.filter); err != nil {
			return engine.UsageError("a regular expression as of RE2", "--filter: %w", err)
		}
	}
	if !slices.Contains(analyze.Groupings, f.o.By) {
		return engine.ChoiceError("--by", f.o.By, analyze.Groupings)
	}
	if err := analyze.CheckMoment(f.o.At); err != nil {
		return engine.UsageError("hightide explain FILE --at \"event 500\"", "--at: %w", err)
	}
	if f.o.Top < 0 {
		return engine.UsageError("--top 0 lists all", "--top %d is less than 0", f.o.Top)
	}
	if f.device < 0 {
		return engine.UsageError("devices are numbered from 0", "there is no device %d", f.device)
	}
	if f.o.Flame != "" && !slices.Contains(report.Flames, f.o.Flame) {
		return engine.ChoiceError("--flame", f.o.Flame, report.Flames)
	}
	f.o.Rules, err = engine.Rules(f.rules)
	return err
}
