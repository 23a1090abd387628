package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/analyze/trace"
	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/options"
	"hightide/internal/report"
)

// analyzeOptions of analyze.
type analyzeOptions struct {
	input, output, report, format, plots string
	json                                 string
	pictures                             bool
}

func analyzeCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "analyze FILE|RUN [--output FILE] [--visualization]",
		Short: "Say what a tracker's readings, a run or a snapshot show: the peak, what grows, patterns, a score",
		Long: `Say what a tracker's readings, a run or a snapshot show: the peak, what grows, what each curve does, how
well memory is used (a score from 0 to 10), and what to change.

FILE is what hightide monitor and track saved, what Stormlog's gpumemprof and tfmemprof save (JSON, CSV),
or anything else that hightide explain reads: it is explain, with the whole report as its answer.
Readings alone have no lines of the program: record it with hightide run to have those.

Exit codes: 0 fine, 2 wrong usage, 3 no such file or run, or one that cannot be read or written.`,
		Example: `  hightide analyze results.json
  hightide analyze results.json --visualization --plot-dir plots
  hightide analyze training_memory.json --output memory_report.txt --format txt
  hightide analyze --input tf_results.json --output report.md
  hightide analyze last --json | jq .headline`,
		Args: cobra.MaximumNArgs(1),
	}, &analyzeOptions{})
}

func (o *analyzeOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.input, "input", "", "the `file` to analyze, where it is not an argument")
	outputFlag(flags, &o.output, "write the report into this `file` in place of the terminal")
	flags.StringVar(&o.report, "report", "", "the same as --output")
	addSettings(flags, options.Setting{Name: "format", To: &o.format, Among: []string{"txt", "json", "html", "md"},
		Help: "of the report: txt, json, html or md (default: as the file's name ends, else txt)"})
	flags.BoolVar(&o.pictures, "visualization", false, "also write the page with the curves into a folder")
	flags.BoolVar(&o.pictures, "visualize", false, "the same as --visualization")
	flags.StringVar(&o.plots, "plot-dir", "plots", "the `folder` of --visualization")
	olderFlags(flags, "the report always says what grows and what to change", "detect-leaks", "optimize")
	olderFlags(flags, "the file is one recording", "session-id=")
	for _, name := range []string{"report", "visualize"} { // as in older tools
		_ = flags.MarkHidden(name)
	}
	jsonFlag(flags, &o.json)
}

func (o *analyzeOptions) run(a *app, c *cobra.Command, args []string) error {
	ref, err := o.source(args)
	if err != nil {
		return err
	}
	if o.output != "" && o.report != "" {
		return fail.Usage("name one file", "--output and --report are the same, and both are given")
	}
	o.output = cmp.Or(o.output, o.report)
	r, err := a.engine().Explain(c.Context(), []string{follow(ref)},
		trace.Options{At: "peak", By: "site", Pictures: true})
	var said engine.Message
	if errors.As(err, &said) && o.output == "" && o.json == "" {
		_, err := fmt.Fprint(a.stdout, said.Text(textOptions(a.stdout)))
		return err
	}
	if err != nil {
		return err
	}
	if err := o.draw(a, r); err != nil {
		return err
	}
	return o.write(a, r)
}

// source is what is to be analyzed.
func (o *analyzeOptions) source(args []string) (string, error) {
	switch {
	case o.input != "" && len(args) > 0:
		return "", fail.Usage("name it once", "there are two inputs: %s and %s", o.input, args[0])
	case o.input == "" && len(args) == 0:
		return "", fail.Usage("write hightide analyze FILE|RUN; hightide analyze --help has examples",
			"analyze: no file or run was given")
	case o.input != "":
		return o.input, nil
	}
	return args[0], nil
}

// draw writes the page.
func (o *analyzeOptions) draw(a *app, r *report.Report) error {
	if !o.pictures {
		return nil
	}
	if err := os.MkdirAll(o.plots, 0o755); err != nil {
		return fail.Input("name a folder that can be written", "--plot-dir: %w", err)
	}
	path := filepath.Join(o.plots, "report.html")
	if err := files.Write(path, "HTML report", r.HTML); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "hightide: the curves are in %s\n", path)
	return nil
}

// write writes the report where it is wanted, as it is wanted.
func (o *analyzeOptions) write(a *app, r *report.Report) error {
	if o.json != "" {
		if err := a.outputOf(o.json, r.JSON); err != nil || o.output == "" {
			return err
		}
	}
	to := cmp.Or(o.output, toStdout)
	switch cmp.Or(o.format, strings.TrimPrefix(filepath.Ext(o.output), ".")) {
	case "json":
		return a.outputOf(to, r.JSON)
	case "html":
		if to == toStdout {
			return r.HTML(a.stdout)
		}
		return files.Write(to, "HTML report", r.HTML)
	case "md", "markdown":
		return a.output(to, []byte(r.Markdown()))
	}
	if to == toStdout {
		_, err := fmt.Fprint(a.stdout, r.Text(textOptions(a.stdout)))
		return err
	}
	return a.output(to, []byte(r.Text(report.TextOptions{})))
}
