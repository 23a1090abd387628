package main

import (
	"fmt"
	"runtime"

	"hightide/internal/engine"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// versionOptions of version.
type versionOptions struct{ json string }

// versionJSON is what version --json prints.
type versionJSON struct {
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Go      string `json:"go"`
}

func versionCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version.\n\nExit codes: 0 fine, 2 wrong usage.",
		Example: "  hightide version\n  hightide version --json | jq -r .version",
		Args:    cobra.NoArgs,
	}, &versionOptions{})
}

func (o *versionOptions) AddFlags(flags *pflag.FlagSet) { jsonFlag(flags, &o.json) }

func (o *versionOptions) run(a *app, _ *cobra.Command, _ []string) error {
	version := versionJSON{engine.Version, runtime.GOOS, runtime.GOARCH, runtime.Version()}
	return a.show(o.json, version, func() error {
		_, err := fmt.Fprintln(a.stdout, versionLine())
		return err
	})
}

// versionLine is the version for people.
func versionLine() string {
	return fmt.Sprintf("hightide %s %s/%s %s", engine.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
