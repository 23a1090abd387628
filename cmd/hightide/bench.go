package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/bench"
	"hightide/internal/executor"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// benchOptions of bench.
type benchOptions struct {
	bench.Options
	out                   benchOut
	dryRun, resume, quiet bool
}

func benchCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "bench [flags] FILE",
		Short: "Measure every combination of frameworks, models, batches, devices, and compare",
		Long: `Measure every combination of frameworks, models, batches, devices …, and compare with intervals.
FILE is YAML:

  axes:                              # their combinations are the cells
    framework: [pytorch, tensorflow] # also keras, jax
    model: [lenet, resnet18]         # also transformer6, or module:function
    batch: [16, 32, 64]
    mode: [train, inference]
    device: [cpu, "imagined:a10"]    # also cuda
  exclude:
    - {framework: tensorflow, device: "imagined:a10"}
  repeats: {least: 3, most: 10, figure: rss, within: 3%}
  timeout: 5m                        # of each trial

or, in place of the built-in models, any command with a {placeholder} for each axis:

  axes: {batch: [16, 32]}
  command: python train.py --batch-size {batch}

Each trial is a recorded run in a process of its own, in random order, and a line of "hightide ls".
Cells repeat until the interval of the figure is as narrow as asked, or the limit is reached. A cell
that fails, hangs, runs out of memory or cannot run here stays in the result with its reason.

Interrupted or killed, the same command goes on where it was. A file that has changed since is
refused; --again measures everything again. hightide about bench has every key.

With --baseline each cell is compared with an earlier result: worse only where the whole 95 % interval
lies beyond what --fail-over allows. "Not known" is said, and fails with --strict.

Exit codes: 0 every cell is measured, ran out of memory, or cannot run here; 1 a cell failed, hit the
timeout, or is worse than the baseline; 2 wrong usage, 3 a file that cannot be used, or a matrix that is
being measured already; 4 nothing could run here, or a place that cannot be written; 125 hightide itself
failed. A signal that interrupted it ends hightide too.`,
		Example: `  hightide bench matrix.yaml
  hightide bench matrix.yaml --dry-run
  hightide bench matrix.yaml --only framework=pytorch --only batch=16,32 --repeats 5
  hightide bench matrix.yaml --jobs 4 --json=result.json --html matrix.html
  hightide bench matrix.yaml --csv cells.csv --parquet trials.parquet
  hightide bench matrix.yaml --baseline main.json --fail-over 3% --junit matrix.xml --github`,
		Args: cobra.ExactArgs(1),
	}, &benchOptions{})
}

func (o *benchOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags, o.Settings()...)
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the cells, their order and an estimate; start nothing")
	flags.BoolVar(&o.resume, "resume", false, "only go on: fail where nothing was measured yet")
	o.out.AddFlags(flags)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no tables")
}

func (o *benchOptions) run(a *app, c *cobra.Command, args []string) error {
	o.File, o.Env = args[0], os.Environ()
	if err := o.check(); err != nil {
		return err
	}
	if o.dryRun || o.resume {
		outlook, err := bench.Plan(a.engine(), o.Options)
		if err != nil {
			return err
		}
		if o.dryRun {
			return a.show(o.out.json, outlook, func() error { return a.printOutlook(outlook) })
		}
		if outlook.Made == 0 {
			return fail.Input("leave --resume out to begin", "matrix %s: nothing was measured yet", outlook.Name)
		}
	}
	view := newBenchView(a.stderr, o.quiet)
	o.Events = view.showEvent
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	result, err := bench.Run(ctx, a.engine(), o.Options)
	view.hide()
	if result != nil {
		for _, note := range result.Notes {
			fmt.Fprintf(a.stderr, "hightide: %s\n", note)
		}
	}
	var signal interrupted
	if errors.As(context.Cause(ctx), &signal) {
		if result != nil && !o.quiet {
			fmt.Fprintf(a.stderr, "hightide: interrupted with %s measured; to go on: %s\n",
				report.Counted(int64(len(result.Trials)), "trial"), sameAgain())
		}
		launch.Die(syscall.Signal(signal)) // as it would have ended without us catching it
	}
	if err != nil {
		return err
	}
	return o.show(ctx, a, result)
}

// check refuses what cannot be before anything is started.
func (o *benchOptions) check() error {
	switch {
	case o.Executor == "local" && o.Resources != (executor.Resources{}):
		return fail.Usage("name one with --executor", "--resources are asked of a cluster")
	case o.resume && o.Again:
		return fail.Usage("leave one of them out", "--resume continues and --again starts over")
	}
	return o.out.check(o.Options)
}

// sameAgain is the command that goes on: without what begins anew.
func sameAgain() string {
	var words []string
	for _, word := range os.Args {
		if word != "--again" && word != "--again=true" {
			words = append(words, word)
		}
	}
	return mem.CommandLine(words)
}

// show prints and writes the result.
func (o *benchOptions) show(ctx context.Context, a *app, result *bench.Result) error {
	comparison, err := o.out.compare(ctx, a, result.Result, o.Catalogue)
	if err != nil {
		return err
	}
	if !o.quiet && o.out.json != toStdout {
		fmt.Fprint(a.stdout, comparison.Text(textOptions(a.stdout)))
	}
	if err := o.out.write(ctx, a, result.Result, comparison, o.File); err != nil {
		return err
	}
	if g := comparison.Regression; g != nil && g.ExitCode(o.out.strict) != 0 {
		return exitStatus(matrix.ExitWorse)
	}
	return benchStatus(result.Result)
}

// benchStatus is how bench ends after it measured all that there was to measure.
func benchStatus(r *matrix.Result) error {
	states := r.States()
	switch {
	case states[matrix.Failed]+states[matrix.TimedOut]+states[matrix.Lost] > 0:
		return exitStatus(exitCellFailed)
	case states[matrix.Unavailable] == len(r.Cells):
		return exitStatus(fail.ExitEnvironment)
	}
	return nil
}

// exitCellFailed is the exit code of bench where a cell could not be measured.
const exitCellFailed = 1

// printOutlook shows what would be done.
func (a *app) printOutlook(o *matrix.Outlook) error {
	columns := []report.ListColumn{{Title: "CELL"}, {Title: "TRIALS", Right: true},
		{Title: "MEMORY EXPECTED", Right: true}, {Title: "TIME EXPECTED", Right: true}}
	var rows [][]string
	for i := range o.Cells {
		cell := &o.Cells[i]
		memory := ""
		if bytes, ok := cell.Expected.Memory.Get(); ok {
			memory = mem.Bytes(bytes).String()
		}
		rows = append(rows, []string{cell.Key, fmt.Sprint(cell.Trials), memory, shortDuration(cell.Expected.Time)})
	}
	options := textOptions(a.stdout)
	if err := report.WriteList(a.stdout, columns, rows, options.Width, options.Color); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n%s, %s measured; %s to be made", report.Counted(int64(len(o.Cells)), "cell"),
		report.Counted(int64(o.Made), "trial"), report.Counted(int64(o.Left), "trial"))
	switch {
	case o.Left == 0:
		fmt.Fprintln(a.stdout)
		return nil
	case o.Time > 0:
		fmt.Fprintf(a.stdout, ", in about %s", shortDuration(o.Time))
		if !o.Sure {
			fmt.Fprint(a.stdout, " as far as cells like them tell")
		}
	default:
		fmt.Fprintf(a.stdout, "; how long they take is known after the first. Each is stopped after %s",
			shortDuration(o.Timeout))
	}
	fmt.Fprintf(a.stdout, ".\nOrder (seed %d):\n", o.Seed)
	for i, key := range o.Next {
		fmt.Fprintf(a.stdout, "%5d  %s\n", i+1, key)
	}
	return nil
}
