package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hightide/internal/gpus"
	"hightide/internal/store"
)

// plainUsages takes out the backquotes by which help finds the name of a flag's value: a shell shows them.
func plainUsages(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}

// completed is how many runs a shell is offered.
const completed = 50

// completeArguments lets a shell offer a command's arguments and the values of its flags, where those are known.
func (a *app) completeArguments(c *cobra.Command) {
	switch {
	case strings.Contains(c.Use, "RUN") || c.Name() == "diff":
		c.ValidArgsFunction = a.completeRuns
	case c.Name() == "gpus":
		c.ValidArgsFunction = completeGPUs
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		offer := valuesOf[f.Name]
		if s, ok := f.Value.(flagOf); ok && s.Among != nil {
			offer = offerWords(s.Among...)
		}
		if offer != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, offer) // fails for a flag that has one already
		}
	})
}

// valuesOf are the flags whose values are known, by name: a name means the same for every command.
var valuesOf = map[string]cobra.CompletionFunc{
	"gpu":    completeGPUs,
	"policy": offerWords("native", "async", "bfc", "ideal"),
}

func offerWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeGPUs offers the GPUs of the catalogue, and all of them where a command takes that.
func completeGPUs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	catalogue, err := gpus.Load()
	if err != nil || c.Name() == "gpus" && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	if c.Name() == "imagine" || c.Name() == "replay" || c.Name() == "plan" {
		words = append(words, "all\tevery GPU of the catalogue")
	}
	list := catalogue.Real()
	if c.Name() == "gpus" || c.Name() == "plan" {
		list = catalogue.GPUs
	}
	for _, gpu := range list {
		words = append(words, gpu.Slug+"\t"+gpu.Name+", "+gpu.Total.String())
	}
	return beginning(words, begun), cobra.ShellCompDirectiveNoFileComp
}

// completeRuns offers a shell the runs, by name and id, newest first; and files, to a command that reads them. A
// shell looks for files of its own only where nothing is offered, so they are offered here.
func (a *app) completeRuns(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if c.Args != nil && c.Args(c, append(slices.Clone(args), begun)) != nil && c.Args(c, args) == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // it has all that it takes
	}
	if c.Name() == "tag" && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp // KEY=VALUE
	}
	words := []string{"last\tthe newest run"}
	runs, err := a.engine().Runs(c.Context(), store.Filter{Limit: completed})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	named := map[string]bool{}
	for _, r := range runs {
		words = append(words, r.ID+"\t"+strings.Join(r.Command, " "))
		if r.Name != "" && !named[r.Name] { // a name is the newest run of it
			named[r.Name] = true
			words = append(words, r.Name+"\trun "+r.ID)
		}
	}
	words = beginning(words, begun)
	if !strings.Contains(c.Use, "|RUN") && !strings.Contains(c.Use, "RUN|") && c.Name() != "diff" {
		return words, cobra.ShellCompDirectiveDefault
	}
	found, only := filesBeginning(begun)
	if words = append(words, found...); only && len(words) == 1 {
		return words, cobra.ShellCompDirectiveNoSpace // a folder: its name goes on
	}
	return words, cobra.ShellCompDirectiveDefault
}

// filesBeginning are the files and folders whose path begins with a text, and whether the last one is a folder.
func filesBeginning(begun string) (paths []string, folder bool) {
	dir, name := filepath.Split(begun)
	from := dir
	if dir == "" {
		from = "."
	}
	entries, _ := os.ReadDir(from) // none: nothing is offered
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := dir + e.Name()
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path += "/"
		}
		paths = append(paths, path)
	}
	return paths, len(paths) > 0 && strings.HasSuffix(paths[len(paths)-1], "/")
}

func beginning(words []string, begun string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) })
}
