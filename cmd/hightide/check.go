package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/report"
)

func checkCommand(a *app) *cobra.Command {
	var budget, baseline, junit, jsonFile string
	var github bool
	c := &cobra.Command{
		Use:   "check --budget FILE SNAPSHOT|RUN [--baseline SNAPSHOT|RUN] [--junit FILE] [--github] [--json[=FILE]]",
		Short: "Fail where memory is over a budget, for CI",
		Long: `Fail where memory is over a budget. The budget is a YAML file; sizes have units KiB to TiB:

  peak: 24GiB            # allocated
  reserved: 26GiB        # by the caching allocator
  requested: 24GiB       # before rounding
  growth: 1MiB           # more after each step than after the one before
  host: 8GiB             # resident memory of the process tree; of a run
  categories:            # alive at the peak; see hightide explain --by category
    activations: 8GiB
    optimizer state: 4GiB
  baseline:              # at most so much more than another snapshot or run has
    file: main.pickle    # beside this file; --baseline names another
    peak: 5%
    reserved: 512MiB

A budget for something of which the snapshot or run says nothing is an error: it cannot be kept.

Exit codes: 0 all kept, 1 over budget, 2 wrong usage, 3 a file that cannot be used.`,
		Example: `  hightide check --budget memory.yaml snapshot.pickle
  hightide check --budget memory.yaml pr.pickle --baseline main.pickle
  hightide check --budget memory.yaml last --junit build/memory.xml --github`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if budget == "" {
				return engine.UsageError("hightide check --budget memory.yaml "+args[0], "there is no budget to check against")
			}
			checked, err := a.engine().Check(c.Context(), budget, args[0], baseline)
			if err != nil {
				return err
			}
			if junit != "" {
				var xml bytes.Buffer
				if err := report.JUnit(&xml, args[0], checked); err != nil {
					return err
				}
				_ = os.MkdirAll(filepath.Dir(junit), 0o755) // as test runners do; what fails, fails below
				if err := a.output(junit, xml.Bytes()); err != nil {
					return err
				}
			}
			if jsonFile != "" {
				text, err := report.CheckJSON(checked)
				if err != nil {
					return err
				}
				if err := a.output(jsonFile, text); err != nil {
					return err
				}
			}
			over, annotations := false, a.stdout
			if jsonFile == jsonToStdout { // GitHub reads both
				annotations = a.stderr
			}
			for _, one := range checked {
				word := "ok  "
				if one.Over {
					word, over = "OVER", true
				}
				if jsonFile != jsonToStdout {
					fmt.Fprintf(a.stdout, "%s  %s\n", word, one.Sentence())
				}
				if one.Over && github {
					fmt.Fprintln(annotations, one.Annotation(budget))
				}
			}
			if over {
				return exitStatus(engine.ExitOverBudget)
			}
			return nil
		},
	}
	c.Flags().StringVar(&budget, "budget", "", "YAML `file` of budgets")
	c.Flags().StringVar(&baseline, "baseline", "", "snapshot or run that budgets under baseline are relative to")
	c.Flags().StringVar(&junit, "junit", "", "write the result as JUnit XML into this `file`")
	c.Flags().BoolVar(&github, "github", false, "annotate a change on GitHub")
	c.Flags().StringVar(&jsonFile, "json", "", "print JSON; with =`FILE` into a file")
	c.Flags().Lookup("json").NoOptDefVal = jsonToStdout
	return c
}
