package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/store"
	"hightide/internal/words"
)

// app is what the commands share: where to print and where the recordings are.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	runtime launch.Runtime // of this process
	dataDir string         // --data-dir; empty: the default
	store   string         // --store and --objects, of a team; empty: the data directory
	objects string

	namesakes map[string]bool // names of which it was said that several runs have them
}

// engine is the product behind the flags.
func (a *app) engine() *engine.Engine {
	return &engine.Engine{DataDir: a.dataDir, Team: a.store, Objects: a.objects, Runtime: a.runtime,
		Namesakes: a.sayNewest}
}

// sayNewest says once which of several runs of one name is meant.
func (a *app) sayNewest(taken store.Run) {
	if a.namesakes[taken.Name] {
		return
	}
	if a.namesakes == nil {
		a.namesakes = map[string]bool{}
	}
	a.namesakes[taken.Name] = true
	fmt.Fprintf(a.stderr, "hightide: %d runs are called %q; the newest is meant, %s\n", taken.Namesakes+1,
		taken.Name, taken.ID)
}

// exitStatus ends the program with the code of an observed command, without a message.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// flagError says which flag was meant, where one is near.
func flagError(c *cobra.Command, err error) error {
	help := "see hightide " + helpName(c) + "--help"
	var invalid *pflag.InvalidValueError
	var checked *fail.Error
	switch errors.As(err, &invalid); {
	case errors.As(err, &checked) && (invalid == nil || strings.Contains(checked.Error(), invalid.GetFlag().Name)):
		return checked
	case checked != nil:
		return &fail.Error{Code: checked.Code, Err: fmt.Errorf("--%s: %w", invalid.GetFlag().Name, checked.Err),
			Hint: checked.Hint}
	case invalid != nil:
		return badValue(c, help, invalid)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return fail.Usage(help, "%w", err)
	}
	if near := nearFlag(c, unknown.GetSpecifiedName()); near != "" {
		return fail.Usage(help, "%w; did you mean --%s?", err, near)
	}
	if others := commandsWith(c.Root(), unknown.GetSpecifiedName()); len(others) > 0 {
		help += fmt.Sprintf("; --%s is a flag of hightide %s", unknown.GetSpecifiedName(), strings.Join(others, ", "))
	}
	return fail.Usage(help, "%w", err)
}

// nearFlag is the flag of a command that an unknown one most likely meant: one that begins with it, or is spelt much
// like it; "" for none.
func nearFlag(c *cobra.Command, name string) string {
	var flags []string
	begun := ""
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags = append(flags, f.Name)
		if begun == "" && strings.HasPrefix(f.Name, name) {
			begun = f.Name
		}
	})
	if begun == "" {
		return words.Near(name, flags)
	}
	return begun
}

// commandsWith are the other commands that have a flag.
func commandsWith(root *cobra.Command, flag string) []string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden && c.Flags().Lookup(flag) != nil {
			names = append(names, c.Name())
		}
	}
	return names
}

// badValue says what a flag takes, in words of people and not of the parser.
func badValue(c *cobra.Command, help string, err *pflag.InvalidValueError) error {
	flag := err.GetFlag()
	if one, many := strings.CutSuffix(flag.Name, "s"); many && c.Flags().Lookup(one) != nil { // --gpus a10
		help = fmt.Sprintf("did you mean --%s %s? Else %s", one, err.GetValue(), help)
	}
	if wants(flag) == "" {
		return fail.Usage(help, "%w", err)
	}
	return fail.Usage(help, "--%s %s: it %s", flag.Name, err.GetValue(), wants(flag))
}

// wants says what a flag of a plain type takes; "" of another one.
func wants(flag *pflag.Flag) string {
	return map[string]string{"bool": "is a switch and takes no value", "int": "takes a whole number, as 20",
		"uint64": "takes a whole number of 0 or more, as 200", "float64": "takes a number"}[flag.Value.Type()]
}

func helpName(c *cobra.Command) string {
	if c.HasParent() {
		return c.Name() + " "
	}
	return ""
}
