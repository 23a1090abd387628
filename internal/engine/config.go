package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/pelletier/go-toml/v2"
)

// Settings are defaults for the flags of one command, from a file: flag name → values, several for
// a flag that may be given several times.
type Settings struct {
	File   string
	Values map[string][]string
	Own    map[string]bool // from the command's own table, not from above all tables
}

// projectFile may stand in the working folder or any folder above it.
const projectFile = ".hightide.toml"

// notInProject lists the flags that a project's file cannot set: it may come from a stranger, and
// these say where to write or what to open.
var notInProject = []string{"data-dir", "out", "json", "open"}

// Defaults reads the defaults of a command: the user's file first, then the project's, which wins.
// A file has a table for each command, and flags that all commands share may stand above them:
//
//	data-dir = "/scratch/hightide"
//	[run]
//	interval = "50ms"
//	alert = ["host.rss > 8GiB"]
//
// Files that do not exist are no error; one that cannot be understood is.
func Defaults(command string) ([]Settings, error) {
	var found []Settings
	if dir, err := os.UserConfigDir(); err == nil {
		settings, err := readSettings(filepath.Join(dir, "hightide", "config.toml"), command, nil)
		if err != nil {
			return nil, err
		}
		found = append(found, settings...)
	}
	path, err := findProjectFile()
	if err != nil || path == "" {
		return found, nil
	}
	settings, err := readSettings(path, command, notInProject)
	return append(found, settings...), err
}

func findProjectFile() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err // the folder was deleted: there is no project either
	}
	for {
		path := filepath.Join(dir, projectFile)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

func readSettings(path, command string, forbidden []string) ([]Settings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, InputError("make it readable or delete it", "read settings: %w", err)
	}
	var file map[string]any
	if err := toml.Unmarshal(data, &file); err != nil {
		var where *toml.DecodeError
		if errors.As(err, &where) {
			row, _ := where.Position()
			return nil, InputError("see hightide run --help for the names of flags", "%s:%d: %w", path, row, err)
		}
		return nil, InputError("", "%s: %w", path, err)
	}
	settings := Settings{path, map[string][]string{}, map[string]bool{}}
	for key, value := range file {
		if table, ok := value.(map[string]any); ok && key != "tag" {
			if key != command {
				continue
			}
			for key, value := range table {
				settings.Values[key], settings.Own[key] = asFlags(value), true
			}
			continue
		}
		settings.Values[key] = asFlags(value)
	}
	for key := range settings.Values {
		if slices.Contains(forbidden, key) {
			return nil, InputError("set it on the command line or in the user's own settings", "%s: a project cannot set %q", path, key)
		}
	}
	return []Settings{settings}, nil
}

// asFlags writes a value of TOML as a flag would take it: a list as several, a table as key=value.
func asFlags(value any) []string {
	switch value := value.(type) {
	case []any:
		var all []string
		for _, item := range value {
			all = append(all, asFlags(item)...)
		}
		return all
	case map[string]any:
		var all []string
		for key, item := range value {
			all = append(all, key+"="+fmt.Sprint(item))
		}
		slices.Sort(all)
		return all
	}
	return []string{fmt.Sprint(value)}
}
