package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// pruneOptions of prune.
type pruneOptions struct {
	store.Limits
	json string
}

func pruneCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "prune [--older-than TIME] [--max-size SIZE]",
		Short: "Delete old runs, or the oldest beyond a size",
		Long: `Delete runs that began longer ago than a time, and the oldest beyond a size on disk. Runs that still
run, and runs with the tag "keep", stay.`,
		Example: `  hightide prune --older-than 30d
  hightide prune --max-size 10GiB --dry-run
  hightide tag last keep && hightide prune --older-than 1w`,
		Args: cobra.NoArgs,
	}, &pruneOptions{})
}

func (o *pruneOptions) AddFlags(flags *pflag.FlagSet) {
	flags.Func("older-than", "delete runs that began longer ago than a `time`, as in 12h, 30d, 8w", o.setAge)
	flags.Func("max-size", "delete the oldest until the rest takes no more than a `size`, as in 500MiB, 10GiB", size(&o.Bytes, "500MiB or 10GiB"))
	flags.BoolVar(&o.Preview, "dry-run", false, "only say what would be deleted")
	jsonFlag(flags, &o.json)
}

// setAge reads 90m, 12h, 30d or 8w.
func (o *pruneOptions) setAge(text string) error {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			if value, err := strconv.ParseFloat(number, 64); err == nil && value > 0 && value < 1e5 {
				o.Age = time.Duration(value * float64(unit))
				return nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		o.Age = d
		return nil
	}
	return fail.Usage("write it as 12h, 30d or 8w", "%q is not a time", text)
}

func (o *pruneOptions) run(a *app, c *cobra.Command, _ []string) error {
	if o.Age == 0 && o.Bytes == 0 {
		return fail.Usage("for example: hightide prune --older-than 30d", "say what may go: --older-than or --max-size")
	}
	gone, err := a.engine().Prune(c.Context(), o.Limits)
	if err != nil {
		return err
	}
	return a.show(o.json, runsJSON(gone), func() error { return o.print(a, gone) })
}

func (o *pruneOptions) print(a *app, gone []store.Run) error {
	verb, total := "deleted", int64(0)
	if o.Preview {
		verb = "would delete"
	}
	now := a.runtime.Time()
	for _, run := range gone {
		total += run.Size
		fmt.Fprintf(a.stdout, "%s %s, %s, %v\n", verb, describe(run), ago(now, time.Unix(0, run.Start)), mem.Bytes(run.Size))
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s, %v\n", verb, report.Counted(int64(len(gone)), "run"), mem.Bytes(total))
	return err
}
