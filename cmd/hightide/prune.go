package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func pruneCommand(a *app) *cobra.Command {
	var older, size string
	var preview, asJSON bool
	c := &cobra.Command{
		Use:   "prune [--older-than TIME] [--max-size SIZE]",
		Short: "Delete old runs, or the oldest beyond a size",
		Long: `Delete runs that began longer ago than a time, and the oldest beyond a size on disk. Runs that still
run, and runs with the tag "keep", stay.`,
		Example: `  hightide prune --older-than 30d
  hightide prune --max-size 10GiB --dry-run
  hightide tag last keep && hightide prune --older-than 1w`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			limits := engine.PruneLimits{Preview: preview}
			var err error
			if limits.Age, err = parseAge(older); err != nil {
				return err
			}
			if limits.Bytes, err = parseSize(size); err != nil {
				return err
			}
			if limits.Age == 0 && limits.Bytes == 0 {
				return engine.UsageError("for example: hightide prune --older-than 30d", "say what may go: --older-than or --max-size")
			}
			gone, err := a.engine().Prune(c.Context(), limits)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(runList{1, append([]engine.Run{}, gone...)})
			}
			return a.printPruned(gone, preview)
		},
	}
	c.Flags().StringVar(&older, "older-than", "", "delete runs that began longer ago, as in 12h, 30d, 8w")
	c.Flags().StringVar(&size, "max-size", "", "delete the oldest until the rest takes no more, as in 500MiB, 10GiB")
	c.Flags().BoolVar(&preview, "dry-run", false, "only say what would be deleted")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was deleted as JSON")
	return c
}

func (a *app) printPruned(gone []engine.Run, preview bool) error {
	verb, total := "deleted", int64(0)
	if preview {
		verb = "would delete"
	}
	for _, run := range gone {
		total += run.Size
		fmt.Fprintf(a.stdout, "%s %s, %s, %v\n", verb, describe(run), ago(time.Now(), time.Unix(0, run.Start)), mem.Bytes(run.Size))
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s, %v\n", verb, report.Counted(int64(len(gone)), "run"), mem.Bytes(total))
	return err
}

// parseAge reads 90m, 12h, 30d or 8w; empty is no limit.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			if value, err := strconv.ParseFloat(number, 64); err == nil && value > 0 && value < 1e5 {
				return time.Duration(value * float64(unit)), nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, engine.UsageError("write it as 12h, 30d or 8w", "%q is not a time", text)
}

// parseSize reads 500MiB, 10GiB, 1.5TB or a number of bytes; empty is no limit.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if bytes, err := mem.ParseBytes(text); err == nil && bytes >= 1 {
		return int64(bytes), nil
	}
	return 0, engine.UsageError("write it as 500MiB or 10GiB", "%q is not a size", text)
}
