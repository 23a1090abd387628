package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/diagnose"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/report"
)

// diagnoseOptions of diagnose.
type diagnoseOptions struct {
	output, json string
}

func diagnoseCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "diagnose [RUN] [--output FILE]",
		Short: "Make one redacted bundle for a bug report: machine, versions, limits, and what a run recorded",
		Long: `Make one redacted bundle for a bug report: the machine and its limits, Pythons and frameworks, the latest
runs, and of RUN (without it: the last one) the recording, its report, events, logs and last allocator
snapshot. The bundle is one .tar.gz; manifest.json in it says what each file is and what was left out.

Left out are names of the host, users and runs, tags, folders of paths, arguments and environment. Names of
files, functions and modules stay: look at report.txt before you pass the bundle on.

Exit codes: 0 the bundle is written, whatever was found; 2 wrong usage; 3 no such run, or a file that
cannot be written.`,
		Example: `  hightide diagnose
  hightide diagnose baseline --output report-this.tar.gz
  hightide diagnose --json | jq .findings`,
		Args: cobra.MaximumNArgs(1),
	}, &diagnoseOptions{})
}

func (o *diagnoseOptions) AddFlags(flags *pflag.FlagSet) {
	olderFlags(flags, "nothing is recorded for the bundle; name a run to have it in", "duration=", "interval=",
		"device=", "native-history", "native-history-max-entries=")
	outputFlag(flags, &o.output, "the bundle's `file` (default hightide-diagnose-<time>.tar.gz in this folder)")
	jsonFlag(flags, &o.json)
}

// diagnosed is what diagnose says for programs.
type diagnosed struct {
	*diagnose.Diagnosis
	Bundle string `json:"bundle"`
}

func (o *diagnoseOptions) run(a *app, c *cobra.Command, args []string) error {
	path := cmp.Or(o.output, "hightide-diagnose-"+a.runtime.Time().UTC().Format("20060102-150405")+".tar.gz")
	if files.IsFolder(path) {
		return fail.Usage("as in --output bug.tar.gz", "--output names one file, and %s is a folder", path)
	}
	if len(args) > 0 {
		if _, err := a.engine().Resolve(c.Context(), args[0]); err != nil {
			return err
		}
	}
	var found *diagnose.Diagnosis
	err := files.Write(path, "bundle", func(w io.Writer) (err error) {
		found, err = diagnose.Write(c.Context(), a.engine(), runRef(args), w)
		return err
	})
	if err != nil {
		return err
	}
	return a.show(o.json, diagnosed{found, path}, func() error {
		about := "no run is in it: " + found.Why
		if found.Run != "" {
			about = fmt.Sprintf("run %s is in it, with %s", found.Run, report.Counted(int64(len(found.Findings)), "finding"))
		}
		_, err := fmt.Fprintf(a.stdout, "%s\n%s\n%s\nLeft out: %s.\n", path, about, strings.Join(found.Findings, "\n"),
			strings.Join(found.LeftOut, "; "))
		return err
	})
}
