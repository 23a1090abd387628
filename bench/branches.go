//go:build ignore

// Counts the branches of a Go package that its tests take, which the Go tools cannot:
//
//	go run bench/branches.go [-v] ./internal/allocator [ARGUMENTS OF go test]
//
// A branch is an outcome of an if or a for, or a case of a switch, the missing default included. A condition's outcome
// is one of a part that && and || join. Loops over a range are not counted: go test -cover shows a body never entered.
// The tests run on a copy of the sources, with a probe around each of these, which go test -overlay puts in place.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// probe is one place that notes which way the program went.
type probe struct {
	where, text       string
	branch, condition bool
	arrival           bool // a case: there is one outcome only
	seen              [2]bool
}

// insertion is text to be put into a file. At one offset, what closes comes first, and of what opens the outer.
type insertion struct {
	at, depth int
	text      string
}

// instrumenter puts probes into one file after the other.
type instrumenter struct {
	files  *token.FileSet
	probes []*probe

	source     []byte
	insertions []insertion
}

const helpers = `
import (
	"os"
	"strconv"
	"sync/atomic"
)

var probesSeen [2 * probesTotal]atomic.Bool

func probed(n int, outcome bool) bool {
	at := 2 * n
	if outcome {
		at++
	}
	if !probesSeen[at].Load() && !probesSeen[at].Swap(true) {
		f, err := os.OpenFile(probesFile, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		f.WriteString(strconv.Itoa(at) + "\n")
		f.Close()
	}
	return outcome
}
`

func main() {
	verbose := flag.Bool("v", false, "list what was not taken")
	flag.Parse()
	if err := count(flag.Arg(0), flag.Args()[min(1, flag.NArg()):], *verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func count(folder string, arguments []string, verbose bool) error {
	if folder == "" {
		return fmt.Errorf("which package? Name its folder, such as ./internal/allocator")
	}
	work, err := os.MkdirTemp("", "branches")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	i := &instrumenter{files: token.NewFileSet()}
	overlay, err := i.folder(folder, work)
	if err != nil {
		return err
	}
	words := append([]string{"test", "-count=1", "-vet=off", "-overlay=" + overlay}, arguments...)
	test := exec.Command("go", append(words, folder)...)
	test.Stdout, test.Stderr = os.Stderr, os.Stderr
	if err := test.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(test.Args[1:], " "), err)
	}
	return i.report(filepath.Join(work, "seen"), verbose)
}

// folder writes instrumented copies of a package's files, and what tells Go of them.
func (i *instrumenter) folder(folder, work string) (overlay string, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	name := ""
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		var text []byte
		if text, name, err = i.file(file); err != nil {
			return "", err
		}
		original, _ := filepath.Abs(file)
		replace[original] = filepath.Join(work, filepath.Base(file))
		if err := os.WriteFile(replace[original], text, 0o600); err != nil {
			return "", err
		}
	}
	seen := filepath.Join(work, "seen")
	added, _ := filepath.Abs(filepath.Join(folder, "zz_probes.go"))
	replace[added] = filepath.Join(work, "zz_probes.go")
	constants := fmt.Sprintf("package %s\n%s\nconst probesTotal, probesFile = %d, %q\n", name, helpers, len(i.probes),
		seen)
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(work, "overlay.json")
	for file, text := range map[string]string{replace[added]: constants, seen: "", overlay: string(list)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return overlay, nil
}

// file gives a file's text with probes, and the name of its package.
func (i *instrumenter) file(name string) ([]byte, string, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	parsed, err := parser.ParseFile(i.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	i.source, i.insertions = source, nil
	ast.Inspect(parsed, i.node)
	slices.SortStableFunc(i.insertions, func(a, b insertion) int { return cmp.Or(a.at-b.at, a.depth-b.depth) })
	var out bytes.Buffer
	at := 0
	for _, x := range i.insertions {
		out.Write(source[at:x.at])
		out.WriteString(x.text)
		at = x.at
	}
	out.Write(source[at:])
	return out.Bytes(), parsed.Name.Name, nil
}

func (i *instrumenter) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		i.decision(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			i.decision(n.Cond)
		}
	case *ast.SwitchStmt:
		i.cases(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		i.cases(n.Body, false)
	case *ast.BinaryExpr:
		if joins(n) {
			for _, part := range []ast.Expr{n.X, n.Y} {
				if !joins(part) {
					i.wrap(part, false)
				}
			}
		}
	}
	return true
}

// joins says whether an expression is of parts that are conditions themselves.
func joins(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return joins(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.LAND || e.Op == token.LOR
	}
	return false
}

func (i *instrumenter) decision(e ast.Expr) { i.wrap(e, true) }

// wrap puts a probe around an expression. One that && and || join has others around its parts.
func (i *instrumenter) wrap(e ast.Expr, branch bool) {
	begin, end := i.files.Position(e.Pos()).Offset, i.files.Position(e.End()).Offset
	n := i.add(e.Pos(), string(i.source[begin:end]), branch, !joins(e))
	width := end - begin
	i.insertions = append(i.insertions, insertion{begin, 1<<40 - width, fmt.Sprintf("probed(%d, ", n)},
		insertion{end, width - 1<<40, ")"})
}

// cases counts arrivals at each case, and at none.
func (i *instrumenter) cases(body *ast.BlockStmt, conditions bool) {
	others := false
	for _, statement := range body.List {
		clause := statement.(*ast.CaseClause)
		others = others || clause.List == nil
		text := "default"
		if clause.List != nil {
			text = string(i.source[i.files.Position(clause.Pos()).Offset:i.files.Position(clause.Colon).Offset])
		}
		i.arrive(clause.Pos(), clause.Colon+1, text, "")
		for _, e := range clause.List {
			if conditions && !joins(e) {
				i.wrap(e, false)
			}
		}
	}
	if !others {
		i.arrive(body.Pos(), body.Rbrace, "none of the cases", "default:")
	}
}

func (i *instrumenter) arrive(at, before token.Pos, text, label string) {
	n := i.add(at, text, true, false)
	i.probes[n].arrival = true
	i.insertions = append(i.insertions, insertion{i.files.Position(before).Offset, 0,
		fmt.Sprintf("%s probed(%d, true);", label, n)})
}

func (i *instrumenter) add(at token.Pos, text string, branch, condition bool) int {
	position := i.files.Position(at)
	where := fmt.Sprintf("%s:%d", position.Filename, position.Line)
	i.probes = append(i.probes, &probe{where: where, text: strings.Join(strings.Fields(text), " "), branch: branch,
		condition: condition})
	return len(i.probes) - 1
}

func (i *instrumenter) report(file string, verbose bool) error {
	seen, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(seen)) {
		var at int
		fmt.Sscan(line, &at)
		i.probes[at/2].seen[at%2] = true
	}
	var branches, conditions [2]int // taken, all
	for _, p := range i.probes {
		for outcome, taken := range p.seen {
			if p.arrival && outcome == 0 {
				continue
			}
			one := 0
			if taken {
				one = 1
			} else if verbose {
				fmt.Printf("%s: never %t: %s\n", p.where, outcome == 1, p.text)
			}
			if p.branch {
				branches[0], branches[1] = branches[0]+one, branches[1]+1
			}
			if p.condition {
				conditions[0], conditions[1] = conditions[0]+one, conditions[1]+1
			}
		}
	}
	fmt.Println("branches:", share(branches))
	fmt.Println("conditions:", share(conditions))
	return nil
}

func share(n [2]int) string {
	return fmt.Sprintf("%d of %d taken, %.1f %%", n[0], n[1], 100*float64(n[0])/float64(max(n[1], 1)))
}
