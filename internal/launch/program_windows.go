package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// findProgram looks a command up as the system's shell does, with the endings of PATHEXT: as it stands where it names a
// folder, else on PATH.
func findProgram(name, path string) (string, error) {
	if name == "" {
		return "", &Error{Code: 127, Err: errors.New("'': command not found")}
	}
	if strings.ContainsAny(name, `/\:`) {
		if found := withEnding(name); found != "" {
			return found, nil
		}
		return name, runnable(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if found := withEnding(filepath.Join(cmp.Or(dir, "."), name)); found != "" {
			return found, nil
		}
	}
	return "", &Error{Code: 127, Err: fmt.Errorf("%s: command not found", name),
		Hint: "activate the environment that has it, or give its path, as .venv\\Scripts\\" + name}
}

// withEnding is a file that can be run: the path itself, where it has an ending, or with one of PATHEXT. "": there is
// none.
func withEnding(path string) string {
	endings := filepath.SplitList(cmp.Or(os.Getenv("PATHEXT"), ".COM;.EXE;.BAT;.CMD"))
	if filepath.Ext(path) != "" {
		endings = append([]string{""}, endings...)
	}
	for _, ending := range endings {
		if info, err := os.Stat(path + ending); err == nil && !info.IsDir() {
			return path + ending
		}
	}
	return ""
}
