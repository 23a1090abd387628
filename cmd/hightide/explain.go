package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/analyze/trace"
	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/options"
	"hightide/internal/report"
)

// explainOptions of explain.
type explainOptions struct {
	trace.Options
	reportOptions
}

func explainCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "explain FILE|RUN… [--by WHAT] [--at WHEN] [--html FILE | --json[=FILE] | --markdown[=FILE]]",
		Short: "Say who holds the GPU's memory in an allocator snapshot",
		Long: `Say who holds the GPU's memory in an allocator snapshot: the peak to the byte, the blocks alive then, and
what they are for. Further: what grows from step to step, what comes and goes, and what is cached and
cannot be used. Where memory ran out: why, and the settings that avoid it, verified by replay.

FILE is a snapshot of PyTorch (torch.cuda.memory._dump_snapshot), compressed or not; several of them
are those of several ranks. It may also be a recording, a text with an out-of-memory message, a memory
profile of another tool, smaps of Linux, or - for stdin. Of a model (onnx, tflite, gguf, safetensors,
pt2, pte) it says the tensors. Where a trace begins in the middle, its beginning is worked out from its end.

--by groups blocks by ` + strings.Join(trace.Groupings, ", ") + `.

Exit codes: 0 fine, 2 wrong usage, 3 a file that cannot be read.`,
		Example: `  hightide explain oom.pickle
  hightide explain snapshot.pickle.gz --by category --html report.html
  hightide explain rank0.pickle rank1.pickle --at end --top 20
  hightide explain snapshot.pickle --range 1000:2000
  hightide explain snapshot.pickle --flame churn --filter attention
  hightide explain huge.pickle.zst --brief
  hightide explain XLA_DUMP_FOLDER --batch 32
  hightide explain last                    # the snapshots of a run, with what it recorded
  hightide explain snapshot.pickle --json | jq '.peak'`,
		Args: cobra.MinimumNArgs(1),
	}, &explainOptions{})
}

func (o *explainOptions) AddFlags(flags *pflag.FlagSet) {
	o.reportOptions.AddFlags(flags)
	flags.Func("device", "only this device `N`, or host: pinned host memory", deviceOrHost(&o.Device))
	flags.Func("range", "look for the peak among the events `a:b` only, both included; a: and :b are ranges too",
		o.setRange)
	addSettings(flags,
		options.Setting{Name: "at", To: &o.At, Default: "peak", Check: checkMoment,
			Help: "`moment`: peak, end, \"event N\", or a time in ns of the wall clock"},
		options.Setting{Name: "by", To: &o.By, Default: "site", Among: trace.Groupings,
			Help: "group `what`: " + strings.Join(trace.Groupings, ", ")},
		options.Setting{Name: "flame", To: &o.Flame, Among: report.Flames,
			Help: "also the flame graph, by `measure`: " + strings.Join(report.Flames, ", ")})
	flags.IntVar(&o.Top, "top", 0, "list the `N` largest groups; 0: all")
	flags.Int64Var(&o.Batch, "batch", 0,
		"the batch is `N`, for what a program of XLA would need with half of it; 0: guessed")
	flags.Func("filter", "only blocks with a frame (file:function) that matches this `regex`", frames(&o.Filter))
	flags.Func("rules", "more category rules from this `file`, before the built-in ones", o.addRules)
	flags.BoolVar(&o.Brief, "brief", false, "only the peak and who holds it: the fastest way through a file of gigabytes")
}

func checkMoment(at string) error {
	if err := trace.CheckMoment(at); err != nil {
		return fail.Usage("hightide explain FILE --at \"event 500\"", "--at: %w", err)
	}
	return nil
}

func (o *explainOptions) setRange(events string) error {
	among, err := trace.ParseRange(events)
	if err != nil {
		return fail.Usage("hightide explain FILE --range 1000:2000", "--range: %w", err)
	}
	o.Range = &among
	return nil
}

func (o *explainOptions) addRules(file string) (err error) {
	o.Rules, err = engine.Rules(file)
	return err
}

func (o *explainOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.Top < 0 {
		return fail.Usage("--top 0 lists all", "--top %d is less than 0", o.Top)
	}
	if o.Brief && o.Flame != "" {
		return fail.Usage("leave one of them out", "--brief makes no flame graph, as --flame asks for")
	}
	c.Flags().Visit(func(f *pflag.Flag) { o.Asked = append(o.Asked, f.Name) })
	o.Asked = slices.DeleteFunc(o.Asked, func(name string) bool { return !slices.Contains(trace.Flags, name) })
	o.Pictures = o.html != "" || o.json != ""
	r, err := a.engine().Explain(c.Context(), args, o.Options)
	var said engine.Message
	if errors.As(err, &said) && len(args) == 1 && o.html == "" && o.markdown == "" && !o.open {
		return o.message(a, said)
	}
	if err != nil {
		return err
	}
	if !o.asked() {
		_, err := fmt.Fprint(a.stdout, r.Text(textOptions(a.stdout)))
		return err
	}
	return o.write(a, r, "explain", r.ExplainJSON)
}

// message prints what an out-of-memory message says.
func (o *explainOptions) message(a *app, said engine.Message) error {
	if o.json != "" {
		return a.writeJSON(o.json, struct {
			Version int `json:"version"`
			engine.Message
		}{1, said})
	}
	_, err := fmt.Fprint(a.stdout, said.Text(textOptions(a.stdout)))
	return err
}
