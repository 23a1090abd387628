package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/fail"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages into a folder",
		Long: "Write the manual pages into a folder, which is made where it is not there.\n\nExit codes: 0 fine, 2 " +
			"wrong usage, 3 a folder that cannot be written.",
		Example: "  hightide man ~/.local/share/man/man1 && man hightide-run",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fail.Input("name a folder that can be written", "create folder for manual pages: %w", err)
			}
			written, err := writeManuals(c.Root(), args[0])
			if err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			_, err = fmt.Fprintf(a.stdout, "%d manual pages in %s\n", written, args[0])
			return err
		},
	}
}

// writeManuals writes the page of a command and those of its own commands; how many.
func writeManuals(c *cobra.Command, folder string) (written int, err error) {
	if !c.IsAvailableCommand() && c.HasParent() {
		return 0, nil
	}
	for _, sub := range c.Commands() {
		more, failed := writeManuals(sub, folder)
		written, err = written+more, errors.Join(err, failed)
	}
	failed := os.WriteFile(filepath.Join(folder, manualName(c)+".1"), []byte(manual(c)), 0o644)
	return written + 1, errors.Join(err, failed)
}

func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manual is the page of a command in roff, the language of man(7).
func manual(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var page strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&page, ".SH %s\n%s\n", title, strings.TrimRight(text, "\n"))
		}
	}
	fmt.Fprintf(&page, ".TH HIGHTIDE 1 \"\" \"hightide %s\"\n.nh\n", engine.Version)
	section("NAME", roff(manualName(c))+` \- `+roff(c.Short))
	section("SYNOPSIS", `\fB`+roff(c.UseLine())+`\fP`)
	section("DESCRIPTION", paragraphs(c.Long))
	section("OPTIONS", manualFlags(c.NonInheritedFlags()))
	section("OPTIONS OF ALL COMMANDS", manualFlags(c.InheritedFlags()))
	if c.Example != "" {
		section("EXAMPLES", paragraphs("  "+strings.TrimSpace(c.Example)))
	}
	var others []string
	if c.HasParent() {
		others = append(others, roff(manualName(c.Parent()))+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, roff(manualName(sub))+"(1)")
		}
	}
	section("SEE ALSO", strings.Join(others, ", "))
	return page.String()
}

// manualFlags lists flags, each with what it does.
func manualFlags(flags *pflag.FlagSet) string {
	var list strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		switch f.DefValue {
		case "", "0", "0s", "[]", "false":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&list, ".TP\n\\fB%s\\fP %s\n%s\n", roff(name), roff(manualValue(f, value)), paragraphs(usage))
	})
	return list.String()
}

// manualValue is what may follow a flag's name.
func manualValue(f *pflag.Flag, value string) string {
	if f.NoOptDefVal == toStdout {
		return "[=" + value + "]"
	}
	return value
}

// paragraphs keeps empty lines as breaks, and what is indented as it stands.
func paragraphs(text string) string {
	var lines []string
	as := false // it stands
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  ") || as && line == ""; indented != as {
			lines = append(lines, map[bool]string{true: ".EX", false: ".EE"}[indented])
			as = indented
		}
		if line == "" && !as {
			lines = append(lines, ".PP")
			continue
		}
		lines = append(lines, roff(line))
	}
	if as {
		lines = append(lines, ".EE")
	}
	return strings.Join(lines, "\n")
}

var roffed = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff is plain text as roff has it: no character of it is a command.
func roff(text string) string { return strings.TrimPrefix(roffed.Replace("\n"+text), "\n") }
