package trace

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// arenaSeries is the curve of what an arena has in use.
const arenaSeries mem.Quantity = "arena.in_use"

// OfNodes adds what a runtime's profiler says of a model's nodes: a table of them, and what each arena had in use over
// time where it tells. top bounds the nodes, as that of OfMappings its names.
func OfNodes(r *report.Report, p *mem.NodeProfile, file string, top int) {
	nodes := slices.SortedStableFunc(slices.Values(p.Nodes), func(a, b mem.NodeRuns) int {
		return cmp.Or(cmp.Compare(b.Raised.Or(0), a.Raised.Or(0)), cmp.Compare(b.Output.Or(0), a.Output.Or(0)))
	})
	t := report.Table{Name: fmt.Sprintf("nodes-%d", len(r.Tables)), Title: "Nodes of " + file,
		Note: "Made is the largest output of one run. Took is by how much more of the arena was in use after a run than " +
			"before it, at most; from the second call on ONNX Runtime may take a call's memory at once, before its nodes run. " +
			"What kernels take and give back within a run is in the peak alone.",
		Columns: []report.Column{report.TextColumn("node", "Node"), report.TextColumn("operator", "Operator"),
			report.CountColumn("runs", "Runs"), report.TimeColumn("time", "Time"),
			report.BytesColumn("made", "Made", mem.Measured), report.BytesColumn("took", "Took", mem.Measured),
			report.BytesColumn("raised", "Peak raised", mem.Measured), report.TextColumn("provider", "Provider")}}
	shown := first(nodes, cmp.Or(top, maxMappingNames))
	for i := range shown {
		n := &shown[i]
		t.Add(n.Name, n.Operator, mem.Some(n.Runs), mem.Some(n.Time), n.Output, n.Added, n.Raised, n.Provider)
	}
	if rest := len(nodes) - len(shown); rest > 0 {
		t.Note += fmt.Sprintf(" Of %s more nothing is shown: --top 0 lists all.", report.Counted(int64(rest), "node"))
	}
	r.AddTable(t)
	for i := range p.Arenas {
		a := &p.Arenas[i]
		r.Series = append(r.Series, report.Series{Name: arenaSeries, Subject: report.Subject{File: file, Device: a.Provider, Of: a.Provider},
			Title: "arena in use", Unit: mem.UnitBytes, XUnit: mem.UnitNanoseconds, Label: mem.Measured, X: a.X, Y: a.Y})
	}
	if r.Headline.Verdict != "" {
		return
	}
	r.Headline.NotLooked = "Weights outside of the arena, and what the process takes beside it, were not looked for: the " +
		"profile does not say it. hightide run measures it."
	r.Headline.Say(arenas(p, file, &nodes[0])...)
	if len(p.Arenas) > 0 {
		r.Headline.MainSource = arenaSeries
	}
}

// arenas says what the arenas had in use; most is the node that comes first in the table.
func arenas(p *mem.NodeProfile, file string, most *mem.NodeRuns) []string {
	if len(p.Arenas) == 0 {
		largest := ""
		if n, known := most.Output.Get(); known {
			largest = fmt.Sprintf("the largest output, %v, is of `%s` (measured)", mem.Bytes(n), most.Name)
		}
		return []string{file + " does not say what the arena held: ONNX Runtime 1.20 does not write it, 1.32 does", largest}
	}
	var clauses []string
	start := file + ": "
	for i := range p.Arenas {
		a := &p.Arenas[i]
		held := ""
		if a.Held > 0 {
			held = fmt.Sprintf(", and held at most %v", a.Held)
		}
		clauses = append(clauses, fmt.Sprintf("%sthe arena of %s had at most %v in use%s (measured)", start, a.Provider,
			a.Peak, held))
		start = ""
	}
	if most.Raised.Or(0) > 0 {
		clauses = append(clauses, fmt.Sprintf("`%s` raised its peak most, by %v", most.Name, mem.Bytes(most.Raised.Or(0))))
	}
	return clauses
}
