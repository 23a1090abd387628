package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/imagine"
)

// imagineFlags are the flags of imagine as they are written.
type imagineFlags struct {
	runFlags // those that run has too
	imagine.Options
	memory  string
	suggest bool
}

func imagineCommand(a *app) *cobra.Command {
	var f imagineFlags
	c := &cobra.Command{
		Use:   "imagine [flags] [--] COMMAND...",
		Short: "Run a PyTorch program on GPUs you do not have, and say whether it fits",
		Long: `Run a PyTorch program on GPUs you do not have, and say whether it fits.

The program runs unmodified, with its own Python and PyTorch and the real caching allocator; calls
to the GPU are answered by imaginary ones that account for device memory and run no kernel. A
training stops by itself once its peak was steady over three optimizer steps. Losses are zero, and
times say nothing about the GPU. What the answer rests on, and what it leaves open, is named by line.

Where a program does not fit, what could make it fit is tried before it is suggested. A recording
like any other: show, report and export work on it, and the allocator's snapshot in the run's folder
opens in PyTorch's memory viewer.

Exit codes: 0 fits (also tightly), 1 out of memory, 5 the program failed for a reason of its own (its
code is in the JSON), 2 wrong usage, 3 no such GPU, 4 this machine or this PyTorch cannot imagine,
125 hightide itself failed; a signal that ended the program ends hightide too.`,
		Example: `  hightide imagine --gpu a10 -- python train.py
  hightide imagine --gpu all -- python train.py
  hightide imagine --gpu h100-sxm --gpus 8 -- torchrun --nproc-per-node 8 train.py
  hightide imagine --gpu h100-sxm --world-size 1024 --play 0,1,1023 -- torchrun train.py
  hightide imagine --memory 24GiB --json=verdict.json --quiet -- python train.py --batch-size 32`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(a, c, args) },
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // what follows the command belongs to it
	flags.StringVar(&f.GPU, "gpu", "", "`name` of a GPU as in hightide gpus, or all (default h100-sxm)")
	flags.StringArrayVar(&f.Catalogue, "catalogue", nil, "a `file` with more GPUs, TOML or CSV; may be given several times")
	flags.IntVar(&f.GPUs, "gpus", 0, "how many of them the machine has (default 1)")
	flags.StringVar(&f.memory, "memory", "", "another `size` of their memory, as 24GiB")
	flags.StringVar(&f.Until, "steps", "auto", "stop after that many optimizer steps; auto: once the peak is steady; 0: run to the end")
	flags.StringVar(&f.AllocConf, "alloc-conf", "", "`setting` of PyTorch's allocator, as expandable_segments:True")
	flags.BoolVar(&f.Sandbox, "sandbox", false, "what the program writes goes to a folder that is deleted")
	flags.BoolVar(&f.FakeWeights, "fake-weights", false, "weights that are not on this machine are made up in the right shapes")
	flags.StringVar(&f.Sizes, "data-sizes", "upper", "sizes that depend on data: upper (their bound), zero, or a `fraction`")
	flags.StringVar(&f.ReadValue, "read-value", "", "`number` that the program reads where a GPU would have computed one (default 0)")
	flags.IntVar(&f.World, "world-size", 0, "imagine a cluster of that many ranks and play some of them, a process each")
	flags.StringVar(&f.PlayList, "play", "", "which `ranks` to play (default the first two and the last)")
	flags.BoolVar(&f.Vary, "vary", false, "also run with conditions changed that matter: allocator, attention, compile caches, data-dependent sizes")
	flags.BoolVar(&f.suggest, "suggest", true, "where it does not fit, try what would make it fit")
	flags.BoolVar(&f.NoSuggest, "no-suggest", false, "do not try what would make it fit")
	flags.StringVar(&f.name, "name", "", "name of the run, for later commands")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag as `key=value`; may be given several times")
	flags.StringVar(&f.out, "out", "", "also leave the recording in this `file`")
	flags.DurationVar(&f.duration, "duration", 0, "stop after that time, as in 90s")
	flags.BoolVar(&f.stacks, "stacks", false, "also sample the host heap with Python stacks")
	flags.StringVar(&f.json, "json", "", "print the result as JSON; with =`FILE` into a file (alone, the program's standard output goes to standard error)")
	flags.Lookup("json").NoOptDefVal = jsonToStdout
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no status line and no report on the terminal")
	flags.BoolVar(&f.open, "open", false, "open the HTML report in a browser")
	return c
}

func (f *imagineFlags) run(a *app, c *cobra.Command, args []string) error {
	args, err := f.jsonFile(c, args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return engine.UsageError("for example: hightide imagine --gpu a10 -- python train.py", "no command to imagine")
	}
	if c.Flags().Changed("gpus") && f.GPUs < 1 {
		return engine.UsageError("a machine has 1 to 16", "--gpus %d", f.GPUs)
	}
	options, err := f.options(args)
	if err != nil {
		return err
	}
	outliveReader()
	view := newView(a.stderr, f.quiet, false)
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	options.Events = func(e event.Event) {
		if _, ok := e.(event.Reporting); ok {
			release() // there is nothing left to clean up
		}
		view.tell(e)
	}
	result, err := a.engine().Imagine(ctx, options)
	view.hide()
	if err != nil {
		return err
	}
	if err := f.print(a, result); err != nil {
		return err
	}
	return f.end(result)
}

func (f *imagineFlags) options(args []string) (o engine.ImagineOptions, err error) {
	f.NoSuggest = f.NoSuggest || !f.suggest
	if f.memory != "" {
		if f.Memory, err = engine.ParseSize(f.memory); err != nil {
			return o, err
		}
	}
	o.Options = f.Options
	o.RunOptions, err = f.runFlags.options(args)
	return o, err
}

// print shows the verdict on stderr and JSON where it was asked for.
func (f *imagineFlags) print(a *app, result *engine.ImagineResult) error {
	for _, note := range result.Notes {
		fmt.Fprintf(a.stderr, "hightide: %s\n", note)
	}
	if !f.quiet && result.Report != nil {
		printReport(a.stderr, &result.RunResult)
	}
	if f.open && result.HTML != "" {
		if err := openInBrowser(result.HTML); err != nil {
			fmt.Fprintf(a.stderr, "hightide: cannot open a browser: %v\n", err)
		}
	}
	return a.writeJSON(f.json, result.ImagineSummary())
}

// end turns the verdict into how we end.
func (f *imagineFlags) end(result *engine.ImagineResult) error {
	if signal, ok := result.Outcome.Signal.Get(); ok && !result.Judged() && !result.Outcome.Stopped {
		engine.Die(int(signal))
		return exitStatus(128 + signal)
	}
	if code := result.ExitCode(); code != 0 {
		return exitStatus(code)
	}
	return nil
}
