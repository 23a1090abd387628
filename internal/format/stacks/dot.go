package stacks

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// dotNodes bounds the drawing: more nobody reads.
const dotNodes = 80

// kindTitle says in words what a kind of a profile counts.
func kindTitle(name string) string {
	titles := map[string]string{"space": "bytes at the peak", "objects": "blocks at the peak",
		"bytes-time": "bytes × time, as the average held",
		"count":      "allocations", "churn": "bytes allocated and freed again"}
	return cmp.Or(titles[name], name)
}

type dotNode struct {
	location  uint32
	own, with int64 // bytes allocated by it, and by it or what it calls
}

type dotEdge struct{ from, to uint32 }

// WriteDot draws who calls whom to hold how many bytes, the largest functions, for Graphviz.
func WriteDot(out io.Writer, p *mem.Profile) error {
	nodes, edges, total := dotGraph(p)
	kind := p.Kinds[p.Default]
	amount := func(n int64) string {
		if kind.Unit == mem.UnitBytes {
			return mem.Bytes(n).String()
		}
		return report.Count(n)
	}
	slices.SortFunc(nodes, func(a, b dotNode) int {
		return cmp.Or(cmp.Compare(b.with, a.with), cmp.Compare(a.location, b.location))
	})
	left := max(0, len(nodes)-dotNodes)
	nodes = nodes[:len(nodes)-left]
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "digraph memory {\n\tlabel=%q;\n\tnode [shape=box, fontname=\"sans-serif\"];\n",
		fmt.Sprintf("%s (%s); %d smaller functions are not drawn", amount(total), kindTitle(kind.Name), left))
	drawn := map[uint32]bool{}
	for _, n := range nodes {
		drawn[n.location] = true
		l := p.Stacks.Locations[n.location]
		size := 8 + 16*math.Sqrt(float64(n.own)/float64(max(total, 1)))
		fmt.Fprintf(w, "\tn%d [label=%s, tooltip=%s, fontsize=%.1f];\n", n.location,
			strconv.Quote(fmt.Sprintf("%s\n%s here, %s in all", dotName(l), amount(n.own), amount(n.with))),
			strconv.Quote(frameName(l)), size)
	}
	var between []dotEdge
	for e := range edges {
		if drawn[e.from] && drawn[e.to] {
			between = append(between, e)
		}
	}
	slices.SortFunc(between, func(a, b dotEdge) int {
		return cmp.Or(cmp.Compare(a.from, b.from),
			cmp.Compare(a.to, b.to))
	})
	for _, e := range between {
		fmt.Fprintf(w, "\tn%d -> n%d [label=%q, weight=%d];\n", e.from, e.to, amount(edges[e]), 1+edges[e]*100/max(total, 1))
	}
	fmt.Fprintln(w, "}")
	return w.Flush()
}

// dotName is a location in the few words that a box has room for: native functions without their arguments, files
// without their folders.
func dotName(l mem.Location) string {
	l.Function = plainFunction(l.Function)
	if runes := []rune(l.Function); len(runes) > dotWidth {
		l.Function = string(runes[:dotWidth-1]) + "…"
	}
	l.File = path.Base(l.File)
	if l.File == "." {
		l.File = ""
	}
	return frameName(l)
}

// dotWidth is how many letters of a function's name are drawn.
const dotWidth = 60

// plainFunction leaves out what stands in brackets of a function of C++: arguments of templates and calls.
func plainFunction(name string) string {
	if !strings.Contains(name, "::") {
		return name // "<module>" is not a template
	}
	var kept strings.Builder
	depth := 0
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	for _, c := range name {
		switch c {
		case '<', '(':
			depth++
		case '>', ')':
			depth = max(0, depth-1)
		default:
			if depth == 0 {
				kept.WriteRune(c)
			}
		}
	}
	return strings.TrimSpace(kept.String())
}

// dotGraph sums a profile by location, and by caller and callee; recursion counts once.
func dotGraph(p *mem.Profile) (nodes []dotNode, edges map[dotEdge]int64, total int64) {
	var byLocation mem.Tally[uint32, dotNode]
	edges = map[dotEdge]int64{}
	for _, s := range p.Samples {
		value := s.Values[p.Default]
		total += value
		seen, seenEdge := map[uint32]bool{}, map[dotEdge]bool{}
		callee := uint32(0)
		for depth, l := range p.Stacks.Numbers(s.Stack) {
			n := byLocation.At(l)
			n.location = l
			if depth == 0 {
				n.own += value
			} else if e := (dotEdge{l, callee}); !seenEdge[e] {
				seenEdge[e] = true
				edges[e] += value
			}
			if !seen[l] {
				seen[l] = true
				n.with += value
			}
			callee = l
		}
	}
	return byLocation.All, edges, total
}
