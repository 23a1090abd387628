package main

import (
	"hightide/internal/engine"

	"github.com/spf13/cobra"
)

// applyDefaults sets the flags of a command that were not given on the command line to what the
// settings files say; the later file wins.
func applyDefaults(c *cobra.Command, _ []string) error {
	files, err := engine.Defaults(c.Name())
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for _, name := range flagNames(files) {
		if flag := c.Flags().Lookup(name); flag != nil {
			given[name] = flag.Changed
		}
	}
	for _, file := range files {
		for name, values := range file.Values {
			flag := c.Flags().Lookup(name)
			if flag == nil {
				if c.Root().PersistentFlags().Lookup(name) == nil && file.Own[name] {
					return engine.InputError("see hightide "+c.Name()+" --help", "%s: hightide %s has no flag --%s", file.File, c.Name(), name)
				}
				continue
			}
			if given[name] {
				continue
			}
			for _, value := range values {
				if err := c.Flags().Set(name, value); err != nil {
					return engine.InputError("see hightide "+c.Name()+" --help", "%s: %s = %q: %w", file.File, name, value, err)
				}
			}
		}
	}
	return nil
}

func flagNames(files []engine.Settings) []string {
	var names []string
	for _, file := range files {
		for name := range file.Values {
			names = append(names, name)
		}
	}
	return names
}
