package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hightide/internal/engine"

	"github.com/spf13/cobra"
)

// runFlags are the flags of run as they are written.
type runFlags struct {
	name       string
	tags       []string
	interval   time.Duration
	out        string
	steps      uint64
	duration   time.Duration
	snapshotOn string
	stacks     bool
	noStacks   bool
	alerts     []string
	json       string
	quiet      bool
	live       bool
	open       bool
}

const jsonToStdout = "-"

func runCommand(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] [--] COMMAND...",
		Short: "Run a program, record its memory, and report",
		Long: `Run a program, record its memory, and report.

Python programs get the agent with no change to their code, in every child process; with PyTorch
it marks steps and phases. Any other program is watched from outside. Standard input and output,
the terminal, signals and the exit code are the program's own.

Defaults for these flags may stand in .hightide.toml (table [run]) in this folder or one above it,
and in hightide/config.toml in your configuration folder.

Exit codes: the program's own; a signal that ended it ends hightide too; 126 and 127 as a shell
says that it cannot be run or was not found; 2 wrong usage, 3 a file of --out or --json that cannot be
written, 4 no place to record to, 125 hightide itself failed.`,
		Example: `  hightide run -- python train.py
  hightide run --name bigger-batch --tag model=bert -- torchrun --nproc-per-node 2 train.py
  hightide run --steps 200 --alert 'host.rss > 8GiB' --alert 'rss > 50MiB/step' -- python train.py
  hightide run --json=result.json --quiet -- python train.py`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(a, c, args) },
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // what follows the command belongs to it
	flags.StringVar(&f.name, "name", "", "name of the run, for later commands")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag as `key=value`; may be given several times")
	flags.DurationVar(&f.interval, "interval", 100*time.Millisecond, "sampling interval")
	flags.StringVar(&f.out, "out", "", "also leave the recording in this `file`")
	flags.Uint64Var(&f.steps, "steps", 0, "stop after that many optimizer steps")
	flags.DurationVar(&f.duration, "duration", 0, "stop after that time, as in 90s or 2h")
	flags.StringVar(&f.snapshotOn, "snapshot-on", "oom", "when to take an allocator snapshot: oom, exit, step:N, never; several with commas")
	flags.BoolVar(&f.stacks, "stacks", true, "sample the host heap with Python stacks")
	flags.BoolVar(&f.noStacks, "no-stacks", false, "do not")
	flags.StringArrayVar(&f.alerts, "alert", nil, "say when a `limit` is passed, as 'host.rss > 8GiB', 'host.rss > 80%', 'host.rss > 50MiB/step'; may be given several times")
	flags.StringVar(&f.json, "json", "", "print the result as JSON; with =`FILE` into a file (alone, the program's standard output goes to standard error)")
	flags.Lookup("json").NoOptDefVal = jsonToStdout
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no status line and no report on the terminal")
	flags.BoolVar(&f.live, "live", false, "a fuller live view instead of the status line")
	flags.BoolVar(&f.open, "open", false, "open the HTML report in a browser")
	return c
}

func (f *runFlags) run(a *app, c *cobra.Command, args []string) error {
	args, err := f.jsonFile(c, args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return engine.UsageError("for example: hightide run -- python train.py", "no command to run")
	}
	if f.quiet && f.live && c.Flags().Changed("live") && c.Flags().Changed("quiet") {
		return engine.UsageError("choose one", "--quiet shows nothing and --live shows more")
	}
	options, err := f.options(args)
	if err != nil {
		return err
	}
	outliveReader()
	view := newView(a.stderr, f.quiet, f.live)
	options.Events = view.tell
	result, err := a.engine().Run(c.Context(), options)
	view.hide()
	if err != nil {
		return err
	}
	if err := f.print(a, result); err != nil {
		return err
	}
	return f.end(result)
}

// jsonFile lets --json take its file as the next word too, where that word ends in .json: a flag
// whose value is optional cannot, and the word looks like the command.
func (f *runFlags) jsonFile(c *cobra.Command, args []string) ([]string, error) {
	if f.json != jsonToStdout || len(args) == 0 || !strings.HasSuffix(args[0], ".json") || c.ArgsLenAtDash() == 0 {
		return args, nil
	}
	file := args[0]
	if err := c.Flags().Parse(args[1:]); err != nil {
		return nil, engine.UsageError("see hightide run --help", "%w", err)
	}
	f.json = file
	return c.Flags().Args(), nil
}

func (f *runFlags) options(args []string) (engine.RunOptions, error) {
	o := engine.RunOptions{
		Command: args, Env: os.Environ(), Name: f.name, Tags: map[string]string{}, Interval: f.interval, Out: f.out,
		Steps: f.steps, Duration: f.duration, SnapshotOn: f.snapshotOn, NoStacks: f.noStacks || !f.stacks,
		Alerts: f.alerts, JSONOnStdout: f.json == jsonToStdout, HTML: true,
	}
	if f.json != jsonToStdout {
		o.JSONFile = f.json
	}
	for _, tag := range f.tags {
		key, value, ok := strings.Cut(tag, "=")
		if !ok || key == "" {
			return o, engine.UsageError("write it as --tag model=bert", "tag %q is not of the form key=value", tag)
		}
		o.Tags[key] = value
	}
	return o, nil
}

// print shows the result: the report on stderr, which is not the program's, and JSON where it was
// asked for.
func (f *runFlags) print(a *app, result *engine.RunResult) error {
	for _, note := range result.Notes {
		fmt.Fprintf(a.stderr, "hightide: %s\n", note)
	}
	if !f.quiet && result.Report != nil {
		printReport(a.stderr, result)
	}
	if f.open && result.HTML != "" {
		if err := openInBrowser(result.HTML); err != nil {
			fmt.Fprintf(a.stderr, "hightide: cannot open a browser: %v\n", err)
		}
	}
	return a.writeJSON(f.json, result.Summary())
}

// end turns how the command ended into how we end.
func (f *runFlags) end(result *engine.RunResult) error {
	if signal, ok := result.Outcome.Signal.Get(); ok {
		engine.Die(int(signal))
		return exitStatus(128 + signal)
	}
	if code := result.Outcome.ExitCode.Or(engine.ExitOwn); code != 0 {
		return exitStatus(code)
	}
	return nil
}

// printReport shows the report, as wide and colourful as the terminal is.
func printReport(w io.Writer, result *engine.RunResult) {
	fmt.Fprintf(w, "\n%s\n", result.Report.Text(textOptions(w)))
	if result.HTML != "" {
		fmt.Fprintf(w, "Report:    %s\n", result.HTML)
	}
	if result.File != "" {
		fmt.Fprintf(w, "Recording: %s\nAgain:     hightide show %s\n", result.File, result.ID)
	}
}
