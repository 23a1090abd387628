package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
)

// imagineOptions of imagine.
type imagineOptions struct {
	engine.ImagineOptions
	shown
}

func imagineCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "imagine [flags] [--] COMMAND...",
		Short: "Run a PyTorch, TensorFlow or JAX program on GPUs you do not have, and say whether it fits",
		Long: `Run a PyTorch, TensorFlow or JAX program on GPUs you do not have, and say whether it fits.

The program runs unmodified, with its own Python and PyTorch and the real caching allocator; calls
to the GPU are answered by imaginary ones that account for device memory and run no kernel. A
training stops by itself once its peak is steady: three optimizer steps at least. Losses are zero, and
times say nothing about the GPU. What the answer rests on, and what it leaves open, is named by line.

Where a program does not fit, what could make it fit is tried before it is suggested. The result is a
run like any other: show, report and export work on it, and the allocator's snapshot in the run's
folder opens in PyTorch's memory viewer.

Exit codes:
  0    it fits, also where it fits tightly
  1    out of memory, or too few of --users
  2    wrong usage
  3    no such GPU
  4    this machine or this framework cannot imagine, or no GPU was used
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
  hightide imagine --gpu all --users 20 --tokens 8192 -- vllm serve MODEL
  hightide imagine --memory 24GiB --json=verdict.json --quiet -- python train.py --batch-size 32`,
	}, &imagineOptions{})
}

func (o *imagineOptions) AddFlags(flags *pflag.FlagSet) {
	o.shown.AddFlags(flags)
	addSettings(flags, o.Settings()...)
	hiddenFile(flags, &o.Out, "out")
}

func (o *imagineOptions) run(a *app, c *cobra.Command, args []string) error {
	if err := o.of(c, args, &o.RunOptions); err != nil {
		return err
	}
	view := newView(a.stderr, o.quiet, false)
	ctx, release, cancel := interruptible(c.Context())
	defer cancel()
	o.Events = func(e event.Event) {
		if _, ok := e.(event.Reporting); ok {
			release() // there is nothing left to clean up
		}
		view.showEvent(e)
	}
	result, err := a.engine().Imagine(ctx, o.ImagineOptions)
	view.hide()
	if err != nil {
		return err
	}
	if err := o.print(a, &result.RunResult, result.Summary()); err != nil {
		return err
	}
	code := imagineCode(result)
	judged := code == 0 || code == exitDoesNotFit || code == exitConditional
	if signal := result.Signal(); signal != 0 && !judged && !result.Outcome.Stopped {
		return dieBy(signal)
	}
	return status(code)
}

// Exit codes of imagine, beside those of package fail.
const (
	exitDoesNotFit  = 1
	exitConditional = 6 // it fits if numbers are as taken that only a GPU would compute, or for so many steps
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
	case v.Verdict == mem.VerdictOOM || v.Verdict == mem.VerdictFew:
		return exitDoesNotFit
	case v.Verdict == mem.VerdictUnused:
		return fail.ExitEnvironment
	}
	return exitProgram
}
