package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/comments"
	"hightide/internal/files"
	"hightide/internal/report"
	"hightide/internal/store"
)

// reportOptions are the forms in which a report is wanted.
type reportOptions struct {
	html, json, markdown string
	open                 bool
}

func reportCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "report [RUN] [--html FILE | --json[=FILE] | --markdown[=FILE]] [--open]",
		Short: "Write the report of a run as HTML, JSON or Markdown",
		Long: `Write the report of a run as one HTML file that needs nothing else, as JSON for programs, or as
Markdown for a comment on a change. Several forms may be asked for at once. Without any: HTML into
hightide-<run>.html in this folder.

RUN is an id, a unique beginning of one, a name (the newest run of it), "last", or the path of a
recording. Without RUN: last.

Exit codes: 0 fine, 2 wrong usage, 3 no such run, not a recording, or a file that cannot be written.`,
		Example: `  hightide report last --open
  hightide report last --json | jq .headline
  hightide report bigger-batch --html report.html --markdown=comment.md`,
		Args: cobra.MaximumNArgs(1),
	}, &reportOptions{})
}

func (o *reportOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.html, "html", "", "write one HTML `file`")
	jsonFlag(flags, &o.json)
	fileFlag(flags, &o.markdown, "markdown", "print as Markdown")
	flags.BoolVar(&o.open, "open", false, "open the HTML report in a browser")
}

func (o *reportOptions) run(a *app, c *cobra.Command, args []string) error {
	r, row, err := a.engine().Report(c.Context(), runRef(args))
	if err != nil {
		return err
	}
	name := fileName(r, row)
	if !o.asked() {
		o.html = pageName(name)
	}
	said, err := comments.With(c.Context(), a.engine(), r, row.ID)
	if err != nil {
		return err
	}
	return o.writePage(a, r, name, r.JSON, said.HTML)
}

// asked says whether any form was asked for.
func (o *reportOptions) asked() bool {
	return o.html != "" || o.json != "" || o.markdown != "" || o.open
}

// write writes a report in all forms asked for; name is for a page that was given none.
func (o *reportOptions) write(a *app, r *report.Report, name string, asJSON func() ([]byte, error)) error {
	return o.writePage(a, r, name, asJSON, r.HTML)
}

// writePage is write with a page of its own.
func (o *reportOptions) writePage(a *app, r *report.Report, name string, asJSON func() ([]byte, error),
	page func(io.Writer) error) error {
	if o.json != "" {
		if err := a.outputOf(o.json, asJSON); err != nil {
			return err
		}
	}
	if o.markdown != "" {
		if err := a.output(o.markdown, []byte(r.Markdown())); err != nil {
			return err
		}
	}
	if o.html == "" && o.open {
		o.html = pageName(name)
	}
	if o.html == "" {
		return nil
	}
	path, err := a.savePage(o.html, page)
	if err == nil && o.open {
		a.openInBrowser(path)
	}
	return err
}

// savePage writes a page as one file, and tells where it is.
func (a *app) savePage(name string, page func(io.Writer) error) (path string, err error) {
	if err := files.Write(name, "HTML report", page); err != nil {
		return "", err
	}
	if path, err = filepath.Abs(name); err != nil {
		path = name
	}
	_, err = fmt.Fprintf(a.stderr, "Report: %s\n", path)
	return path, err
}

// showOr is show, but for a page that was asked for and no JSON.
func (a *app) showOr(html string, saved *report.Saved, as string, value any, text func() error) error {
	if html == "" {
		return a.show(as, value, text)
	}
	if _, err := a.savePage(html, saved.HTML); err != nil || as == "" {
		return err
	}
	return a.show(as, value, text)
}

func pageName(name string) string { return "hightide-" + name + ".html" }

// fileName tells runs apart in a folder of reports.
func fileName(r *report.Report, row store.Run) string {
	switch {
	case row.ID != "":
		return filepath.Base(row.ID)
	case r.Run.ID != "":
		return filepath.Base(r.Run.ID)
	}
	return "report"
}
