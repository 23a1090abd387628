package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/options"
	"hightide/internal/report"
	"hightide/internal/store"
)

// tagOptions of tag.
type tagOptions struct {
	set    map[string]string
	remove []string
	name   *string
	json   string
}

func tagCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "tag RUN [KEY | KEY=VALUE]...",
		Short: "Set tags and the name of a run",
		Long: `Set tags of a run, remove some, or give it a name. Tags are written into the recording and travel with
the file. The tag "keep" protects a run from prune. With a RUN alone its tags are printed.

Exit codes: 0 fine, 2 wrong usage, 3 no such run.`,
		Example: `  hightide tag last model=bert keep
  hightide tag last --name baseline
  hightide tag baseline --remove keep`,
		Args: cobra.MinimumNArgs(1),
	}, &tagOptions{})
}

func (o *tagOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.remove, "remove", nil, "remove the tag of this `key`; may be given several times")
	flags.Func("name", "`name` of the run; an empty one takes it away", o.setName)
	jsonFlag(flags, &o.json)
}

func (o *tagOptions) setName(name string) error {
	o.name = new(string)
	if name == "" {
		return nil
	}
	if err := options.RunName(name); err != nil {
		return err
	}
	*o.name = name
	return nil
}

func (o *tagOptions) run(a *app, c *cobra.Command, args []string) error {
	for _, text := range args[1:] {
		if err := (options.Tags{To: &o.set, Bare: true}).Set(text); err != nil {
			return err
		}
	}
	run, err := o.change(a, c.Context(), args[0])
	if err != nil {
		return err
	}
	return a.show(o.json, run, func() error {
		_, err := fmt.Fprintln(a.stdout, strings.TrimSpace(describe(run)+"  "+report.Clean(tagsText(run))))
		return err
	})
}

func (o *tagOptions) change(a *app, ctx context.Context, ref string) (store.Run, error) {
	if len(o.set) == 0 && len(o.remove) == 0 && o.name == nil {
		return a.engine().Resolve(ctx, ref)
	}
	return a.engine().Tag(ctx, ref, o.set, o.remove, o.name)
}
