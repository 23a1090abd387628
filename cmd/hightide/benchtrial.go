package main

import (
	"os"

	"hightide/internal/bench"
	"hightide/internal/system"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchTrialOptions of bench-trial.
type benchTrialOptions struct {
	bench.Options
	bench.Trial
}

// benchTrialCommand is what nodes of a cluster run; nobody types it.
func benchTrialCommand(a *app) *cobra.Command {
	c := a.command(&cobra.Command{
		Use:     "bench-trial [flags] FILE",
		Short:   "Run one trial of a matrix, as a job of bench --executor",
		Long:    "Run one trial of a matrix, record it, and write what it came to. bench --executor has nodes run this.",
		Example: "  hightide bench-trial matrix.yaml --cell batch=16 --repeat 1 --into trial.json",
		Args:    cobra.ExactArgs(1),
	}, &benchTrialOptions{})
	c.Hidden = true
	return c
}

func (o *benchTrialOptions) AddFlags(flags *pflag.FlagSet) {
	for _, name := range []string{"name", "timeout", "catalogue"} {
		addSettings(flags, *o.Settings().Find(name))
	}
	flags.StringVar(&o.Cell, "cell", "", "the cell, as \"framework=pytorch batch=16\"")
	flags.IntVar(&o.Repeat, "repeat", 1, "which of its trials")
	flags.Uint64Var(&o.Seed, "seed", 0, "of the matrix")
	flags.StringVar(&o.Into, "into", "", "`file` for what it came to, as JSON")
	flags.StringVar(&o.Machine, "machine", "", "what this machine is called (default its host name)")
}

func (o *benchTrialOptions) run(a *app, c *cobra.Command, args []string) error {
	o.File, o.Env = args[0], os.Environ()
	// Ray kills what a task started without a word, and not what that started.
	system.EndWithParent()
	ctx, _, cancel := interruptible(c.Context())
	defer cancel()
	return bench.RunTrial(ctx, a.engine(), o.Options, o.Trial)
}
