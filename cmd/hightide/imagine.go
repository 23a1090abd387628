package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/imagine"
	"hightide/internal/mem"
)

// imagineOptions of imagine.
type imagineOptions struct {
	recording
	imagine.Options
	stacks, suggest bool
}

func imagineCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "imagine [flags] [--] COMMAND...",
		Short: "Run a PyTorch program on GPUs you do not have, and say whether it fits",
		Long: `Run a PyTorch program on GPUs you do not have, and say whether it fits.

The program runs unmodified, with its own Python and PyTorch and the real caching allocator; calls
to the GPU are answered by imaginary ones that account for device memory and run no kernel. A
training stops by itself once its peak was steady over three optimizer steps. Losses are zero, and
times say nothing about the GPU. What the answer rests on, and what it leaves open, is named by line.

Where a program does not fit, what could make it fit is tried before it is suggested. The result is a
run like any other: show, report and export work on it, and the allocator's snapshot in the run's
folder opens in PyTorch's memory viewer.

Exit codes:
  0    it fits, also where it fits tightly
  1    out of memory
  2    wrong usage
  3    no such GPU
  4    this machine or this PyTorch cannot imagine, or no GPU was used
  5    the program failed for a reason of its own; its exit code is in the JSON
  6    it fits only if a value is as assumed that a GPU would have computed: the verdict names the line
       that reads it, and --read-value sets the value
  125  hightide itself failed
  126  the program cannot be run; 127: it was not found, as a shell says it
A signal that ended the program ends hightide too.`,
		Example: `  hightide imagine --gpu a10 -- python train.py
  hightide imagine --gpu all -- python train.py
  hightide imagine --gpu h100-sxm --gpus 8 -- torchrun --nproc-per-node 8 train.py
  hightide imagine --gpu h100-sxm --world-size 1024 --play 0,1,1023 -- torchrun train.py
  hightide imagine --memory 24GiB --json=verdict.json --quiet -- python train.py --batch-size 32`,
	}, &imagineOptions{})
}

func (o *imagineOptions) AddFlags(flags *pflag.FlagSet) {
	o.recording.AddFlags(flags)
	catalogueFlag(flags, &o.Catalogue)
	flags.StringVar(&o.GPU, "gpu", "", "`name` of a GPU as in hightide gpus, or all (default h100-sxm)")
	flags.IntVar(&o.GPUs, "gpus", 0, "`number` of these GPUs in the machine (default 1)")
	flags.Func("memory", "`size` of the GPU's memory in place of the catalogue's, as 24GiB",
		size(&o.Memory, "--memory 24GiB"))
	flags.Func("context", "`size` of device memory that a process takes beside PyTorch's allocator, as 900MiB; "+
		"hightide info --calibrate measures it", size(&o.Context, "--context 900MiB"))
	flags.StringVar(&o.Until, "steps", "auto",
		"stop after this `number` of optimizer steps; auto: once the peak is steady; 0: run to the end")
	flags.StringSliceVar(&o.Reach, "until", nil,
		"do not stop before this `part` of the training: evaluation, checkpoint, epoch, several with commas; data loaders "+
			"are cut short to get there early")
	flags.BoolVar(&o.Longest, "longest", false, "put the largest sample of a data set into the first batch")
	flags.StringVar(&o.AllocConf, "alloc-conf", "", "`settings` of PyTorch's allocator, as expandable_segments:True")
	flags.BoolVar(&o.Sandbox, "sandbox", false, "let the program write into a folder that is deleted afterwards")
	flags.BoolVar(&o.FakeWeights, "fake-weights", false,
		"where weights are not on this machine, make up some of the right shapes")
	flags.StringVar(&o.Sizes, "data-sizes", "upper",
		"sizes that depend on data: upper (their upper bound), zero, or a `fraction` of the bound")
	flags.StringArrayVar(&o.ReadValues, "read-value", nil,
		"value that the program reads where a GPU would have computed it: a number for all lines, or `LINE=VALUE`; may be "+
			"given several times")
	flags.IntVar(&o.World, "world-size", 0,
		"imagine a cluster of this `number` of ranks and play some of them, a process each")
	flags.StringVar(&o.PlayList, "play", "",
		"which `ranks` to play, as 0,1,127, 0-15, 0-120/8 or all; each kind once, at most 64 (default all of up to eight, "+
			"else the first two, a middle one and the last)")
	flags.BoolVar(&o.Vary, "vary", false, "also run with other settings that change the peak: allocator, attention, "+
		"compile caches, data-dependent sizes, a GPU that is behind the host")
	flags.BoolVar(&o.suggest, "suggest", true, "where it does not fit, try what would make it fit")
	flags.BoolVar(&o.NoSuggest, "no-suggest", false, "do not try what would make it fit")
	flags.BoolVar(&o.stacks, "stacks", false, "also sample the host heap with Python stacks")
}

func (o *imagineOptions) run(a *app, c *cobra.Command, args []string) error {
	if err := atLeastOne(c, "gpus", "world-size"); err != nil {
		return err
	}
	if err := o.of(c, args); err != nil {
		return err
	}
	o.NoSuggest, o.NoStacks = o.NoSuggest || !o.suggest, !o.stacks
	view := newView(a.stderr, o.quiet, false)
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	o.Events = func(e event.Event) {
		if _, ok := e.(event.Reporting); ok {
			release() // there is nothing left to clean up
		}
		view.tell(e)
	}
	result, err := a.engine().Imagine(ctx, engine.ImagineOptions{RunOptions: o.RunOptions, Options: o.Options})
	view.hide()
	if err != nil {
		return err
	}
	if err := o.print(a, &result.RunResult, result.Summary()); err != nil {
		return err
	}
	code := imagineCode(result)
	judged := code == 0 || code == exitDoesNotFit || code == exitConditional
	if signal, ok := result.Outcome.Signal.Get(); ok && !judged && !result.Outcome.Stopped {
		return dieBy(signal)
	}
	return status(code)
}

// Exit codes of imagine, beside those of package fail.
const (
	exitDoesNotFit  = 1
	exitConditional = 6 // it fits if numbers are as taken that only a GPU would compute
	exitProgram     = 5 // the imagined program failed for a reason of its own, so there is no verdict
)

// imagineCode is 0 for a program that fits; over a catalogue, on one of its GPUs.
func imagineCode(r *engine.ImagineResult) int {
	switch v := r.Verdict; {
	case v == nil:
		return fail.ExitOwn
	case v.Verdict == mem.VerdictConditional:
		return exitConditional
	case v.Fits() || slices.ContainsFunc(v.All, func(v mem.GPUVerdict) bool { return v.Fits() }):
		return 0
	case v.Verdict == mem.VerdictOOM:
		return exitDoesNotFit
	case v.Verdict == mem.VerdictUnused:
		return fail.ExitEnvironment
	}
	return exitProgram
}
