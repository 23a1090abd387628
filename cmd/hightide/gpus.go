package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/gpus"
	"hightide/internal/report"
)

func gpusCommand(a *app) *cobra.Command {
	var catalogue []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "gpus [NAME]",
		Short: "List the GPUs that can be imagined: memory, capability, price, how sure that is",
		Long: `List the GPUs that can be imagined: memory as a framework sees it, what a process takes beside
its allocator, compute capability, multiprocessors, price, and how sure the figures are.

With NAME: that GPU with the sources of its figures. Your own GPUs stand in gpus.toml in hightide's
configuration folder, or in a file given with --catalogue.

Exit codes: 0 fine, 2 wrong usage, 3 no such GPU (or several of that name), or a bad catalogue.`,
		Example: `  hightide gpus
  hightide gpus a100-40g
  hightide gpus --json | jq '.gpus[] | select(.price_usd_per_hour < 1) | .gpu'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			list, err := gpus.Listed(catalogue, name)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			fmt.Fprint(a.stdout, list.Table().Text(textOptions(a.stdout)))
			if name != "" {
				fmt.Fprintln(a.stdout)
				for _, line := range list.GPUs[0].Sources() {
					fmt.Fprintln(a.stdout, "  "+report.Clean(line))
				}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&catalogue, "catalogue", nil, "a `file` with more GPUs, TOML or CSV; may be given several times")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
