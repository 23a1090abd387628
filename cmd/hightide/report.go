package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/files"
	"hightide/internal/report"
)

// reportFlags are the forms in which a report is wanted.
type reportFlags struct {
	html, json, markdown string
	open                 bool
}

func reportCommand(a *app) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report RUN [--html FILE | --json[=FILE] | --markdown[=FILE]] [--open]",
		Short: "Write the report of a run as HTML, JSON or Markdown",
		Long: `Write the report of a run as one HTML file that needs nothing else, as JSON for programs, or as
Markdown for a comment on a change. Several forms may be asked for at once. Without any: HTML into
hightide-<run>.html in this folder.

RUN is an id, a unique beginning of one, a name (the newest run of it), "last", or the path of a
recording. Without RUN: last.

Exit codes: 0 fine, 3 no such run, not a recording, or a file that cannot be written.`,
		Example: `  hightide report last --open
  hightide report last --json | jq .headline
  hightide report bigger-batch --html report.html --markdown=comment.md`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), a, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.html, "html", "", "write one HTML `file`")
	flags.StringVar(&f.json, "json", "", "print JSON; with =`FILE` into a file")
	flags.StringVar(&f.markdown, "markdown", "", "print Markdown; with =`FILE` into a file")
	flags.Lookup("json").NoOptDefVal = jsonToStdout
	flags.Lookup("markdown").NoOptDefVal = jsonToStdout
	flags.BoolVar(&f.open, "open", false, "open the HTML report in a browser")
	return c
}

func (f *reportFlags) run(ctx context.Context, a *app, args []string) error {
	r, row, err := a.engine().Report(ctx, runRef(args))
	if err != nil {
		return err
	}
	if f.html == "" && (f.open || f.json == "" && f.markdown == "") {
		f.html = "hightide-" + fileName(r, row) + ".html"
	}
	if f.json != "" {
		text, err := r.JSON()
		if err != nil {
			return err
		}
		if err := a.output(f.json, text); err != nil {
			return err
		}
	}
	if f.markdown != "" {
		if err := a.output(f.markdown, []byte(r.Markdown())); err != nil {
			return err
		}
	}
	return f.writeHTML(a, r)
}

func (f *reportFlags) writeHTML(a *app, r *report.Report) error {
	if f.html == "" {
		return nil
	}
	if err := engine.WriteHTML(f.html, r); err != nil {
		return err
	}
	path, err := filepath.Abs(f.html)
	if err != nil {
		path = f.html
	}
	fmt.Fprintf(a.stderr, "Report: %s\n", path)
	if f.open {
		if err := openInBrowser(path); err != nil {
			fmt.Fprintf(a.stderr, "hightide: cannot open a browser: %v\n", err)
		}
	}
	return nil
}

// fileName tells runs apart in a folder of reports.
func fileName(r *report.Report, row engine.Run) string {
	switch {
	case row.ID != "":
		return filepath.Base(row.ID)
	case r.Run.ID != "":
		return filepath.Base(r.Run.ID)
	}
	return "report"
}

// output writes to a file, or to standard output for "-".
func (a *app) output(file string, text []byte) error {
	if file == jsonToStdout {
		_, err := a.stdout.Write(text)
		return err
	}
	return files.Write(file, "report", func(w io.Writer) error { _, err := w.Write(text); return err })
}
