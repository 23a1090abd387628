package main

import (
	"fmt"
	"runtime"

	"hightide/internal/engine"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  hightide version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "hightide %s %s/%s %s\n", engine.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
