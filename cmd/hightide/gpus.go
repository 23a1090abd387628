package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/gpus"
	"hightide/internal/options"
	"hightide/internal/report"
)

// gpusOptions of gpus.
type gpusOptions struct {
	catalogue []string
	instances bool
	json      string
}

func gpusCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "gpus [NAME]",
		Short: "List the GPUs of the catalogue: memory, capability, price, how sure that is",
		Long: `List the GPUs of the catalogue: memory as a framework sees it, what a process takes beside its
allocator, compute capability, multiprocessors, price, and how sure the figures are.

Those whose memory is a formula are for hightide plan alone; others are imagined.

With NAME: that GPU with the sources of its figures. With --instances: machines that clouds rent,
with those GPUs, the cheapest first; --json has the source of each price. Add your own GPUs in gpus.toml in hightide's
configuration folder (~/.config/hightide), or in a file given with --catalogue.

Exit codes: 0 fine, 2 wrong usage, 3 no such GPU (or several of that name), or a bad catalogue.`,
		Example: `  hightide gpus
  hightide gpus a100-40g
  hightide gpus --instances h100-sxm
  hightide gpus --json | jq '.gpus[] | select(.price_usd_per_hour < 1) | .gpu'`,
		Args: cobra.MaximumNArgs(1),
	}, &gpusOptions{})
}

func (o *gpusOptions) AddFlags(flags *pflag.FlagSet) {
	addSettings(flags, options.Catalogue(&o.catalogue))
	flags.BoolVar(&o.instances, "instances", false, "list machines that clouds rent, with these GPUs")
	jsonFlag(flags, &o.json)
}

func (o *gpusOptions) run(a *app, _ *cobra.Command, args []string) error {
	name := strings.Join(args, "")
	list, err := gpus.Listed(o.catalogue, name)
	if err != nil {
		return err
	}
	if o.instances {
		machines := list.Machines()
		return a.show(o.json, machines, func() error {
			if len(machines.Instances) == 0 {
				fmt.Fprintln(a.stdout, "No machine with this GPU is in the catalogue of instances.")
				return nil
			}
			fmt.Fprint(a.stdout, machines.Table().Text(textOptions(a.stdout)))
			return nil
		})
	}
	return a.show(o.json, list, func() error {
		fmt.Fprint(a.stdout, list.Table().Text(textOptions(a.stdout)))
		if name == "" {
			return nil
		}
		fmt.Fprintln(a.stdout)
		for _, line := range list.GPUs[0].Sources() {
			fmt.Fprintln(a.stdout, "  "+report.Clean(line))
		}
		return nil
	})
}
