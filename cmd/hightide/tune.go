package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/tune"
)

// tuneOptions of tune.
type tuneOptions struct {
	tune.Options
	json  string
	quiet bool
}

func tuneCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "tune [flags] [--] COMMAND...",
		Short: "Find the cheapest changes by which a training fits on a GPU, and write them as a plan",
		Long: `Find the cheapest changes by which a training fits on a GPU, and write them as a plan.

The unmodified program is run on imaginary GPUs, once with what each block of its model keeps recorded,
then with changes that the agent makes in it: allocator settings, foreach=False, gradients let go, the
optimizer's step in the backward pass, checkpointing of as many blocks as it takes and no more, saved
activations on the host. With these losses and gradients stay the same bit for bit; --allow names
others. In a program of JAX, state that is replaced is donated, and layers of Flax, Equinox and Haiku
and bodies of scans are computed again. Only a plan that was run whole is recommended. --goal batch finds the largest batch that fits, of a
command that says it by a flag or by {batch}. --goal cost takes the cheapest of several GPUs, or with
--instances of machines that clouds rent, on which a plan fits.

hightide run --plan hightide.plan.toml -- COMMAND applies the plan for real, imagine --plan imagines it.

Of an LLM server (vllm serve, sglang.launch_server) the settings of its engine are tried instead: the answer
is the flags by which it serves --users of --tokens each, or else holds more tokens and is no slower.
No plan is written. --allow kv_fp8 has its KV cache in 8 bits, --gpus 2 has two GPUs share each layer.

Exit codes: 0 a plan, or it fits as it is; 1 no plan that was tried reaches the goal; 2 wrong usage;
3 no such GPU, or the program gives no verdict or is no training of PyTorch or JAX; 4 this machine or this
framework cannot imagine.`,
		Example: `  hightide tune --gpu rtx4090 -- python train.py
  hightide tune --gpu a10 --goal headroom=10% -- python train.py --batch-size 32
  hightide tune --gpu a10 --goal batch -- python train.py --batch-size 32
  hightide tune --gpu t4,a10,rtx4090 --goal cost -- python train.py
  hightide tune --goal cost --instances -- python train.py
  hightide tune --gpu a10 --users 20 --tokens 4096 -- vllm serve MODEL
  hightide tune --gpu a10 --allow bf16 -o a10.plan.toml -- python train.py`,
	}, &tuneOptions{})
}

func (o *tuneOptions) AddFlags(flags *pflag.FlagSet) {
	flags.SetInterspersed(false) // what follows the command belongs to it
	addSettings(flags, o.Settings()...)
	jsonFlag(flags, &o.json)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no table")
}

func (o *tuneOptions) run(a *app, c *cobra.Command, args []string) (err error) {
	if o.Command, err = jsonFile(c, &o.json, args); err != nil {
		return err
	}
	if len(o.Command) == 0 {
		return fail.Usage("for example: hightide tune --gpu rtx4090 -- python train.py", "no command to tune")
	}
	o.Env = os.Environ()
	view := newView(a.stderr, o.quiet, false)
	if !o.quiet {
		o.Events = func(e event.Event) { view.showEvent(e) }
	}
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	result, err := a.engine().Tune(ctx, o.Options)
	view.hide()
	dieOfSignal(ctx)
	if err != nil {
		return err
	}
	if err := a.tellFound(result, o.quiet, o.json); err != nil {
		return err
	}
	if !result.Reached() {
		return exitStatus(exitDoesNotFit)
	}
	return nil
}
