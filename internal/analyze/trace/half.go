package trace

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// halfOf is what a program of XLA would need with half of its batch; nil: that is not known, or not asked for.
func halfOf(p *mem.Profile, o Options) (*mem.Halved, error) {
	if o.Batch == 0 {
		if len(p.Halves) == 0 || o.Filter != nil {
			return nil, nil
		}
		return &p.Halves[0], nil
	}
	var may []string
	for i := range p.Halves {
		if h := &p.Halves[i]; h.Batch == o.Batch {
			return h, nil
		}
		may = append(may, report.Count(p.Halves[i].Batch))
	}
	switch {
	case may == nil && ofDevices(p):
		return nil, fmt.Errorf("a profile of devices has no shapes, and so no batch; a dump of XLA's programs has them")
	case may == nil:
		return nil, fmt.Errorf("none of its arguments has a dimension that may be a batch")
	}
	return nil, fmt.Errorf("no argument has a batch of %s; what may be one is %s", report.Count(o.Batch),
		strings.Join(may, ", "))
}

// ofDevices says whether a profile is of the arrays that JAX's devices hold: it has bytes, and no shapes.
func ofDevices(p *mem.Profile) bool {
	return slices.ContainsFunc(p.Samples, func(s mem.ProfileSample) bool {
		return s.Labels["kind"] == "buffer" && s.Labels["device"] != ""
	})
}

// widelySaid is from which part of the figure on it is said that both ends are far apart: a tenth.
const widelySaid = 10

// addHalf tells both ends, and which dimension was taken as the batch.
func addHalf(r *report.Report, h *mem.Halved, file string, whole int64) {
	half := h.Batch / 2
	t := report.Table{Name: "half", Title: fmt.Sprintf("What %s would need with half of its batch", file),
		Columns: []report.Column{report.TextColumn("arguments", "Arguments"),
			{Name: "batch", Title: "Batch", Unit: mem.UnitCount}, {Name: "half", Title: "Half", Unit: mem.UnitCount},
			{Name: "bytes", Title: "Needs", Unit: mem.UnitBytes, Label: mem.Estimated},
			{Name: "low", Title: "Half, at least", Unit: mem.UnitBytes, Label: mem.Estimated},
			{Name: "high", Title: "Half, at most", Unit: mem.UnitBytes, Label: mem.Estimated}}}
	t.Subject = report.Subject{File: file, Of: file}
	names := listed(h.Arguments)
	t.Add(names, h.Batch, half, whole, int64(h.Low), int64(h.High))
	t.Note = "Estimated from the shapes of the dump; XLA was not asked again."
	if (h.High-h.Low)*widelySaid > (h.High+h.Low)>>1 {
		t.Note += " Both ends are far apart: which temporaries get the places of results, or which dimension of several " +
			"shrinks, is not in the dump."
	}
	r.AddTable(t)
	said := fmt.Sprintf("with half of its batch, %s in place of %s, it would need %v to %v (%s, by shapes)",
		report.Count(half), report.Count(h.Batch), h.Low, h.High, mem.Estimated)
	isSaid := func(c string) bool { return strings.HasPrefix(c, "with half of its batch") }
	if !slices.ContainsFunc(r.Headline.Clauses, isSaid) { // of the first of several files
		r.Headline.Say(append(slices.Clone(r.Headline.Clauses), said)...)
	}
	r.AddNote(fmt.Sprintf("The batch of %s was taken to be %s, a dimension of %s. Another is told by --batch N.", file,
		report.Count(h.Batch), names))
}

// listed are the first names of several, and how many more there are.
func listed(names []string) string {
	const most = 3
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
	switch n := len(names); {
	case n == 0:
		return "arguments without a name"
	case n > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %s", report.Counted(int64(n-most), "other"))
	}
	return strings.Join(names, ", ")
}
