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
	commitStatus
}

func checkCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use: "check --budget FILE SNAPSHOT|RUN [--baseline SNAPSHOT|RUN] [--junit FILE] [--github] [--json[=FILE]] " +
			"[--status FILE] [--server URL]",
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

--status writes the status of a commit, as GitHub's and GitLab's interfaces take it. --server keeps it at a team's
server, which shows it in the trend of the project. The commit is that of the run, else --commit.

Exit codes: 0 within every budget, 1 over budget, 2 wrong usage, 3 a file that cannot be used or the server refuses,
4 the server cannot be asked.`,
		Example: `  hightide check --budget memory.yaml snapshot.pickle
  hightide check --budget memory.yaml pr.pickle --baseline main.pickle
  hightide check --budget memory.yaml last --junit build/memory.xml --github
  hightide check --budget memory.yaml last --status status.json --server https://runs.example.org:7333 --project ranker`,
		Args: checkArgs,
	}, &checkOptions{})
}

func (o *checkOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.budget, "budget", "", "YAML `file` of budgets")
	flags.StringVar(&o.baseline, "baseline", "", "`snapshot` or run that budgets under baseline are relative to")
	flags.StringVar(&o.junit, "junit", "", "write the result as JUnit XML into this `file`")
	flags.BoolVar(&o.github, "github", false, "annotate a change on GitHub")
	o.commitStatus.AddFlags(flags)
	jsonFlag(flags, &o.json)
}

func (o *checkOptions) run(a *app, c *cobra.Command, args []string) error {
	if o.budget == "" {
		return fail.Usage("hightide check --budget memory.yaml "+args[0], "there is no budget to check against")
	}
	tell, err := o.commitStatus.teller(c.Context(), a, args[0])
	if err != nil {
		return err
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
	told := tell(c.Context(), checked, err)
	if told != nil && (err != nil || code == exitOverBudget) { // what was found counts more
		fmt.Fprintln(a.stderr, "hightide: the status was not told: "+told.Error())
		told = nil
	}
	if err != nil { // what could be told is printed all the same
		return err
	}
	if told != nil {
		return told
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
