package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/store"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown is what run, imagine and attach have in common: what is shown of a recording.
type shown struct {
	json        string
	quiet, open bool
}

// runOptions of run.
type runOptions struct {
	engine.RunOptions
	shown
	live, ui bool
	push     bool
	pushes   *pushing // nil: it is sent nowhere
	target
}

func runCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "run [flags] [--] COMMAND...",
		Short: "Run a program, record its memory, and report",
		Long: `Run a program, record its memory, and report.

Python programs get the agent with no change to their code, in every child process; with PyTorch
it marks steps and phases. Any other program is watched from outside. Standard input and output,
the terminal, signals and the exit code are the program's own.

Defaults for these flags may stand in .hightide.toml (table [run]) in this folder or one above it,
and in hightide/config.toml in your configuration folder.

Exit codes: the program's own; a signal that ended it ends hightide too; 126 and 127 as a shell
says that it cannot be run or was not found; 2 wrong usage, 3 a file of --output or --json that cannot
be written, 4 no place to record to, 125 hightide itself failed.`,
		Example: `  hightide run -- python train.py
  hightide run --name bigger-batch --tag model=bert -- torchrun --nproc-per-node 2 train.py
  hightide run --steps 200 --alert 'host.rss > 8GiB' --alert 'rss > 50MiB/step' -- python train.py
  hightide run --memory 512MiB -- python infer.py
  hightide run --ui -- python train.py
  hightide run --json=result.json --quiet -- python train.py`,
	}, &runOptions{})
}

// AddFlags adds them.
func (o *shown) AddFlags(flags *pflag.FlagSet) {
	flags.SetInterspersed(false) // what follows the command belongs to it
	fileFlag(flags, &o.json, "json", "print the result as JSON")
	flags.Lookup("json").Usage += " (alone, the program's standard output goes to standard error)"
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no status line and no report on the terminal")
	flags.BoolVar(&o.open, "open", false, "open the HTML report in a browser")
}

func (o *runOptions) AddFlags(flags *pflag.FlagSet) {
	o.shown.AddFlags(flags)
	addSettings(flags, o.Settings()...)
	hiddenFile(flags, &o.Out, "out")
	flags.BoolVar(&o.push, "push", false, "send it to the team's server: others see it while it runs, and all of it at its end; see hightide push --help")
	o.target.AddFlags(flags)
	flags.BoolVar(&o.ui, "ui", false, "open the run's page in a browser while it runs")
	flags.BoolVar(&o.live, "live", false,
		"show hightide top while it runs; the program's output is a view of it, and is printed at the end")
}

// of takes in the command, and what its recording needs besides.
func (o *shown) of(c *cobra.Command, args []string, run *engine.RunOptions) (err error) {
	if run.Command, err = jsonFile(c, &o.json, args); err != nil {
		return err
	}
	if len(run.Command) == 0 {
		return fail.Usage("for example: hightide "+c.Name()+" -- python train.py", "no command to %s", c.Name())
	}
	run.Env = os.Environ()
	o.leave(run)
	return nil
}

// leave says what a recording leaves.
func (o *shown) leave(run *engine.RunOptions) {
	run.HTML, run.JSONOnStdout = true, o.json == toStdout
	if !run.JSONOnStdout {
		run.JSONFile = o.json
	}
	outliveReader()
}

func (o *runOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.quiet && o.live && c.Flags().Changed("live") && c.Flags().Changed("quiet") {
		return fail.Usage("choose one", "--quiet shows nothing and --live shows more")
	}
	if o.live && o.ui {
		return fail.Usage("choose one; hightide ui shows any run",
			"--live shows the run in this terminal and --ui in a browser")
	}
	if err := o.of(c, args, &o.RunOptions); err != nil {
		return err
	}
	to, err := o.pushed(a)
	if err != nil {
		return err
	}
	p := &pushing{app: a, to: to}
	if o.push {
		o.pushes = p
	}
	result, err := o.record(a, c)
	notes := p.end()
	if err != nil {
		return err
	}
	if o.push {
		result.Notes = append(append(result.Notes, notes...), a.sendAtEnd(c.Context(), result.ID, to)...)
	}
	if err := o.print(a, result, result.Summary()); err != nil {
		return err
	}
	return o.end(result)
}

// pushed is where the run goes at its end. That is settled before the program begins, which may run for long.
func (o *runOptions) pushed(a *app) (to placed, err error) {
	if !o.push {
		return to, nil
	}
	if a.engine().Shared() != "" {
		return to, fail.Usage("leave out --push: a store gets every run", "--push is for a server, and --store for a store")
	}
	if to, err = a.targetOf(o.target); err != nil {
		return to, err
	}
	if to.Server == "" || to.Project == "" {
		return to, noTarget()
	}
	if o.Tags == nil {
		o.Tags = map[string]string{}
	}
	o.Tags[store.ProjectTag] = to.Project
	return to, nil
}

// record runs the program, with a view of it where there is a terminal.
func (o *runOptions) record(a *app, c *cobra.Command) (*engine.RunResult, error) {
	if screen := a.screen(); o.live && screen != nil {
		return o.watched(a, c.Context(), screen)
	}
	view := newView(a.stderr, o.quiet, o.live)
	o.Events = view.showEvent
	if o.ui {
		o.Events = a.opening(view.showEvent)
	}
	if o.pushes != nil {
		if !o.quiet {
			o.pushes.say = view.printAbove
		}
		o.Events = o.pushes.watching(c.Context(), o.Events)
	}
	result, err := a.engine().Run(c.Context(), o.RunOptions)
	view.hide()
	return result, err
}

// end turns how the command ended into how we end. A stop that was asked for is a result of its own, the same however
// hard the command had to be told.
func (o *shown) end(result *engine.RunResult) error {
	if result.Outcome.Stopped {
		return nil
	}
	if signal, ok := result.Outcome.Signal.Get(); ok {
		return dieBy(signal)
	}
	return status(int(result.Outcome.ExitCode.Or(fail.ExitOwn)))
}

// print shows the result: the report on stderr, which is not the program's, and JSON where it was
// asked for.
func (o *shown) print(a *app, result *engine.RunResult, summary any) error {
	for _, note := range result.Notes {
		fmt.Fprintf(a.stderr, "hightide: %s\n", note)
	}
	if !o.quiet && result.Report != nil {
		printReport(a.stderr, result)
	} else if text := result.Unplanned(); text != "" {
		fmt.Fprintf(a.stderr, "hightide: %s\n", text)
	}
	if o.open && result.HTML != "" {
		a.openInBrowser(result.HTML)
	}
	if o.json == "" {
		return nil
	}
	return a.writeJSON(o.json, summary)
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

// dieBy ends this process as a signal ended the command; where it cannot, with the code that a shell gives that.
func dieBy(signal int64) error {
	launch.Die(syscall.Signal(signal))
	return exitStatus(128 + signal)
}

// status ends the program with a code.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}
