package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/plan"
	"hightide/internal/report"
)

// planOptions of plan.
type planOptions struct {
	plan.Options
	json  string
	quiet bool
}

func planCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "plan [flags] MODEL",
		Short: "Which GPU a model needs, from its files alone: to serve it, to run it, to train it",
		Long: `Tell from a model's files which GPUs hold it: no engine, no framework and no GPU is needed.

MODEL is a folder or a file: a config.json, safetensors (headers only), GGUF; or a name of the Hugging
Face hub whose files are here.

Weights are exact where a file has them, and computed where a configuration tells them. So is what a
token takes in the cache. What an engine or a training takes besides is estimated, with an interval;
the verdict follows from it: fits (at the upper ends of all estimates), likely, unlikely, no.

--imagine runs the use on imaginary GPUs, the cheapest that may do it first, and stops at the first that
does; --imagine all runs it on all that may. To serve, that is your own vLLM; to train, a small trainer
over your own transformers, peft and trl. No GPU is needed. On a terminal that is done by itself where
these are there, after the table was shown: Ctrl-C keeps it as it stands, --imagine off leaves it out.

For a figure of your own program instead: hightide imagine, hightide fit.

Exit codes: 0 a GPU fits, 1 none does for sure, 2 wrong usage, 3 no such model or GPU, or files that cannot be used.`,
		Example: `  hightide plan ./Llama-3.1-8B --users 20 --seq 8192
  hightide plan model-Q4_K_M.gguf --gpu rtx4090 --seq 32768
  hightide plan config.json --for qlora --batch 4 --seq 2048
  hightide plan ./Llama-3.1-70B --for full --gpus 8 --gpu h100-sxm,h200
  hightide plan ./Llama-3.1-8B --users 20 --imagine --python ~/vllm/bin/python
  hightide plan ./Llama-3.1-8B --users 50 --json | jq '.rows[] | select(.verdict == "fits") | .gpu'`,
		Args: cobra.RangeArgs(1, 2),
	}, &planOptions{})
}

func (o *planOptions) AddFlags(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "tokens" { // as hightide imagine calls it, of a server
			name = "seq"
		}
		return pflag.NormalizedName(name)
	})
	addSettings(flags, o.Settings()...)
	flags.Lookup("imagine").NoOptDefVal = plan.ImagineFirst
	jsonFlag(flags, &o.json)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "with --imagine: no progress")
}

func (o *planOptions) run(a *app, c *cobra.Command, args []string) error {
	// what follows --imagine may be its value
	isMode := func(word string) bool { return slices.Contains(plan.ImagineModes, word) }
	if at := slices.IndexFunc(args, isMode); o.Imagine == plan.ImagineFirst && at >= 0 && len(args) > 1 {
		o.Imagine = args[at]
		args = slices.Delete(args, at, at+1)
	}
	switch {
	case len(args) > 1:
		return fail.Usage("give one; behind --imagine may stand all, off, auto, first, or nothing",
			"%d models are named: %s", len(args), strings.Join(args, ", "))
	case len(args) == 0:
		return cobra.ExactArgs(1)(c, args)
	case c.Flags().Changed("utilization") && o.Utilization == 0:
		return fail.Usage("as in --utilization 0.9", "--utilization 0 leaves the server nothing")
	}
	o.Model = args[0]
	if o.Imagine == "" && o.json == "" && !o.quiet && terminal(a.stdout) != nil && terminal(a.stderr) != nil {
		o.Imagine = plan.ImagineAuto // somebody sees what is going on, and can end it
	}
	view := newView(a.stderr, o.quiet, false)
	table := &planTable{view: view, options: textOptions(a.stderr)}
	if !o.quiet {
		o.Events = table.show
	}
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	result, err := a.engine().Plan(ctx, o.Options)
	table.draw("")                                              // the answer has it
	if enough := result != nil && isInterrupted(ctx); !enough { // with Ctrl-C what is known is enough
		dieOfSignal(ctx)
		if err != nil {
			return err
		}
	}
	err = a.show(o.json, result, func() error {
		fmt.Fprint(a.stdout, result.Text(textOptions(a.stdout)))
		return nil
	})
	if o.Imagine != plan.ImagineAuto {
		dieOfSignal(ctx) // the runs were asked for
	}
	if err == nil && result.Smallest == "" {
		return exitStatus(exitDoesNotFit)
	}
	return err
}

// planTable shows the rows of a plan while some are imagined: on a terminal as a table that is drawn anew after each
// run, elsewhere as lines.
type planTable struct {
	view    *view
	options report.TextOptions
	lines   int // of the table that stands there
}

func (t *planTable) show(e event.Event) {
	switch e := e.(type) {
	case plan.Imagined:
		switch {
		case t.view.out != nil:
			t.draw(e.Text(t.options))
		case e.Row != nil:
			t.view.printAbove(report.Clean(e.Line()))
		}
	case event.Progress:
		if t.view.out != nil {
			t.view.showEvent(e)
		}
	}
}

// draw writes the table in the place of the one before.
func (t *planTable) draw(text string) {
	if t.view.out == nil {
		return
	}
	fmt.Fprint(t.view.plain, "\r\x1b[2K")
	if t.lines > 0 {
		fmt.Fprintf(t.view.plain, "\x1b[%dA\x1b[J", t.lines)
	}
	fmt.Fprint(t.view.plain, text)
	t.lines = strings.Count(text, "\n")
}
