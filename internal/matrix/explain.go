package matrix

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/mem"
)

// Holding is what a part of a program held at the peak of a run.
type Holding struct {
	By    string    `json:"by"`   // what the parts are: "line" or "category"
	Name  string    `json:"name"` // "train.py:12", "activations"
	Bytes mem.Bytes `json:"bytes"`
	Label mem.Label `json:"label"`
}

// Holdings is what a run held at its peak, of the device or of the host, by each way there is to tell parts apart.
// False: its recording does not say.
type Holdings func(run string, onDevice bool) ([]Holding, bool)

// Difference is what explains that a cell needs more than another one.
type Difference struct {
	Axis   string          `json:"axis" doc:"In which the cells differ."`
	Cell   int             `json:"cell" doc:"The place of the cell that needs more."`
	Base   int             `json:"base" doc:"The place of the other."`
	Figure Figure          `json:"figure" doc:"The figure."`
	Bytes  float64         `json:"bytes" doc:"By how much the means differ, in bytes."`
	Parts  []Part          `json:"parts" doc:"What both held at their peaks, largest difference first."`
	Rest   []DifferenceSum `json:"rest" doc:"How much all parts of one kind explain."`
	Note   string          `json:"note,omitempty" doc:"What is not known."`
}

// Part is one thing that both cells may hold.
type Part struct {
	By    string    `json:"by" doc:"What kind of part it is: line, part or category."`
	Name  string    `json:"name" doc:"Its name."`
	Cell  mem.Bytes `json:"cell_bytes" doc:"What the cell held, in bytes."`
	Base  mem.Bytes `json:"base_bytes" doc:"What the other held, in bytes."`
	Label mem.Label `json:"label" doc:"Where that comes from."`
}

// DifferenceSum is how much of a difference the parts of one kind explain.
type DifferenceSum struct {
	By        string    `json:"by" doc:"The kind of parts."`
	Explained mem.Bytes `json:"explained_bytes" doc:"How much they explain, in bytes."`
}

// Limits of what is explained.
const (
	explained  = 1  // pairs of each ratio: those furthest apart
	partsShown = 12 // of each way to tell them apart
	leastShare = 20 // parts that make up less than a twentieth of the difference are left out
)

// differences looks into the recordings of the pairs that are furthest apart.
func (w *comparing) differences() {
	if w.options.Holdings == nil {
		return
	}
	const most = 8 // each reads two recordings
	for _, r := range w.Ratios {
		if r.Figure != r.BaseFigure || info(r.Figure).Unit != mem.UnitBytes {
			continue
		}
		pairs := slices.DeleteFunc(slices.Clone(r.Of), func(p Pair) bool { return p.Verdict != More && p.Verdict != Less })
		slices.SortStableFunc(pairs, func(p, q Pair) int {
			return cmp.Compare(math.Abs(math.Log(q.Ratio)), math.Abs(math.Log(p.Ratio)))
		})
		for _, p := range pairs[:min(explained, len(pairs), most-len(w.Differences))] {
			w.Differences = append(w.Differences, w.difference(r, p))
		}
	}
}

// difference sets what two runs held side by side.
func (w *comparing) difference(r Ratio, p Pair) Difference {
	d := Difference{Axis: r.Axis, Cell: p.Cell, Base: p.Base, Figure: r.Figure, Parts: []Part{}, Rest: []DifferenceSum{},
		Bytes: w.Cells[p.Cell].Figures[r.Figure].Mean - w.Cells[p.Base].Figures[r.Figure].Mean}
	of, okOf := w.held(p.Cell, r.Figure)
	base, okBase := w.held(p.Base, r.Figure)
	if !okOf || !okBase {
		d.Note = "not known: the recordings do not say what held the memory"
		return d
	}
	parts := map[[2]string]*Part{}
	var order []*Part
	at := func(h Holding) *Part {
		key := [2]string{h.By, h.Name}
		if parts[key] == nil {
			parts[key] = &Part{By: h.By, Name: h.Name, Label: h.Label}
			order = append(order, parts[key])
		}
		return parts[key]
	}
	for _, h := range of {
		at(h).Cell += h.Bytes
	}
	for _, h := range base {
		at(h).Base += h.Bytes
	}
	d.sort(order)
	return d
}

// sort keeps the parts that differ most, and sums up all of each kind.
func (d *Difference) sort(parts []*Part) {
	slices.SortFunc(parts, func(p, q *Part) int {
		away := func(p *Part) mem.Bytes { return max(p.Cell-p.Base, p.Base-p.Cell) }
		return cmp.Or(cmp.Compare(p.By, q.By), cmp.Compare(away(q), away(p)), cmp.Compare(p.Name, q.Name))
	})
	kept := map[string]int{}
	for _, p := range parts {
		if len(d.Rest) == 0 || d.Rest[len(d.Rest)-1].By != p.By {
			d.Rest = append(d.Rest, DifferenceSum{By: p.By})
		}
		d.Rest[len(d.Rest)-1].Explained += p.Cell - p.Base
		if max(p.Cell-p.Base, p.Base-p.Cell)*leastShare < mem.Bytes(math.Abs(d.Bytes)) || p.Cell == p.Base {
			continue
		}
		if kept[p.By]++; kept[p.By] <= partsShown {
			d.Parts = append(d.Parts, *p)
		}
	}
}

// held is what the run held whose figure is in the middle of the cell's.
func (w *comparing) held(cell int, f Figure) ([]Holding, bool) {
	type run struct {
		id    string
		value int64
	}
	var runs []run
	for _, t := range w.result.Trials {
		if s, ok := t.Figures[f]; ok && t.State == Done && t.Run != "" && t.Cell == w.Cells[cell].Key {
			runs = append(runs, run{t.Run, s.Max})
		}
	}
	if len(runs) == 0 {
		return nil, false
	}
	slices.SortStableFunc(runs, func(p, q run) int { return cmp.Compare(p.value, q.value) })
	return w.options.Holdings(runs[len(runs)/2].id, slices.Contains(onDevice, f))
}
