// Package internal_test keeps the drawing of the rooms true: who may import whom.
package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms lists for each package what else of this module it may import. The first group is pure: no
// files, network, clock, environment.
var rooms = map[string][]string{
	"internal/mem":              {"internal/interned", "internal/words"},
	"internal/pickle":           {"internal/interned"},
	"internal/interned":         {},
	"internal/words":            {},
	"internal/fail":             {"internal/words"},
	"internal/frameworks":       {"internal/fail", "internal/mem"},
	"internal/options":          {"internal/fail", "internal/mem"},
	"internal/shm":              {"internal/mem"},
	"internal/wire":             {"internal/mem"},
	"internal/pytorch":          {"internal/mem"},
	"internal/allocator":        {"internal/mem", "internal/pytorch"},
	"internal/report":           {"internal/mem", "internal/usage", "web"},
	"internal/terminal":         {},
	"internal/usage":            {"internal/mem", "internal/allocator", "internal/words", "internal/frameworks"},
	"internal/live":             {"internal/mem"},
	"internal/analyze/imagined": {"internal/mem", "internal/report", "internal/usage", "internal/frameworks"},
	"internal/analyze/graph":    {"internal/mem", "internal/report", "internal/usage"},
	"internal/analyze/trace": {"internal/analyze/graph", "internal/modelfile", "internal/mem", "internal/report", "internal/usage",
		"internal/frameworks"},
	"internal/analyze/facts": {"internal/mem", "internal/analyze/imagined", "internal/usage", "internal/report"},
	"internal/analyze/growth": {"internal/mem", "internal/analyze/facts", "internal/frameworks",
		"internal/report", "internal/usage", "internal/words"},
	"internal/analyze/run": {"internal/analyze/imagined", "internal/analyze/graph", "internal/analyze/trace",
		"internal/analyze/facts", "internal/mem", "internal/usage", "internal/report",
		"internal/frameworks", "internal/analyze/growth"},
	"internal/explore": {"internal/mem", "internal/analyze/graph", "internal/usage", "internal/allocator",
		"internal/report", "internal/fail"},
	"internal/format/protobuf": {},
	"internal/format/profiler": {"internal/mem", "internal/words", "internal/format/protobuf"},
	"internal/format/torch": {"internal/mem", "internal/pickle", "internal/pytorch", "internal/words",
		"internal/format/profiler"},
	"internal/format/stacks":    {"internal/mem", "internal/report", "internal/format/protobuf"},
	"internal/modelfile":        {"internal/mem"},
	"internal/format/smaps":     {"internal/mem", "internal/words"},
	"internal/format/oomtext":   {"internal/mem", "internal/words"},
	"internal/format/telemetry": {"internal/mem", "internal/words"},

	"internal/files": {"internal/system", "internal/fail"},
	"internal/replay": {"internal/mem", "internal/allocator", "internal/format/torch", "internal/fail",
		"internal/files", "internal/gpus", "internal/pytorch", "internal/report", "internal/wire",
		"internal/frameworks"},
	"internal/quote":   {"internal/mem"},
	"internal/memray":  {"internal/fail", "internal/format/stacks"},
	"internal/pythons": {"internal/system", "internal/fail", "internal/frameworks"},
	"internal/gpus": {"internal/mem", "internal/report", "internal/words", "internal/fail", "internal/sampler",
		"internal/pythons", "internal/frameworks"},
	"internal/format": {"internal/mem", "internal/words", "internal/pickle", "internal/wire", "internal/usage",
		"internal/format/torch", "internal/format/profiler", "internal/format/stacks", "internal/format/smaps",
		"internal/format/oomtext", "internal/format/telemetry"},
	"internal/processes":        {"internal/mem"},
	"internal/processes/psutil": {"internal/processes", "internal/mem"},
	"internal/processes/here":   {"internal/processes", "internal/processes/psutil"},
	"internal/sampler": {"internal/system", "internal/mem", "internal/processes", "internal/processes/here",
		"internal/sampler/nvml"},
	"internal/sampler/nvml": {},
	"internal/system":       {},
	"internal/store":        {"internal/fleet", "internal/system", "internal/mem", "internal/analyze/facts", "internal/wire", "internal/words"},
	"internal/event":        {},
	"internal/launch":       {"internal/system", "internal/processes", "internal/processes/here"},
	"internal/observe": {"internal/system", "internal/event", "internal/launch", "internal/mem", "internal/processes", "internal/sampler", "internal/shm",
		"internal/usage", "internal/words", "internal/fail", "internal/options", "internal/frameworks"},
	"agent":             {},
	"docs":              {},
	"heap":              {},
	"device":            {},
	"web":               {},
	"internal/executor": {"internal/system", "internal/fail"},
	"internal/matrix": {"internal/system", "internal/mem", "internal/words", "internal/fail", "internal/event", "internal/files",
		"internal/format", "internal/gpus", "internal/report", "web", "internal/frameworks"},
	"internal/hub": {"internal/fail"},
	"internal/plan": {"internal/fail", "internal/gpus", "internal/hub", "internal/mem", "internal/modelfile",
		"internal/options", "internal/report", "internal/event", "internal/pythons"},
	"internal/comments": {"internal/fail", "internal/mem", "internal/report", "internal/store"},
	"internal/hooks":    {"internal/mem", "internal/report", "internal/store"},
	"internal/team":     {"internal/fleet", "internal/hooks", "internal/mem", "internal/redact", "internal/store"},
	"internal/redact":   {"internal/mem"},
	"internal/oidc":     {},
	"internal/remote":   {"internal/fail", "internal/fleet", "internal/files", "internal/mem", "internal/redact", "internal/store", "internal/wire"},
	"internal/fleet":    {"internal/mem", "internal/usage"},
	"internal/watch": {"internal/fail", "internal/files", "internal/fleet", "internal/mem", "internal/sampler",
		"internal/store", "internal/system", "internal/usage"},
	"internal/trend":  {"internal/fail", "internal/matrix", "internal/mem", "internal/report", "internal/store"},
	"internal/levers": {"internal/allocator", "internal/fail", "internal/frameworks", "internal/mem", "internal/options", "internal/words"},
	"internal/patch":  {},
	"internal/tune": {"internal/event", "internal/fail", "internal/frameworks", "internal/gpus", "internal/levers", "internal/mem", "internal/options",
		"internal/patch", "internal/report", "internal/usage"},
	"internal/fit": {"internal/event", "internal/mem", "internal/fail", "internal/gpus", "internal/pythons",
		"internal/report", "internal/options", "internal/frameworks", "internal/hub", "internal/modelfile"},
	"internal/imagine": {"internal/system", "internal/event", "internal/mem", "internal/allocator", "internal/analyze/imagined",
		"internal/fail", "internal/gpus", "internal/format/torch", "internal/launch", "internal/observe",
		"internal/pythons", "internal/replay", "internal/report", "internal/sampler", "internal/shm", "internal/options",
		"internal/frameworks", "internal/levers", "internal/words"},
	// for tests alone: checkFile lets nothing import it
	"internal/testkit": {"internal/mem", "internal/format/torch"},
	"internal/tui": {"internal/system", "internal/engine", "internal/analyze/trace", "internal/launch", "internal/live",
		"internal/mem", "internal/report", "internal/sampler", "internal/store", "internal/frameworks"},
	"internal/engine": {"internal/system", "agent", "device", "heap", "internal/allocator", "internal/analyze/run",
		"internal/analyze/trace", "internal/budget", "internal/event", "internal/explore", "internal/fail",
		"internal/files", "internal/fit", "internal/format", "internal/format/stacks", "internal/format/torch",
		"internal/gpus", "internal/imagine", "internal/launch", "internal/live", "internal/mem", "internal/observe",
		"internal/pickle", "internal/replay", "internal/report", "internal/sampler", "internal/store",
		"internal/usage", "internal/wire", "internal/options", "internal/analyze/facts",
		"internal/frameworks", "internal/levers", "internal/memray", "internal/modelfile", "internal/plan", "internal/quote", "internal/trend", "internal/tune"},
	"internal/budget": {"internal/fail", "internal/analyze/trace", "internal/matrix", "internal/mem",
		"internal/report", "internal/usage", "internal/words"},
	"internal/diagnose": {"internal/system", "heap", "internal/engine", "internal/fail", "internal/format", "internal/mem",
		"internal/pythons", "internal/report", "internal/sampler", "internal/store", "internal/frameworks"},
	"internal/bench": {"internal/system", "internal/engine", "internal/event", "internal/executor", "internal/fail",
		"internal/files", "internal/gpus", "internal/imagine", "internal/launch", "internal/matrix", "internal/mem",
		"internal/observe", "internal/pythons", "internal/report", "internal/sampler", "internal/store", "internal/options",
		"internal/frameworks"},
	"internal/server": {"internal/system", "internal/bench", "internal/engine", "internal/analyze/run", "internal/analyze/trace",
		"internal/analyze/facts", "internal/event", "internal/explore", "internal/fit", "internal/launch",
		"internal/gpus", "internal/imagine", "internal/mem", "internal/metrics", "internal/observe", "internal/plan",
		"internal/replay", "internal/fail", "internal/format", "internal/report", "internal/store",
		"internal/terminal", "internal/matrix", "web", "internal/options", "internal/files", "internal/hub", "internal/modelfile",
		"internal/redact", "internal/trend", "internal/tune", "internal/fleet", "internal/oidc", "internal/comments"},
	"internal/metrics": {"internal/system", "internal/engine", "internal/fail", "internal/format/protobuf", "internal/live",
		"internal/mem", "internal/store"},
	"internal/mcp": {"internal/engine", "internal/analyze/trace", "internal/event", "internal/fail",
		"internal/fit", "internal/gpus", "internal/mem", "internal/observe", "internal/plan", "internal/replay",
		"internal/report", "internal/store", "internal/options", "internal/files", "internal/trend", "internal/tune"},
	"cmd/hightide": {"internal/system", "internal/bench", "internal/analyze/trace", "internal/diagnose", "internal/server",
		"internal/mem", "internal/report", "internal/engine", "internal/event", "internal/executor", "internal/fail",
		"internal/fit", "internal/files", "internal/format", "internal/gpus", "internal/launch",
		"internal/matrix", "internal/mcp", "internal/metrics", "internal/observe", "internal/pythons",
		"internal/options", "internal/plan", "internal/pytorch", "internal/replay", "internal/redact", "internal/oidc", "internal/remote", "internal/store", "internal/team", "internal/tui", "internal/words",
		"internal/frameworks", "internal/trend", "internal/tune", "internal/fleet", "internal/watch", "internal/comments", "internal/hooks", "docs"},
}

// pure rooms may not touch the world, whatever the standard library offers.
var (
	pure = []string{"internal/mem", "internal/live", "internal/interned", "internal/terminal", "internal/words",
		"internal/fail", "internal/frameworks",
		"internal/options", "internal/pickle", "internal/shm", "internal/wire", "internal/allocator", "internal/usage", "internal/fleet",
		"internal/explore", "internal/modelfile", "internal/report", "internal/analyze/run", "internal/analyze/graph", "internal/analyze/imagined",
		"internal/analyze/trace", "internal/analyze/facts", "internal/analyze/growth"}
	worldly  = []string{"os", "net", "net/http", "os/exec", "log", "syscall", "path/filepath", "io/ioutil"}
	external = map[string][]string{"internal/wire": {"github.com/klauspost/compress"}}
)

func TestWhoImportsWhom(t *testing.T) {
	used := map[string]map[string]bool{} // room → what it imports of this module
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// what is in packaging is a module of its own
			if name := d.Name(); name == "node_modules" || name == "testdata" || path == "../bench" ||
				path == "../packaging" || name != ".." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			checkFile(t, path, used)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tour, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	for room, allowed := range rooms {
		for _, other := range allowed {
			if !used[room][other] {
				t.Errorf("%s may import %s and does not: take it out of rooms", room, other)
			}
		}
		if !bytes.Contains(tour, []byte("(../"+room+"/")) {
			t.Errorf("docs/tour.md names no file of %s", room)
		}
	}
}

// TestEngineIsSmall: a use case with more than a page of logic has a room of its own.
func TestEngineIsSmall(t *testing.T) {
	all, err := filepath.Glob("engine/*.go")
	files := slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	if err != nil || len(files) == 0 || len(files) > 10 {
		t.Errorf("internal/engine has %d files, and may have 10: %q, %v", len(files), files, err)
	}
}

func checkFile(t *testing.T, path string, used map[string]map[string]bool) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
	allowed, known := rooms[room]
	if !known {
		t.Errorf("%s: room %s is not in the drawing; add it to rooms with what it may import", path, room)
		return
	}
	if used[room] == nil {
		used[room] = map[string]bool{}
	}
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		inner, ours := strings.CutPrefix(name, "hightide/")
		used[room][inner] = true
		switch {
		case inner == "internal/testkit":
			t.Errorf("%s imports %s, which is for tests", path, name)
		case ours && !slices.Contains(allowed, inner):
			t.Errorf("%s imports %s: %s may import only %q", path, name, room, allowed)
		case slices.Contains(pure, room) && slices.Contains(worldly, name):
			t.Errorf("%s imports %s: %s is a pure room", path, name, room)
		case slices.Contains(pure, room) && strings.Contains(name, ".") && !ours && !startsWithAny(name, external[room]):
			t.Errorf("%s imports %s: %s uses only the standard library", path, name, room)
		}
	}
}

// TestFrameworksAreData: what is known of a framework stands in its file of internal/frameworks, what its files and
// messages look like in internal/format, and what differs between PyTorch's releases in internal/pytorch.
func TestFrameworksAreData(t *testing.T) {
	named := regexp.MustCompile(`\btorch\.[a-z_]|tensorflow|\bjax\b|^"torch"$`)
	places := []string{"internal/frameworks", "internal/format", "internal/pytorch", "internal/testkit"}
	looked := 0
	for room := range rooms {
		if startsWithAny(room, places) {
			continue
		}
		paths, err := filepath.Glob("../" + room + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				looked++
				literals(t, path, func(at token.Position, text string) {
					help := room == "cmd/hightide" && text[0] == '`' // what a person reads of a command
					if named.MatchString(text) && !help {
						t.Errorf("%s names a framework: %s", at, text)
					}
				})
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// literals are the texts of a file, without the tags of its fields.
func literals(t *testing.T, path string, each func(at token.Position, text string)) {
	places := token.NewFileSet()
	file, err := parser.ParseFile(places, path, nil, 0)
	if err != nil {
		t.Error(err)
		return
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			node.Tag = nil
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				each(places.Position(node.Pos()), node.Value)
			}
		}
		return true
	})
}

func startsWithAny(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
