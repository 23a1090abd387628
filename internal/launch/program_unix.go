//go:build unix

package launch

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// findProgram looks a command up as a shell does: as it stands where it has a slash, else on PATH.
func findProgram(name, path string) (string, error) {
	switch {
	case name == "":
		return "", &Error{Code: 127, Err: errors.New("'': command not found")}
	case strings.Contains(name, "/"):
		return name, runnable(name)
	}
	denied := error(nil)
	for _, dir := range filepath.SplitList(path) {
		dir = cmp.Or(dir, ".")
		candidate := filepath.Join(dir, name)
		if !strings.Contains(candidate, "/") {
			candidate = "./" + candidate
		}
		err := runnable(candidate)
		if err == nil {
			return candidate, nil
		}
		var launch *Error
		if errors.As(err, &launch) && launch.Code == 126 && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &Error{Code: 127, Err: fmt.Errorf("%s: command not found", name),
		Hint: "activate the environment that has it, or give its path, as .venv/bin/" + name}
}
