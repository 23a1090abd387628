// Package pythons finds the Python interpreters that a run could mean, and asks them what they would import.
package pythons

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/system"
)

// Interpreter is a Python that was found, with the frameworks it would import. They are read from
// the packages' metadata; none is imported.
type Interpreter struct {
	Path         string            `json:"path"`
	Source       string            `json:"source"`            // --python, $VIRTUAL_ENV, $CONDA_PREFIX, PATH, cache
	Chosen       bool              `json:"chosen,omitempty"`  // what a verb without a command would use
	Version      string            `json:"version,omitempty"` // absent where it did not answer
	FreeThreaded bool              `json:"free_threaded,omitempty"`
	Frameworks   map[string]string `json:"frameworks,omitempty"`
	frameworks.Build
	Problem string `json:"problem,omitempty"`

	prefix string
}

// probe prints what we want to know of the packages that it is given, with the standard library only.
const probe = `
import json, os, re, sys, sysconfig
out = {"version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.prefix, "path": sys.executable,
       "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "frameworks": {}}
try:
    from importlib.metadata import version
    from importlib.util import find_spec
    for name in sys.argv[1:]:
        try:
            out["frameworks"][name] = version(name)
        except Exception:
            pass
` + frameworks.Probe + `
except Exception as error:
    out["problem"] = str(error)
print(json.dumps(out))
`

// probed are the packages that an interpreter is asked for.
func probed() []string {
	var names []string
	for _, f := range frameworks.All() {
		names = append(names, f.Distribution())
	}
	return append(names, "numpy")
}

// Patience is how long an interpreter may take to answer. One can hang, and on a busy machine starting one takes
// seconds.
const Patience = 30 * time.Second

// Find lists the interpreters a run could mean, in the order of preference. These are the one named,
// $VIRTUAL_ENV, those on PATH (one that has torch before one that has not), hightide's own cached
// environment. The first that answers is chosen.
func Find(ctx context.Context, named string) []Interpreter {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	all := candidates(named)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i].Ask(ctx) })
	}
	group.Wait()
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(p Interpreter) bool {
		again := p.prefix != "" && seen[p.prefix] // python and python3, or a shim and what it stands for
		seen[p.prefix] = true
		return again
	})
	rank := func(p Interpreter) int {
		switch {
		case p.Version == "":
			return 5
		case p.Source == "--python":
			return 0
		case p.Source == "$VIRTUAL_ENV":
			return 1
		case p.Source == "cache":
			return 3
		case p.Frameworks[frameworks.Torch] != "":
			return 2
		}
		return 4
	}
	slices.SortStableFunc(all, func(a, b Interpreter) int { return rank(a) - rank(b) })
	if len(all) > 0 && all[0].Version != "" {
		all[0].Chosen = true
	}
	return all
}

func candidates(named string) []Interpreter {
	var all []Interpreter
	add := func(path, source string) {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			all = append(all, Interpreter{Path: path, Source: source})
		}
	}
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			all = append(all, Interpreter{Path: named, Source: "--python", Problem: "no such program"})
		}
		add(path, "--python")
	}
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(variable); dir != "" {
			add(filepath.Join(dir, "bin", "python"), "$"+variable)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, name := range []string{"python3", "python"} {
			if filepath.IsAbs(dir) {
				add(filepath.Join(dir, name), "PATH")
			}
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		found, _ := filepath.Glob(filepath.Join(cache, "hightide", "torch-*", "bin", "python"))
		slices.Reverse(found) // the newest first
		for _, path := range found {
			// else it is being installed
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "..", "hightide.stamp")); err == nil {
				add(path, "cache")
			}
		}
	}
	return all
}

// Ask runs the probe. Nothing of hightide or of an outer run reaches the interpreter.
func (p *Interpreter) Ask(ctx context.Context) {
	if p.Problem != "" {
		return
	}
	c := exec.CommandContext(ctx, p.Path, append([]string{"-c", probe}, probed()...)...)
	c.WaitDelay = time.Second
	c.SysProcAttr = system.OwnGroup()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); name != "LD_PRELOAD" && name != "PYTHONSTARTUP" &&
			!strings.HasPrefix(name, "HIGHTIDE_") {
			c.Env = append(c.Env, entry)
		}
	}
	text, err := c.Output()
	var answer struct {
		Version      string            `json:"version"`
		Prefix       string            `json:"prefix"`
		Path         string            `json:"path"`
		FreeThreaded bool              `json:"free_threaded"`
		Frameworks   map[string]string `json:"frameworks"`
		Problem      string            `json:"problem"`
		frameworks.Build
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		p.Problem = problemOf(ctx, err)
		return
	}
	if answer.Path != "" {
		p.Path = answer.Path // what a shim stands for
	}
	p.Version, p.FreeThreaded, p.Frameworks, p.Problem = answer.Version, answer.FreeThreaded, answer.Frameworks,
		answer.Problem
	p.Build, p.prefix = answer.Build, answer.Prefix
}

func problemOf(ctx context.Context, err error) string {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("did not answer within %v", Patience)
	case errors.As(err, &exit):
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return strings.TrimSpace(exit.String() + " " + lines[len(lines)-1])
	}
	return err.Error()
}

// WithTorch is the path of the interpreter to build a model with: the one named, else the best that has torch. For
// another device than "cpu" a build for the CPU alone will not do.
func WithTorch(ctx context.Context, named, device string) (string, error) {
	for _, p := range toTry(ctx, named) {
		wanted := p.Source == "--python"
		switch {
		case p.Problem != "" && wanted: // never passed over
			return "", fail.Environment("name an interpreter of Python that has torch", "%s: %s", p.Path, p.Problem)
		case p.Problem != "":
		case p.Frameworks[frameworks.Torch] == "" && (wanted || p.Source == "$VIRTUAL_ENV"):
			return "", fail.Environment("install torch there, or name another with --python", "%s has no torch", p.Path)
		case p.Frameworks[frameworks.Torch] == "":
		case device != "cpu" && p.CUDA == "":
			return "", fail.Environment("install the CUDA build (it needs no GPU to be imagined), or use --device cpu",
				"%s has torch %s, which was built without CUDA", p.Path, p.Frameworks[frameworks.Torch])
		case device == "imaginary" && p.RuntimeInside:
			return "", frameworks.RuntimeInside(p.Frameworks[frameworks.Torch], p.Path)
		default:
			return p.Path, nil
		}
	}
	return "", fail.Environment("pip install torch, or name an interpreter that has it with --python",
		"no Python with torch found")
}

// toTry are those to choose from, the best first. The first place to look is asked alone. Where it has torch or was
// named, nothing else counts, and asking every interpreter of a machine can take longer than a trial.
func toTry(ctx context.Context, named string) []Interpreter {
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if all := candidates(named); len(all) > 0 {
		all[0].Ask(short)
		if named != "" || all[0].Problem == "" && all[0].Frameworks[frameworks.Torch] != "" {
			return all[:1]
		}
	}
	return Find(ctx, named)
}

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*t?$`)

// Named says whether a program, by path or name, is called as interpreters are.
func Named(program string) bool { return pythonName.MatchString(filepath.Base(program)) }

// OfCommand is the path of the Python interpreter that a command starts: itself, or the one that a script
// such as torchrun names in its first line. "" where that cannot be told (a shell script, uv run).
func OfCommand(command []string) string {
	if len(command) == 0 {
		return ""
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return ""
	}
	if filepath.Base(command[0]) == "env" { // env A=1 python train.py
		for i, word := range command[1:] {
			if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") {
				return OfCommand(command[1+i:])
			}
		}
		return ""
	}
	if Named(path) {
		return path
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 512).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" && len(words) > 1 {
		words = words[len(words)-1:]
		if found, err := exec.LookPath(words[0]); err == nil {
			words[0] = found
		}
	}
	if !Named(words[0]) {
		return ""
	}
	return words[0]
}
