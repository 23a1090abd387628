package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"hightide/internal/bench"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/matrix"
	"hightide/internal/report"
)

// benchOut is what bench writes besides the terminal, and what it compares with.
type benchOut struct {
	json, html, junit, baseline string
	seedResults                 string
	exports                     map[string]*string
	failOver                    []string
	strict, github, reports     bool

	over   matrix.FailOver
	before *matrix.Result
}

func (o *benchOut) AddFlags(flags *pflag.FlagSet) {
	fileFlag(flags, &o.json, "json", "print the result as JSON, which --baseline reads")
	o.exports = map[string]*string{}
	for _, e := range matrix.Exports {
		if e.Name != "json" {
			o.exports[e.Name] = flags.String(e.Name, "", "write to this `file`: "+e.Writes)
		}
	}
	flags.StringVar(&o.html, "html", "", "write the result as one page to this `file`: filters, charts, tables")
	flags.StringVar(&o.seedResults, "seed-results", "",
		"write each cell's samples into folders of this `folder`: timestamp,rss,vms,page_faults,…")
	flags.BoolVar(&o.reports, "reports", false,
		"with --html: write the report of one run of each cell too, into a folder beside the page that links to them")
	flags.StringVar(&o.baseline, "baseline", "", "compare each cell with an earlier result, a `file` that --json wrote")
	flags.StringArrayVar(&o.failOver, "fail-over", nil,
		"a figure is worse from this `percent` above the baseline on: 3% (the default), or step_time=10%; may be given "+
			"several times")
	flags.BoolVar(&o.strict, "strict", false, "fail too where it is not known whether a cell is worse")
	flags.StringVar(&o.junit, "junit", "", "write the comparison with the baseline as JUnit XML to this `file`")
	flags.BoolVar(&o.github, "github", false, "annotate a change on GitHub with what is worse than the baseline")
}

// check refuses what cannot be written or read, before anything is measured.
func (o *benchOut) check(asked bench.Options) error {
	written := map[string]string{"the page": o.html, "the JUnit file": o.junit}
	if o.json != toStdout {
		written["the result"] = o.json
	}
	for name, file := range o.exports {
		written["the "+name+" file"] = *file
	}
	for what, file := range written {
		if file == "" {
			continue
		}
		if err := files.CheckFolder(file, what); err != nil {
			return err
		}
	}
	if o.reports && o.html == "" {
		return fail.Usage("name the page that links to them: --html FILE", "--reports has no effect without --html")
	}
	axes, err := bench.Axes(asked)
	if err != nil {
		return err
	}
	if *o.exports[matrix.SeedCSV] != "" || o.seedResults != "" {
		if err := matrix.CheckSeedCSV(axes); err != nil {
			return err
		}
	}
	if o.baseline != "" {
		return o.readBaseline(axes)
	}
	for flag, set := range map[string]bool{"fail-over": len(o.failOver) > 0, "strict": o.strict, "junit": o.junit != "",
		"github": o.github} {
		if set {
			return fail.Usage("name the result to compare with: --baseline FILE", "--%s has no effect without --baseline", flag)
		}
	}
	return nil
}

// readBaseline reads what is compared with, and refuses it where no cell of it could be one of the spec's.
func (o *benchOut) readBaseline(axes []matrix.Axis) error {
	const hint = "measure one: hightide bench FILE --json=baseline.json"
	var err error
	if o.over, err = matrix.ParseFailOver(o.failOver); err != nil {
		return err
	}
	file, err := os.Open(o.baseline)
	if err != nil {
		return fail.Unread(hint, err)
	}
	defer file.Close()
	if o.before, err = matrix.ReadJSON(file); err != nil {
		return fail.Input(hint, "%s: %w", o.baseline, err)
	}
	return matrix.Comparable(axes, o.before)
}

// compare says what the result says, and how it stands beside the baseline.
func (o *benchOut) compare(ctx context.Context, a *app, r *matrix.Result, catalogue []string) (*matrix.Comparison,
	error) {
	comparison, err := bench.Compare(ctx, a.engine(), r, catalogue)
	if err != nil || o.before == nil {
		return comparison, err
	}
	comparison.Regression, err = matrix.Against(r, o.before, matrix.Options{}, o.over)
	return comparison, err
}

// write writes every file that was asked for, and what GitHub reads.
func (o *benchOut) write(ctx context.Context, a *app, r *matrix.Result, c *matrix.Comparison, spec string) error {
	for _, e := range matrix.Exports {
		file := o.json
		if e.Name != "json" {
			file = *o.exports[e.Name]
		}
		if err := o.to(a, file, func(w io.Writer) error { return e.Write(w, r, c) }); err != nil {
			return err
		}
	}
	if err := o.page(ctx, a, r, c); err != nil {
		return err
	}
	if o.seedResults != "" {
		n, err := bench.WriteSeed(ctx, a.engine(), r, o.seedResults)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "hightide: samples of %s in %s\n", report.Counted(int64(n), "cell"), o.seedResults)
	}
	g := c.Regression
	if g == nil {
		return nil
	}
	if err := o.to(a, o.junit, g.JUnit); err != nil {
		return err
	}
	if !o.github {
		return nil
	}
	lines := a.stdout
	if o.json == toStdout { // GitHub reads both
		lines = a.stderr
	}
	return g.Annotations(lines, spec)
}

// page writes the page, and beside it the reports that it links to.
func (o *benchOut) page(ctx context.Context, a *app, r *matrix.Result, c *matrix.Comparison) error {
	var reports map[string]string
	if o.reports {
		folder := strings.TrimSuffix(o.html, filepath.Ext(o.html)) + "-cells"
		var err error
		if reports, err = bench.CellReports(ctx, a.engine(), r, c.Figure, folder); err != nil {
			return err
		}
	}
	return o.to(a, o.html, func(w io.Writer) error { return matrix.HTML(w, r, c, reports) })
}

func (o *benchOut) to(a *app, file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if err := a.output(file, text.Bytes()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
