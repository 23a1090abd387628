package launch

import (
	"maps"
	"os"
	"slices"
	"strings"

	"hightide/internal/system"
)

// Helper is something that rides along in the observed processes: a folder on PYTHONPATH, a
// library in LD_PRELOAD, programs on PATH, and the variables that tell it what to do.
type Helper struct {
	Name       string
	PythonPath string            // folder to put first on PYTHONPATH; may be empty
	Preload    string            // library to put in LD_PRELOAD, before the user's; in the order of the list
	Libraries  string            // folder to put first on LD_LIBRARY_PATH; may be empty
	Programs   string            // folder to put first on PATH; may be empty
	Env        map[string]string // further variables
}

// Environment returns the environment of the observed command: the user's own, with the helpers in
// front of what it says and the variables of docs/formats/channel.md set anew. It keeps the order
// and anything it does not know, also entries that are not an assignment.
func Environment(env []string, helpers []Helper, vars map[string]string) []string {
	set := map[string]string{}
	maps.Copy(set, vars)
	var paths, preloads, libraries, programs []string
	for _, h := range helpers {
		if h.PythonPath != "" {
			paths = append(paths, h.PythonPath)
		}
		if h.Preload != "" {
			preloads = append(preloads, h.Preload)
		}
		if h.Libraries != "" {
			libraries = append(libraries, h.Libraries)
		}
		if h.Programs != "" {
			programs = append(programs, h.Programs)
		}
		maps.Copy(set, h.Env)
	}
	if path := Lookup(env, "PATH"); len(programs) > 0 && path != "" { // else the shell's own default would be lost
		set["PATH"] = prepend(programs, path)
	}
	if len(libraries) > 0 {
		set["LD_LIBRARY_PATH"] = prepend(libraries, Lookup(env, "LD_LIBRARY_PATH"))
	}
	if len(paths) > 0 {
		set["PYTHONPATH"] = prepend(paths, Lookup(env, "PYTHONPATH"))
	}
	if len(preloads) > 0 {
		set["LD_PRELOAD"] = prepend(preloads, Lookup(env, "LD_PRELOAD"))
	}
	var out []string
	for _, entry := range env {
		key, _, _ := strings.Cut(entry, "=")
		if !has(set, key) && !strings.HasPrefix(key, ownPrefix) {
			out = append(out, entry)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		out = append(out, key+"="+set[key])
	}
	return out
}

// has says whether a variable is set anew.
func has(set map[string]string, name string) bool {
	if _, ok := set[name]; ok || !system.FoldsVariables {
		return ok
	}
	for key := range set {
		if sameName(key, name) {
			return true
		}
	}
	return false
}

// sameName says whether two names are of one variable.
func sameName(a, b string) bool { return a == b || system.FoldsVariables && strings.EqualFold(a, b) }

// ownPrefix of the variables between engine and helpers: those of an outer run do not reach an
// inner one. HIGHTIDE_DATA is the user's and stays.
const ownPrefix = "HIGHTIDE_"

// separator stands between folders in a variable.
const separator = string(os.PathListSeparator)

// prepend joins with colons (on Windows semicolons), and leaves none at the end: to Python an empty entry of PYTHONPATH is
// the current folder.
func prepend(ours []string, theirs string) string {
	joined := strings.Join(ours, separator)
	if theirs == "" {
		return joined
	}
	return joined + separator + theirs
}

// Lookup is the value of a variable in an environment; the last one counts.
func Lookup(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if name, value, ok := strings.Cut(env[i], "="); ok && sameName(name, key) {
			return value
		}
	}
	return ""
}

// With is an environment with some variables set anew.
func With(env []string, set map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return has(set, name)
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+"="+set[name])
	}
	return out
}
