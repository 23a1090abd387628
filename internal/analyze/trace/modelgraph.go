package trace

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
	"hightide/internal/report"
)

// computed says what a model's file tells of memory beside the weights, in a clause of the first sentence.
func computed(m *modelfile.Model) string {
	aside := ""
	if planned, ok := m.Planned.Get(); ok {
		aside = fmt.Sprintf("its runtime sets %v aside for what is computed, as the file says", mem.Bytes(planned))
	}
	if m.Graph == nil || len(m.Graph.Operators) == 0 {
		return aside
	}
	live := m.Graph.Live()
	at := highest(live)
	if live[at] == 0 {
		return aside
	}
	if aside != "" {
		aside += "; "
	}
	open, least := "", ""
	if m.Graph.Open {
		open = ", with each size that the file leaves open, as a batch, taken as 1 or as it stands there"
	}
	if unknown, _ := m.Graph.Unknown(); unknown > 0 || m.Graph.Inside > 0 {
		least = "at least "
	}
	return aside + fmt.Sprintf("the values that its operators hand to each other take %s%v at once, at operator %d of %d, "+
		"%s (estimated, without what kernels take%s)", least, live[at], at+1, len(live), m.Graph.Operators[at].Kind, open)
}

// liveSeries is the curve of what is alive over the operators.
const liveSeries mem.Quantity = "graph.live"

func highest(live []mem.Bytes) (at int) {
	for i := range live {
		if live[i] > live[at] {
			at = i
		}
	}
	return at
}

// addOperators adds what is alive while each operator runs: as a curve over them, and of the highest in a table.
func addOperators(r *report.Report, g *modelfile.Graph, file string, top int) {
	if g == nil || len(g.Operators) == 0 {
		return
	}
	live := g.Live()
	order := make([]int, len(live))
	curve := report.Series{Name: liveSeries, Title: "values alive, operator by operator", Unit: mem.UnitBytes,
		XUnit: mem.UnitEvents,
		Label: mem.Estimated}
	for i := range live {
		order[i] = i
		curve.X, curve.Y = append(curve.X, int64(i)), append(curve.Y, int64(live[i]))
	}
	r.Series = append(r.Series, curve)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(live[b], live[a]) })
	t := report.Table{Name: fmt.Sprintf("operators-%d", len(r.Tables)), Title: "Operators of " + file + " with most alive",
		Note: "Alive are the values that an operator takes and makes, those that later ones still take, and what the " +
			"caller gives and asks for; weights are not among them, and views count once. Kernels can take more than all " +
			"values, as a convolution that unfolds its input; a runtime saves what it does in place.",
		Columns: []report.Column{report.CountColumn("operator", "Operator"), report.TextColumn("kind", "Kind"),
			report.TextColumn("value", "Makes"), report.BytesColumn("makes", "Of bytes", mem.Estimated),
			report.BytesColumn("live", "Alive", mem.Estimated)}}
	for _, at := range first(order, cmp.Or(top, maxMappingNames)) {
		o := &g.Operators[at]
		name, made := "", mem.Some(0)
		for i, v := range o.Makes {
			if i == 0 {
				name = g.Values[v].Name
			}
			made = sum(made, g.Values[v].Bytes)
		}
		t.Add(mem.Some(int64(at+1)), o.Kind, name, made, mem.Some(int64(live[at])))
	}
	r.AddTable(t)
	if unknown, all := g.Unknown(); unknown > 0 {
		r.AddNote(fmt.Sprintf("Of %s, %s without a size in the file and counted as nothing. "+
			"onnx.shape_inference.infer_shapes adds sizes to a model of ONNX.", report.Counted(int64(all), "computed value"), map[bool]string{true: "1 is",
			false: report.Count(int64(unknown)) + " are"}[unknown == 1]))
	}
	if g.Methods > 1 {
		r.AddNote(fmt.Sprintf("The operators are those of `%s`, which has most set aside of the file's %d methods.",
			g.Method, g.Methods))
	}
	if g.Inside > 0 {
		r.AddNote(fmt.Sprintf("What is alive inside %s, as loops and branches have them, is not counted.",
			report.Counted(int64(g.Inside), "graph")))
	}
}

// sum is absent where one of both is.
func sum(a, b mem.Optional) mem.Optional {
	if !a.Known() || !b.Known() {
		return mem.Optional{}
	}
	return a.Plus(b)
}
