package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// pruneOptions of prune.
type pruneOptions struct {
	store.Limits
	yes  bool
	json string
}

func pruneCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "prune [--older-than TIME] [--max-size SIZE]",
		Short: "Delete old runs, or the oldest beyond a size",
		Long: `Delete runs that began longer ago than a time, and the oldest beyond a size on disk. Runs that still
run, and runs with the tag "keep", stay. What would go is shown first, and asked for; a script says --yes.

Exit codes: 0 fine, also where the answer was no; 2 wrong usage, or no terminal to ask on and no --yes.`,
		Example: `  hightide prune --older-than 30d
  hightide prune --max-size 10GiB --dry-run
  hightide prune --project ranker --older-than 90d
  hightide tag last keep && hightide prune --older-than 1w --yes`,
		Args: cobra.NoArgs,
	}, &pruneOptions{})
}

func (o *pruneOptions) AddFlags(flags *pflag.FlagSet) {
	flags.Func("older-than", "delete runs that began longer ago than a `time`, as in 12h, 30d, 8w", o.setAge)
	addSettings(flags, options.Setting{Name: "max-size", To: &o.Bytes, Example: "500MiB or 10GiB",
		Help: "delete the oldest until the rest takes no more than a `size`, as in 500MiB, 10GiB"})
	flags.StringVar(&o.Project, "project", "", "only runs of this `project`, by their tag project=NAME")
	flags.BoolVar(&o.Preview, "dry-run", false, "only say what would be deleted")
	flags.BoolVarP(&o.yes, "yes", "y", false, "delete without asking")
	jsonFlag(flags, &o.json)
}

// setAge reads 90m, 12h, 30d or 8w.
func (o *pruneOptions) setAge(text string) (err error) {
	if o.Age, err = mem.ParseAge(text); err != nil {
		return fail.Usage("write it as 12h, 30d or 8w", "%w", err)
	}
	return nil
}

func (o *pruneOptions) run(a *app, c *cobra.Command, _ []string) error {
	if o.Age == 0 && o.Bytes == 0 {
		return fail.Usage("for example: hightide prune --older-than 30d", "name what to delete: --older-than or --max-size")
	}
	o.Now = a.runtime.Time()
	if !o.Preview && !o.yes {
		if may, err := o.ask(a, c); err != nil || !may {
			return err
		}
	}
	gone, err := a.engine().Prune(c.Context(), o.Limits)
	if err != nil {
		return err
	}
	verb := "deleted"
	if o.Preview {
		verb = "would delete"
	}
	return a.show(o.json, runsJSON(gone), func() error { return o.print(a.stdout, verb, gone) })
}

// ask shows what would go, and asks whether it may. Where nobody can answer that is an error.
func (o *pruneOptions) ask(a *app, c *cobra.Command) (yes bool, err error) {
	preview := o.Limits
	preview.Preview = true
	gone, err := a.engine().Prune(c.Context(), preview)
	if err != nil || len(gone) == 0 {
		return true, err
	}
	var total int64
	for _, run := range gone {
		total += run.Size
	}
	what := fmt.Sprintf("%s, %v", report.Counted(int64(len(gone)), "run"), mem.Bytes(total))
	if !a.canAsk() {
		return false, fail.Usage("--dry-run shows them, --yes deletes them",
			"%s would be deleted, and there is no terminal to ask on", what)
	}
	if err := o.print(a.stderr, "would delete", gone); err != nil {
		return false, err
	}
	if a.agreed("Delete " + what + "?") {
		return true, nil
	}
	fmt.Fprintln(a.stderr, "nothing was deleted")
	return false, nil
}

func (o *pruneOptions) print(to io.Writer, verb string, gone []store.Run) error {
	total := int64(0)
	for _, run := range gone {
		total += run.Size
		fmt.Fprintf(to, "%s %s, %s, %v\n", verb, describe(run), ago(o.Now, time.Unix(0, run.Start)), mem.Bytes(run.Size))
	}
	_, err := fmt.Fprintf(to, "%s %s, %v\n", verb, report.Counted(int64(len(gone)), "run"), mem.Bytes(total))
	return err
}
