package internal_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house reads the packages of this module from their source, each once.
type house struct {
	files *token.FileSet
	known map[string]*types.Package
	uses  map[string]map[string][]string // room → file → the other files of it that it uses
}

// Import is a package of the module, and notes what its files use of each other. Another module's, and the standard
// library's, is left empty: uses of what only they return are not seen.
func (h *house) Import(path string) (*types.Package, error) {
	if p := h.known[path]; p != nil {
		return p, nil
	}
	room, ours := strings.CutPrefix(path, "hightide/")
	if !ours {
		p := types.NewPackage(path, filepath.Base(path))
		p.MarkComplete()
		h.known[path] = p
		return p, nil
	}
	paths, err := filepath.Glob("../" + room + "/*.go")
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, path := range paths {
		here, err := build.Default.MatchFile(filepath.Dir(path), filepath.Base(path))
		if strings.HasSuffix(path, "_test.go") || err == nil && !here { // another system's takes the place of one of this
			continue
		}
		file, err := parser.ParseFile(h.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: h, Error: func(error) {}} // such as of what other modules have
	p, _ := conf.Check(path, h.files, parsed, info)
	h.known[path], h.uses[room] = p, h.usesIn(p, info)
	return p, nil
}

// usesIn is what each file of a package uses of the others.
func (h *house) usesIn(p *types.Package, info *types.Info) map[string][]string {
	of := map[string][]string{}
	for at, used := range info.Uses {
		field, _ := used.(*types.Var)
		method, _ := used.(*types.Func)
		shared := used.Parent() == p.Scope() || method != nil || field != nil && field.IsField()
		if used.Pkg() != p || !shared {
			continue
		}
		from, to := h.base(at.Pos()), h.base(used.Pos())
		if from != to && !slices.Contains(of[from], to) {
			of[from] = append(of[from], to)
		}
	}
	return of
}

func (h *house) base(at token.Pos) string { return filepath.Base(h.files.Position(at).Filename) }

// tangled says how many files of a room stand in circles. Each number is to become less, and a room leaves the list when
// there is no circle. A file that is new in a circle raises the number: a reader then sees it in the change.
var tangled = map[string]int{
	"cmd/hightide":              7,
	"internal/allocator":        11,
	"internal/bench":            2,
	"internal/engine":           6,
	"internal/explore":          8,
	"internal/fit":              5,
	"internal/format":           13,
	"internal/format/oomtext":   8,
	"internal/format/telemetry": 5,
	"internal/format/torch":     8,
	"internal/gpus":             2,
	"internal/imagine":          9,
	"internal/launch":           9,
	"internal/matrix":           14,
	"internal/mcp":              2,
	"internal/mem":              2,
	"internal/observe":          26,
	"internal/pickle":           10,
	"internal/replay":           8,
	"internal/report":           9,
	"internal/sampler":          17,
	"internal/server":           48,
	"internal/shm":              4,
	"internal/store":            8,
	"internal/testkit":          2,
	"internal/tui":              23,
	"internal/usage":            13,
}

// TestCircles: the files of a room stand in an order in which each uses only those below it, in all rooms that are not
// tangled.
func TestCircles(t *testing.T) {
	h := &house{files: token.NewFileSet(), known: map[string]*types.Package{}, uses: map[string]map[string][]string{}}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		if _, err := h.Import("hightide/" + room); err != nil {
			t.Fatal(err)
		}
		found, files := circles(h.uses[room]), 0
		for _, circle := range found {
			files += len(circle)
		}
		switch known := tangled[room]; {
		case files > known:
			t.Errorf("%s: %d files use each other in circles, of which %d are known: %v", room, files, known, found)
		case files < known:
			t.Errorf("%s: %d files stand in circles: take %d down to that in tangled", room, files, known)
		}
	}
}

// circles are the groups of files that use each other, by way of others too (Tarjan's algorithm).
func circles(uses map[string][]string) (found [][]string) {
	index, low, stack := map[string]int{}, map[string]int{}, []string{}
	var visit func(string)
	visit = func(file string) {
		index[file] = len(index) + 1
		low[file] = index[file]
		stack = append(stack, file)
		for _, other := range uses[file] {
			if index[other] == 0 {
				visit(other)
				low[file] = min(low[file], low[other])
			} else if slices.Contains(stack, other) {
				low[file] = min(low[file], index[other])
			}
		}
		if low[file] == index[file] {
			at := slices.Index(stack, file)
			if group := stack[at:]; len(group) > 1 {
				found = append(found, slices.Sorted(slices.Values(group)))
			}
			stack = slices.Clone(stack[:at])
		}
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if index[file] == 0 {
			visit(file)
		}
	}
	return found
}
