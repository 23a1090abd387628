package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hightide/internal/engine"
	"hightide/internal/fail"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
			root := c.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "HIGHTIDE", Section: "1", Source: "hightide " + engine.Version}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			pages, _ := filepath.Glob(filepath.Join(args[0], "hightide*.1"))
			_, err := fmt.Fprintf(a.stdout, "%d manual pages in %s\n", len(pages), args[0])
			return err
		},
	}
}
