package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hightide/internal/fail"
	"hightide/internal/mem"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags that take more than a plain value check it as they read it, so that a command begins with what it can
// use, wherever a value comes from. Their errors are those of package fail.

// options are what the flags of a command set, and what it does with them.
type options interface {
	AddFlags(*pflag.FlagSet)
	run(a *app, c *cobra.Command, args []string) error
}

// command gives a command its flags and its work.
func (a *app) command(c *cobra.Command, o options) *cobra.Command {
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

// atLeastOne refuses a number below 1 that was given to one of some flags, where 0 means that none was.
func atLeastOne(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if n, err := c.Flags().GetInt(name); err == nil && n < 1 && c.Flags().Changed(name) {
			return fail.Usage("it takes a whole number of 1 or more", "--%s %d is less than 1", name, n)
		}
	}
	return nil
}

func catalogueFlag(flags *pflag.FlagSet, to *[]string) {
	flags.StringArrayVar(to, "catalogue", nil, "a `file` with more GPUs, TOML or CSV; may be given several times")
}

// text is a flag of a word that may have to pass a check.
type text struct {
	to    *string
	check func(string) error // nil: takes any
	among []string           // the words it takes; nil: others too
}

func (t text) String() string { return *t.to }
func (t text) Type() string   { return "string" }

func (t text) Set(word string) error {
	if t.check != nil {
		if err := t.check(word); err != nil {
			return err
		}
	}
	*t.to = word
	return nil
}

// choice is a flag that takes one of some words; otherwise is what it is where it is not given.
func choice(to *string, flag, otherwise string, among []string) text {
	*to = otherwise
	return text{to, func(word string) error {
		if !slices.Contains(among, word) {
			return fail.Choice(flag, word, among)
		}
		return nil
	}, among}
}

// size takes a number of bytes as people write it.
func size(to *mem.Bytes, such string) func(string) error {
	return func(text string) error {
		bytes, err := mem.ParseBytes(text)
		if err == nil && bytes < 1 {
			err = fmt.Errorf("%q is not a size", text)
		}
		if err != nil {
			return fail.Usage("write it as "+such, "%w", err)
		}
		*to = bytes
		return nil
	}
}

// span is a flag of a time, with its unit, that is no less than some other.
type span struct {
	to    *time.Duration
	least time.Duration
}

func (s span) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return s.to.String()
}

func (s span) Type() string { return "duration" }

func (s span) Set(word string) error {
	d, err := time.ParseDuration(word)
	switch {
	case err != nil || word == "0" || strings.HasPrefix(word, "+"):
		return fail.Usage("write it as 90s, 100ms or 2h", "%q is not a time", word)
	case d < s.least:
		return fail.Usage("write it as 90s, 100ms or 2h", "%s is too short: %v is the least", word, s.least)
	}
	*s.to = d
	return nil
}

// runName is a flag of a name for a run, by which other commands find it.
func runName(to *string) text {
	return text{to: to, check: func(name string) error {
		switch {
		case name == "last":
			return fail.Usage("choose another name", "last means the newest run, whatever it is called")
		case name == "" || strings.TrimSpace(name) != name:
			return fail.Usage("choose another name", "a name is not empty, and neither begins nor ends with a space: %q", name)
		case strings.ContainsFunc(name, unicode.IsControl):
			return fail.Usage("choose another name", "a name has no line breaks or other control characters: %q", name)
		}
		return nil
	}}
}

// tag takes key=value, and where bare keys will do, key.
func tag(to *map[string]string, bare bool) func(string) error {
	return func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if strings.ContainsFunc(text, unicode.IsControl) {
			return fail.Usage("write it as model=bert", "a tag has no line breaks or other control characters: %q", text)
		}
		if key == "" || !ok && !bare {
			return fail.Usage("write it as model=bert", "tag %q is not of the form key=value", text)
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[key] = value
		return nil
	}
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
