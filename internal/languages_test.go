package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNoCircles: within the rooms of other languages too nobody uses who uses him, through whomever. The
// Python package for programs is its own front door, whose parts are imported when they are asked for: it is not held.
func TestNoCircles(t *testing.T) {
	for name, graph := range map[string]map[string][]string{
		"hightide_agent": pythonImports(t, "../agent/python/src/hightide_agent"),
		"scripts":        pythonImports(t, "../scripts"),
		"web/src":        typescriptImports(t, "../web/src"),
		"heap/src":       cUses(t, "../heap/src", "../common"),
		"device/src":     cUses(t, "../device/src", "../common"),
	} {
		edges := 0
		for _, used := range graph {
			edges += len(used)
		}
		if len(graph) < 4 || edges < 4 {
			t.Errorf("%s: %d files use each other %d times; are they still found?", name, len(graph), edges)
		}
		if circle := circleIn(graph); circle != nil {
			t.Errorf("%s: %s", name, strings.Join(circle, " uses "))
		}
	}
}

// TestCircleIsFound: a graph with one, and the same without the arrow that closes it.
func TestCircleIsFound(t *testing.T) {
	graph := map[string][]string{"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": nil}
	if got := circleIn(graph); len(got) != 4 || got[0] != got[3] {
		t.Errorf("found %q", got)
	}
	graph["c"] = []string{"d"}
	if got := circleIn(graph); got != nil {
		t.Errorf("found %q where there is none", got)
	}
}

// circleIn is a way from a file back to itself; nil: there is none.
func circleIn(graph map[string][]string) (circle []string) {
	const entered, left = 1, 2
	state := map[string]int{}
	var way []string
	var visit func(at string) bool
	visit = func(at string) bool {
		way = append(way, at)
		state[at] = entered
		for _, next := range graph[at] {
			if state[next] == entered {
				circle = append(slices.Clone(way[slices.Index(way, next):]), next)
				return true
			}
			if state[next] != left && visit(next) {
				return true
			}
		}
		state[at] = left
		way = way[:len(way)-1]
		return false
	}
	for at := range graph {
		if state[at] == 0 && visit(at) {
			return circle
		}
	}
	return nil
}

// sources are the files of a folder with a suffix, by their path below it, without tests.
func sources(t *testing.T, dir, suffix string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) || strings.HasSuffix(path, ".test"+suffix) {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	cType      = regexp.MustCompile(`\b(struct|enum|union) ht_\w+`)
	cName      = regexp.MustCompile(`\bht_\w+`)
	cDefines   = regexp.MustCompile(`(?m)^(?:\w+[ *]+)+(ht_\w+)\s*(?:\([^;{}]*\)\s*\{|\[[^\]]*\]\s*[=;]|\s*=|;)`)
	notDefines = regexp.MustCompile(`^(static|extern|return|typedef)\b`)
)

// cUses says of each file in which others what it uses is defined. They share headers, so who uses whom is seen in the
// names: all that one file has for others begins with ht_.
func cUses(t *testing.T, dirs ...string) map[string][]string {
	texts, definedIn, uses := map[string]string{}, map[string]string{}, map[string][]string{}
	for _, dir := range dirs {
		for file, text := range sources(t, dir, ".c") {
			texts[file] = comment.ReplaceAllString(text, "")
			for _, found := range cDefines.FindAllStringSubmatch(texts[file], -1) {
				if !notDefines.MatchString(found[0]) {
					definedIn[found[1]] = file
				}
			}
		}
	}
	for file, text := range texts {
		uses[file] = nil
		for _, name := range cName.FindAllString(cType.ReplaceAllString(text, ""), -1) {
			if in := definedIn[name]; in != "" && in != file && !slices.Contains(uses[file], in) {
				uses[file] = append(uses[file], in)
			}
		}
	}
	return uses
}

var tsImport = regexp.MustCompile(`(?m)^(?:import|export)\b[^;"]*?(?:from )?"(\.[^"]*)"`)

func typescriptImports(t *testing.T, dir string) map[string][]string {
	texts, imports := sources(t, dir, ".ts"), map[string][]string{}
	for file, text := range texts {
		imports[file] = nil
		for _, found := range tsImport.FindAllStringSubmatch(text, -1) {
			path := filepath.ToSlash(filepath.Join(filepath.Dir(file), found[1]))
			for _, name := range []string{path, path + ".ts", path + "/index.ts"} {
				if _, ok := texts[name]; ok {
					imports[file] = append(imports[file], name)
				}
			}
		}
	}
	return imports
}

var pyImport = regexp.MustCompile(`(?m)^[ \t]*(?:from (\.*)([\w.]*) import (\([^)]*\)|[^\n#]*)|import ([\w., ]+))`)

// pythonImports reads all imports, those in functions and for type checkers too. That a module of a package imports the
// package counts where it takes a name from it, not where it takes another module.
func pythonImports(t *testing.T, dir string) map[string][]string {
	texts, imports := sources(t, dir, ".py"), map[string][]string{}
	module := func(path string) string {
		for _, name := range []string{path + ".py", path + "/__init__.py"} {
			if _, ok := texts[name]; ok {
				return name
			}
		}
		return ""
	}
	for file, text := range texts {
		imports[file] = nil
		add := func(name string) {
			if name != "" && name != file {
				imports[file] = append(imports[file], name)
			}
		}
		for _, found := range pyImport.FindAllStringSubmatch(text, -1) {
			for _, name := range strings.FieldsFunc(found[4], func(r rune) bool { return r == ',' || r == ' ' }) {
				add(module(strings.ReplaceAll(name, ".", "/")))
			}
			if found[3] == "" {
				continue
			}
			from := strings.ReplaceAll(found[2], ".", "/")
			if dots := len(found[1]); dots > 0 {
				from = filepath.Join(filepath.Dir(file), strings.Repeat("../", dots-1), from)
			}
			for _, name := range strings.FieldsFunc(strings.Trim(found[3], "()"), func(r rune) bool { return r == ',' }) {
				name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
				if inner := module(filepath.ToSlash(filepath.Join(from, name))); inner != "" {
					add(inner)
				} else if name != "" {
					add(module(filepath.ToSlash(from)))
				}
			}
		}
	}
	return imports
}
