package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/report"
)

// exitOverBudget is the exit code of check where a budget is passed.
const exitOverBudget = 1

// checkOptions of check.
type checkOptions struct {
	budget, baseline string
	junit, json      string
	github           bool
}

func checkCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
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

A budget for something that the snapshot or run did not record is an error. The others are held and printed.

Exit codes: 0 within every budget, 1 over budget, 2 wrong usage, 3 a file that cannot be used.`,
		Example: `  hightide check --budget memory.yaml snapshot.pickle
  hightide check --budget memory.yaml pr.pickle --baseline main.pickle
  hightide check --budget memory.yaml last --junit build/memory.xml --github`,
		Args: cobra.ExactArgs(1),
	}, &checkOptions{})
}

func (o *checkOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.budget, "budget", "", "YAML `file` of budgets")
	flags.StringVar(&o.baseline, "baseline", "", "`snapshot` or run that budgets under baseline are relative to")
	flags.StringVar(&o.junit, "junit", "", "write the result as JUnit XML into this `file`")
	flags.BoolVar(&o.github, "github", false, "annotate a change on GitHub")
	jsonFlag(flags, &o.json)
}

func (o *checkOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.budget == "" {
		return fail.Usage("hightide check --budget memory.yaml "+args[0], "there is no budget to check against")
	}
	checked, err := a.engine().Check(c.Context(), o.budget, args[0], o.baseline)
	if err == nil {
		err = o.write(a, args[0], checked)
	}
	lines, annotations := a.stdout, a.stdout
	if o.json == toStdout { // GitHub reads both
		lines, annotations = io.Discard, a.stderr
	}
	code := 0
	for _, one := range checked {
		word := "ok  "
		if one.Over {
			word, code = "OVER", exitOverBudget
		}
		fmt.Fprintf(lines, "%s  %s\n", word, one.Sentence())
		if one.Over && o.github {
			fmt.Fprintln(annotations, one.Annotation(o.budget))
		}
	}
	if err != nil { // what could be told is printed all the same
		return err
	}
	return status(code)
}

// write writes the result where it was asked for besides the terminal.
func (o *checkOptions) write(a *app, ref string, checked []report.Checked) error {
	if o.junit != "" {
		var xml bytes.Buffer
		if err := report.JUnit(&xml, ref, checked); err != nil {
			return err
		}
		_ = os.MkdirAll(filepath.Dir(o.junit), 0o755) // as test runners do; what fails, fails below
		if err := a.output(o.junit, xml.Bytes()); err != nil {
			return err
		}
	}
	if o.json == "" {
		return nil
	}
	text, err := report.CheckJSON(checked)
	if err != nil {
		return err
	}
	return a.output(o.json, text)
}
