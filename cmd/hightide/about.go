package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/docs"
	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/words"
)

// aboutOptions of about.
type aboutOptions struct{ json string }

func aboutCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "about [KIND]",
		Short: "Say what a kind of finding means, and what it does not",
		Long: `Say what a kind of finding means: how it is found, what it does not mean, what to do.

Without KIND: all kinds, a line each. The pages that hints name are here, too, as Markdown:
` + strings.Join(docs.Pages(), ", ") + `.

Exit codes: 0 fine, 2 wrong usage, 3 no such kind or page.`,
		Example: `  hightide about
  hightide about leak
  hightide about bench`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(findingKinds(), cobra.ShellCompDirectiveNoFileComp),
	}, &aboutOptions{})
}

func findingKinds() []cobra.Completion {
	var kinds []string
	for _, f := range docs.Findings() {
		kinds = append(kinds, f.Kind)
	}
	return append(kinds, docs.Pages()...)
}

func (o *aboutOptions) AddFlags(flags *pflag.FlagSet) { jsonFlag(flags, &o.json) }

func (o *aboutOptions) run(a *app, _ *cobra.Command, args []string) error {
	all := docs.Findings()
	if len(args) == 1 && docs.Page(args[0]) != "" && o.json == "" {
		_, err := fmt.Fprint(a.stdout, docs.Page(args[0]))
		return err
	}
	if len(args) == 1 {
		i := slices.IndexFunc(all, func(f docs.Finding) bool { return f.Kind == args[0] })
		if i < 0 {
			do := "run `hightide about` for all kinds"
			if near := words.Near(args[0], findingKinds()); near != "" {
				do = fmt.Sprintf("did you mean %q?", near)
			}
			return fail.Input(do, "there is no kind of finding or page %q", args[0])
		}
		all = all[i : i+1]
	}
	kinds := struct {
		Kinds []docs.Finding `json:"kinds"`
	}{all}
	return a.show(o.json, kinds, func() error {
		width := cmp.Or(textOptions(a.stdout).Width, 100)
		for i, f := range all {
			switch {
			case len(args) == 0:
				first, _, _ := strings.Cut(f.Text, "\n\n")
				fmt.Fprintf(a.stdout, "  %-14s%s\n", f.Kind, strings.Join(report.Wrap(joined(first), max(width-16, 24)),
					"\n"+strings.Repeat(" ", 16)))
			default:
				fmt.Fprintf(a.stdout, "%s%s\n", strings.Repeat("\n", min(i, 1)), f.Kind)
				fmt.Fprintln(a.stdout, setPage(f.Text, width))
			}
		}
		return nil
	})
}

// setPage sets Markdown of paragraphs and quotes for a terminal.
func setPage(text string, width int) string {
	var out []string
	for _, p := range strings.Split(text, "\n\n") {
		indent := "  "
		if strings.HasPrefix(p, "> ") {
			indent, p = "    | ", strings.ReplaceAll(strings.TrimPrefix(p, "> "), "\n> ", "\n")
		}
		out = append(out, indent+strings.Join(report.Wrap(joined(p), max(width-len([]rune(indent)), 24)), "\n"+indent))
	}
	return strings.Join(out, "\n\n")
}

func joined(text string) string { return strings.ReplaceAll(text, "\n", " ") }
