package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/options"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags that take more than a plain value check it as they read it, so that a command begins with what it can
// use, wherever a value comes from. Their errors are those of package fail.

// work is what the flags of a command set, and what it does with them.
type work interface {
	AddFlags(*pflag.FlagSet)
	run(a *app, c *cobra.Command, args []string) error
}

// command gives a command its flags and its work.
func (a *app) command(c *cobra.Command, o work) *cobra.Command {
	o.AddFlags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		c.Flags().Visit(func(flag *pflag.Flag) {
			for _, why := range flag.Annotations[withoutEffect] {
				fmt.Fprintf(a.stderr, "hightide: --%s changes nothing here: %s\n", flag.Name, why)
			}
		})
		return o.run(a, c, args)
	}
	return c
}

// withoutEffect annotates flags of other tools that are accepted and change nothing, with the reason. It is said
// where one is given.
const withoutEffect = "without effect"

// olderFlags adds hidden flags of other tools that change nothing here. Those whose name ends in "=" take a value.
func olderFlags(flags *pflag.FlagSet, why string, names ...string) {
	for _, name := range names {
		name, takesValue := strings.CutSuffix(name, "=")
		if takesValue {
			flags.String(name, "", "without effect: "+why)
		} else {
			flags.Bool(name, false, "without effect: "+why)
		}
		_ = flags.SetAnnotation(name, withoutEffect, []string{why})
		_ = flags.MarkHidden(name)
	}
}

// toStdout is where --json and --markdown go without a file.
const toStdout = "-"

// fileFlag adds a flag that writes something to standard output, and with =FILE into a file.
func fileFlag(flags *pflag.FlagSet, to *string, name, does string) {
	flags.StringVar(to, name, "", does+"; with =`FILE` into a file")
	flags.Lookup(name).NoOptDefVal = toStdout
}

func jsonFlag(flags *pflag.FlagSet, to *string) { fileFlag(flags, to, "json", "print as JSON") }

// outputFlag adds the flag of a file that a command leaves: --output and -o, in every command.
func outputFlag(flags *pflag.FlagSet, to *string, usage string) {
	flags.StringVarP(to, "output", "o", "", usage)
}

// hiddenFile adds an earlier name of a flag of a file: it works, and help is silent about it.
func hiddenFile(flags *pflag.FlagSet, to *string, name string) {
	flags.StringVar(to, name, "", "an earlier name of --output: `file`")
	_ = flags.MarkHidden(name)
}

// addSettings makes flags of settings, with their defaults.
func addSettings(flags *pflag.FlagSet, all ...options.Setting) {
	list := options.List(all).Of(options.Command)
	list.Fill()
	for i := range list {
		s := flagOf{&list[i]}
		flag := flags.VarPF(s, s.Name, s.Short, s.Help)
		if s.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// flagOf is a setting as a flag.
type flagOf struct{ *options.Setting }

// Type is what help calls a value that its text does not name, and in words what it takes.
func (f flagOf) Type() string {
	switch f.To.(type) {
	case *string:
		return "string"
	case *bool, options.Off:
		return "bool"
	case *int:
		return "int"
	case *uint64:
		return "uint64"
	case *float64:
		return "float64"
	case *time.Duration:
		return "duration"
	}
	return "value"
}

// device takes the number of one.
func device(to *mem.Optional) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return fail.Usage("devices are numbered from 0, as in --device 0", "--device %s is not a device number", text)
		}
		*to = mem.Some(int64(n))
		return nil
	}
}

// deviceOrHost also takes pinned host memory for a device.
func deviceOrHost(to *mem.Optional) func(string) error {
	return func(text string) error {
		if text == "host" {
			*to = mem.Some(int64(mem.HostDevice))
			return nil
		}
		if device(to)(text) != nil {
			return fail.Usage("devices are numbered from 0; host is pinned host memory", "--device %s is not a device", text)
		}
		return nil
	}
}

// frames takes an expression for file:function.
func frames(to **regexp.Regexp) func(string) error {
	return func(text string) (err error) {
		if *to, err = regexp.Compile(text); err != nil {
			return fail.Usage("write a regular expression in the syntax of RE2, as in --filter attention",
				"--filter %s is not a regular expression: %w", text, err)
		}
		return nil
	}
}

// jsonFile lets --json take its file as the next word too, where that word ends in .json. A flag
// whose value is optional cannot, and the word looks like the command.
func jsonFile(c *cobra.Command, json *string, args []string) ([]string, error) {
	if *json != toStdout || len(args) == 0 || !strings.HasSuffix(args[0], ".json") || c.ArgsLenAtDash() == 0 {
		return args, nil
	}
	file := args[0]
	if err := c.Flags().Parse(args[1:]); err != nil {
		return nil, flagError(c, err)
	}
	*json = file
	return c.Flags().Args(), nil
}
