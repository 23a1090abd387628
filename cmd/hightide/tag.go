package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/engine"
	"hightide/internal/report"
)

func tagCommand(a *app) *cobra.Command {
	var remove []string
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use:   "tag RUN [KEY | KEY=VALUE]...",
		Short: "Set tags and the name of a run",
		Long: `Set tags of a run, remove some, or give it a name. Tags are written into the recording and travel with
the file. The tag "keep" protects a run from prune. With a RUN alone its tags are printed.`,
		Example: `  hightide tag last model=bert keep
  hightide tag last --name baseline
  hightide tag baseline --remove keep`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			set := map[string]string{}
			for _, tag := range args[1:] {
				key, value, _ := strings.Cut(tag, "=")
				if key == "" {
					return engine.UsageError("write it as model=bert", "tag %q has no key", tag)
				}
				set[key] = value
			}
			var rename *string
			if c.Flags().Changed("name") {
				rename = &name
			}
			run, err := a.tag(c.Context(), args[0], set, remove, rename)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(run)
			}
			_, err = fmt.Fprintln(a.stdout, strings.TrimSpace(describe(run)+"  "+report.Clean(tagsText(run))))
			return err
		},
	}
	c.Flags().StringArrayVar(&remove, "remove", nil, "remove the tag of this `key`; may be given several times")
	c.Flags().StringVar(&name, "name", "", "name of the run")
	c.Flags().BoolVar(&asJSON, "json", false, "print the run as JSON")
	return c
}

func (a *app) tag(ctx context.Context, ref string, set map[string]string, remove []string, name *string) (engine.Run, error) {
	if len(set) == 0 && len(remove) == 0 && name == nil {
		return a.engine().Resolve(ctx, ref)
	}
	return a.engine().Tag(ctx, ref, set, remove, name)
}
