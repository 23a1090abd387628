package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"hightide/internal/fail"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Defaults for flags may stand in files: the user's first, then the project's, which wins. A file has a table
// for each command, and flags that all commands share may stand above them:
//
//	data-dir = "/scratch/hightide"
//	[run]
//	interval = "50ms"
//	alert = ["host.rss > 8GiB"]

// defaults are a file's for one command: flag → values, several for a flag that may be given several times.
type defaults struct {
	file   string
	values map[string][]string
	own    map[string]bool // from the command's own table, not from above all tables
}

// projectFile may stand in the working folder or any folder above it.
const projectFile = ".hightide.toml"

// notInProject lists the flags that a project's file cannot set: it may come from a stranger, and
// these say where to write or what to open.
var notInProject = []string{"data-dir", "store", "objects", "server", "push", "open", "output",
	"out", "report", "plot-dir",
	"json", "markdown", "html", "csv", "parquet", "junit", "seed-csv", "seed-results"}

// targetKeys stand above all tables of a settings file.
var targetKeys = []string{"server", "project", "redact"}

// applyDefaults sets the flags of a command that were not given on the command line to what the
// settings files say. Files that do not exist are not an error; one that cannot be understood is.
func applyDefaults(c *cobra.Command, _ []string) error {
	if !c.HasParent() { // hightide alone, which helps and says its version
		return nil
	}
	given := map[string]bool{}
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	if dir, err := os.UserConfigDir(); err == nil {
		if err := applyFile(c, filepath.Join(dir, "hightide", "config.toml"), nil, given); err != nil {
			return err
		}
	}
	path := findProjectFile()
	if path == "" {
		return nil
	}
	return applyFile(c, path, notInProject, given)
}

// applyFile sets the flags that are not given.
func applyFile(c *cobra.Command, path string, forbidden []string, given map[string]bool) error {
	file, err := readSettings(path, c.Name())
	if err != nil {
		return err
	}
	help := "see hightide " + c.Name() + " --help"
	for name, values := range file.values {
		flag := c.Flags().Lookup(name)
		switch {
		case slices.Contains(targetKeys, name) && !file.own[name]: // see target.go
			continue
		case slices.Contains(forbidden, name):
			return fail.Input("set it on the command line or in the user's own settings", "%s: a project cannot set %q", path,
				name)
		case flag == nil && file.own[name]:
			return fail.Input(help, "%s: hightide %s has no flag --%s", path, c.Name(), name)
		case flag == nil || given[name]:
			continue
		}
		for _, value := range values {
			if err := c.Flags().Set(name, value); err != nil {
				return badSetting(help, path, name, value, err)
			}
		}
	}
	return nil
}

// badSetting says what is wrong with a value of a file, as of the same on the command line.
func badSetting(help, path, name, value string, err error) error {
	var invalid *pflag.InvalidValueError
	var checked *fail.Error
	switch {
	case errors.As(err, &checked):
		return fail.Input(checked.Hint, "%s: %s = %q: %w", path, name, value, checked.Err)
	case errors.As(err, &invalid) && wants(invalid.GetFlag()) != "":
		return fail.Input(help, "%s: %s = %q: it %s", path, name, value, wants(invalid.GetFlag()))
	}
	return fail.Input(help, "%s: %s = %q: %w", path, name, value, err)
}

// findProjectFile is the nearest one; "" where there is none.
func findProjectFile() string {
	dir, err := os.Getwd()
	if err != nil {
		return "" // the folder was deleted: there is no project either
	}
	for {
		path := filepath.Join(dir, projectFile)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func readSettings(path, command string) (s defaults, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return s, nil
	}
	if err != nil {
		return s, fail.Input("make it readable or delete it", "read settings: %w", err)
	}
	var file map[string]any
	if err := toml.Unmarshal(data, &file); err != nil {
		var where *toml.DecodeError
		if errors.As(err, &where) {
			row, _ := where.Position()
			return s, fail.Input("see hightide run --help for the names of flags", "%s:%d: %w", path, row, err)
		}
		return s, fail.Input("", "%s: %w", path, err)
	}
	s = defaults{path, map[string][]string{}, map[string]bool{}}
	for key, value := range file {
		table, ok := value.(map[string]any)
		switch {
		case !ok || key == "tag":
			s.values[key] = asFlags(value)
		case key == command:
			for key, value := range table {
				s.values[key], s.own[key] = asFlags(value), true
			}
		}
	}
	return s, nil
}

// asFlags writes a value of TOML as a flag would take it: a list as several, a table as key=value.
func asFlags(value any) []string {
	var all []string
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			all = append(all, asFlags(item)...)
		}
	case map[string]any:
		for key, item := range value {
			all = append(all, key+"="+fmt.Sprint(item))
		}
		slices.Sort(all)
	default:
		all = []string{fmt.Sprint(value)}
	}
	return all
}
