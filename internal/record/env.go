package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Helper is something that rides along in the observed processes: a folder on PYTHONPATH, a
// library in LD_PRELOAD, and the variables that tell it what to do.
type Helper struct {
	Name       string
	PythonPath string            // folder to put first on PYTHONPATH; may be empty
	Preload    string            // library to put in LD_PRELOAD, before the user's; in the order of the list
	Libraries  string            // folder to put first on LD_LIBRARY_PATH; may be empty
	Env        map[string]string // further variables
}

// compose returns the environment of the observed command: the user's own, with the helpers in
// front of what it says and the variables of docs/formats/channel.md set anew. It keeps the order
// and anything it does not know, also entries that are no assignment.
func compose(env []string, helpers []Helper, vars map[string]string) []string {
	set := map[string]string{}
	for key, value := range vars {
		set[key] = value
	}
	var paths, preloads, libraries []string
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
		for key, value := range h.Env {
			set[key] = value
		}
	}
	if len(libraries) > 0 {
		set["LD_LIBRARY_PATH"] = prepend(libraries, lookup(env, "LD_LIBRARY_PATH"))
	}
	if len(paths) > 0 {
		set["PYTHONPATH"] = prepend(paths, lookup(env, "PYTHONPATH"))
	}
	if len(preloads) > 0 {
		set["LD_PRELOAD"] = prepend(preloads, lookup(env, "LD_PRELOAD"))
	}
	var out []string
	for _, entry := range env {
		key, _, _ := strings.Cut(entry, "=")
		if _, ours := set[key]; !ours && !strings.HasPrefix(key, ownPrefix) {
			out = append(out, entry)
		}
	}
	for _, key := range sortedKeys(set) {
		out = append(out, key+"="+set[key])
	}
	return out
}

// Environment puts helpers into the environment of a process that is not recorded.
func Environment(env []string, helpers []Helper) []string { return compose(env, helpers, nil) }

// ownPrefix of the variables between engine and helpers: those of an outer run do not reach an
// inner one. HIGHTIDE_DATA is the user's and stays.
const ownPrefix = "HIGHTIDE_"

// prepend joins with colons, and leaves none at the end: to Python an empty entry of PYTHONPATH is
// the current folder.
func prepend(ours []string, theirs string) string {
	joined := strings.Join(ours, ":")
	if theirs == "" {
		return joined
	}
	return joined + ":" + theirs
}

func lookup(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], key+"="); ok {
			return value
		}
	}
	return ""
}

// channelVars are the variables that every helper reads.
func (o *Options) channelVars(channels string) map[string]string {
	vars := map[string]string{
		"HIGHTIDE_CHANNELS":    channels,
		"HIGHTIDE_RUN_ID":      o.ID,
		"HIGHTIDE_OUT":         o.OutDir,
		"HIGHTIDE_INTERVAL_NS": strconv.FormatInt(int64(o.interval()/time.Nanosecond), 10),
	}
	if o.Steps > 0 {
		vars["HIGHTIDE_STEPS"] = strconv.FormatUint(o.Steps, 10)
	}
	if o.SnapshotOn != "" {
		vars["HIGHTIDE_SNAPSHOT_ON"] = o.SnapshotOn
	}
	if o.NoStacks {
		vars["HIGHTIDE_STACKS"] = "0"
	}
	if data := lookup(o.Env, "HIGHTIDE_DATA"); data != "" {
		vars["HIGHTIDE_DATA"] = data
	}
	return vars
}

// CheckSnapshotOn says what is wrong with a list of oom, exit, step:N and never.
func CheckSnapshotOn(list string) error {
	if list == "" {
		return nil
	}
	for word := range strings.SplitSeq(list, ",") {
		if word == "never" && list != word {
			return fmt.Errorf("snapshot on %q: never stands alone", list)
		}
		step, isStep := strings.CutPrefix(word, "step:")
		if isStep {
			if n, err := strconv.ParseUint(step, 10, 64); err != nil || n == 0 {
				return fmt.Errorf("snapshot at step %q: steps count from 1", step)
			}
			continue
		}
		if word != "oom" && word != "exit" && word != "never" {
			return fmt.Errorf("snapshot on %q: it is oom, exit, step:N or never", word)
		}
	}
	return nil
}
