package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// fitOptions of fit.
type fitOptions struct {
	fit.Options
	json            string
	quiet           bool
	serve, imagined bool
}

func fitCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "fit [flags] (--model NAME | -- COMMAND... {batch} ...)",
		Short: "Find the largest batch that fits, on an imaginary GPU or this machine's",
		Long: `Find the largest batch that fits, on an imaginary GPU or on this machine's.

A command is run once for each batch size tried, with {batch} replaced; a model is built once and
each trial is a fork, so that an out-of-memory cannot affect the next. Two small batches give the
slope, which predicts the limit; the answer and the batch above it are always run.

Models: bert, gpt2 and resnet as MemoryMark defines them (eval mode, forward and backward, no
optimizer, sequence 128, 224 px, fp32); every torchvision classification model; a registered
transformers model type (--size 8b with llama, mistral, qwen2, vit), or a config.json; or
module:function, which returns step(batch), or a pair (model, batch(n)).

On an imaginary GPU memory is the framework's own, and time is not measured.

Exit codes: 0 an answer, 1 not even the smallest batch fits, 2 wrong usage, 3 no such model or GPU,
or the step fails by itself, 4 the environment lacks something.`,
		Example: `  hightide fit --gpu a10 --model bert --step 8
  hightide fit --gpu a10 -- python train.py --batch-size {batch}
  hightide fit --gpu h100-sxm --model llama --size 8b --dtype bf16 --seq-len 4096 --optimizer adamw --checkpointing --train
  hightide fit --gpu l4 --model mistral --size 7b --dtype bf16 --inference --seq-len 8192
  hightide fit --device cuda --model resnet50 --train --optimizer sgd --amp bf16 --headroom 5%`,
	}, &fitOptions{})
}

func (o *fitOptions) AddFlags(flags *pflag.FlagSet) {
	flags.SetInterspersed(false) // what follows the command belongs to it
	addSettings(flags, o.Settings()...)
	jsonFlag(flags, &o.json)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no table")
	flags.BoolVar(&o.serve, "serve", false, "plan for a program that runs the trials: hightide.fit of the Python package")
	flags.BoolVar(&o.imagined, "imagined", false, "with --serve: its device is imaginary")
	_ = flags.MarkHidden("serve")
	_ = flags.MarkHidden("imagined")
}

func (o *fitOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.serve {
		return o.plan(c.Context(), a)
	}
	o.Command, o.Env = args, os.Environ()
	if c.ArgsLenAtDash() < 0 && len(args) > 0 && o.Options.Model.Model != "" {
		return fail.Usage("flags go before it; a command stands after --", "unexpected %q", args[0])
	}
	if err := o.commandSays(c); err != nil {
		return err
	}
	view := newView(a.stderr, o.quiet, false)
	if !o.quiet {
		o.Events = view.showEvent
	}
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	result, err := a.engine().Fit(ctx, o.Options)
	view.hide()
	dieOfSignal(ctx)
	if err != nil {
		return err
	}
	if err := a.tellFound(result, o.quiet, o.json); err != nil {
		return err
	}
	if result.Largest == 0 {
		return exitStatus(exitDoesNotFit)
	}
	return nil
}

// commandSays refuses flags that a command would not hear of.
func (o *fitOptions) commandSays(c *cobra.Command) error {
	for _, s := range o.Settings() {
		if s.Part == "model" && len(o.Command) > 0 && o.Options.Model.Model == "" && c.Flags().Changed(s.Name) {
			return fail.Usage("pass it to the command itself, after --", "--%s is for --model: a command does not get it",
				s.Name)
		}
	}
	return nil
}

// plan speaks with hightide.fit: asks on stdout, answers on stdin, the result as the last line.
func (o *fitOptions) plan(ctx context.Context, a *app) error {
	result, err := fit.Serve(ctx, o.Options, a.stdin, a.stdout, o.imagined)
	var last any = result
	if err != nil {
		last = map[string]string{"error": err.Error()}
	}
	return json.NewEncoder(a.stdout).Encode(last)
}

func readyLine(r fit.Ready) string {
	line := cmp.Or(r.Description, r.Model)
	if n, ok := r.Parameters.Get(); ok {
		line += fmt.Sprintf(", %.1f M parameters", float64(n)/1e6)
	}
	if v := r.Versions[frameworks.Torch]; v != "" {
		line += ", torch " + v
	}
	return report.Clean(strings.TrimPrefix(line, ", ")) // a command has no description
}

func trialLine(t fit.Trial) string {
	if !t.OK {
		return fmt.Sprintf("batch %d does not fit: %s", t.Batch, report.Clean(fit.Why(t.Problem)))
	}
	line := fmt.Sprintf("batch %d fits", t.Batch)
	if bytes, ok := t.Allocated.Get(); ok {
		line += fmt.Sprintf(": peak allocated %v", mem.Bytes(bytes))
	}
	return line
}
