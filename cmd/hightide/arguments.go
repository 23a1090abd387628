package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hightide/internal/fail"
	"hightide/internal/words"
)

// usageArgs turns a complaint about the number of a command's arguments into exit code 2, what it takes, and the way to
// write it.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(c *cobra.Command, args []string) error {
		err := check(c, args)
		var told *fail.Error
		if err == nil || errors.As(err, &told) {
			return err
		}
		given := "no argument was given"
		if len(args) > 0 {
			given = "wrong number of arguments: " + strings.Join(args, " ")
		}
		return fail.Usage("write hightide "+c.Use+"; hightide "+c.Name()+" --help has examples", "%s takes %s; %s", c.Name(),
			takenBy(c.Use), given)
	}
}

// flagsOfUse are the parts of a line of usage that are flags, in the order in which they are taken out.
var flagsOfUse = []*words.Pattern{
	words.Lazy(`\[=FILE\]|\[flags\]|\[--\]`),
	words.Lazy(`\|\s*--[a-z-]+( [A-Z]+\b)?`),
	words.Lazy(`\[[^\[\]]*--[^\[\]]*\]`),
	words.Lazy(`--[a-z-]+ [A-Z]+`),
}

// takenBy is what a command takes besides flags, by its line of usage.
func takenBy(use string) string {
	_, rest, _ := strings.Cut(use, " ")
	for _, flags := range flagsOfUse {
		rest = flags.Regexp().ReplaceAllString(rest, "")
	}
	rest = strings.ReplaceAll(strings.Join(strings.Fields(rest), " "), " ]", "]")
	if rest == "" {
		return "no argument"
	}
	return rest
}

// checkArgs also says that the budget of check goes to a flag.
func checkArgs(c *cobra.Command, args []string) error {
	if len(args) == 2 && !c.Flags().Changed("budget") {
		return fail.Usage(fmt.Sprintf("hightide check --budget %s %s", args[0], args[1]),
			"check takes SNAPSHOT|RUN, and the budget by its flag")
	}
	return cobra.ExactArgs(1)(c, args)
}
