package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/plan"
)

// planOptions of plan.
type planOptions struct {
	plan.Options
	json string
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

For a figure of your own program instead: hightide imagine, hightide fit.

Exit codes: 0 a GPU fits, 1 none does for sure, 2 wrong usage, 3 no such model or GPU, or files that cannot be used.`,
		Example: `  hightide plan ./Llama-3.1-8B --users 20 --seq 8192
  hightide plan model-Q4_K_M.gguf --gpu rtx4090 --seq 32768
  hightide plan config.json --for qlora --batch 4 --seq 2048
  hightide plan ./Llama-3.1-70B --for full --gpus 8 --gpu h100-sxm,h200
  hightide plan ./Llama-3.1-8B --users 50 --json | jq '.rows[] | select(.verdict == "fits") | .gpu'`,
		Args: cobra.ExactArgs(1),
	}, &planOptions{})
}

func (o *planOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags, o.Settings()...)
	jsonFlag(flags, &o.json)
}

func (o *planOptions) run(a *app, c *cobra.Command, args []string) error {
	o.Model = args[0]
	result, err := a.engine().Plan(c.Context(), o.Options)
	if err != nil {
		return err
	}
	err = a.show(o.json, result, func() error {
		fmt.Fprint(a.stdout, result.Text(textOptions(a.stdout)))
		return nil
	})
	if err == nil && result.Smallest == "" {
		return exitStatus(exitDoesNotFit)
	}
	return err
}
