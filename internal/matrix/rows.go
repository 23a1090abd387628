package matrix

import (
	"math"
	"slices"

	"hightide/internal/mem"
)

// CellRow is a cell in a table of a matrix that is being measured.
type CellRow struct {
	Key    string   `json:"cell"`
	State  State    `json:"state,omitempty"` // done where one of its trials is, else that of the last; "": not tried
	Reason string   `json:"reason,omitempty"`
	Trials int      `json:"trials"`
	Left   int      `json:"left"` // repeats that are still to be made, as far as is known
	Figure Figure   `json:"figure,omitempty"`
	Unit   mem.Unit `json:"unit,omitempty"`
	Value  float64  `json:"value,omitempty"` // mean of the finished trials
	// 95 %, from this cell's repeats alone; absent with fewer than two, or where they do not differ
	Within *Interval `json:"interval,omitempty"`
}

// rowLevel is that of the intervals in a row.
const rowLevel = 0.95

// rows are those of all cells, in the spec's order.
func (p *plan) rows() []CellRow {
	rows := make([]CellRow, 0, len(p.spec.Cells))
	for i := range p.spec.Cells {
		rows = append(rows, p.row(p.spec.Cells[i].Key))
	}
	return rows
}

// row is what is known of a cell.
func (p *plan) row(key string) CellRow {
	c := p.cells[key]
	row := CellRow{Key: key, Trials: len(c.trials), Left: p.leftOf(key, c)}
	last := -1
	var done []Trial
	for repeat, t := range c.trials {
		if t.State == Done {
			done = append(done, t)
		}
		if repeat > last {
			last, row.State, row.Reason = repeat, t.State, t.Reason
		}
	}
	if len(done) == 0 {
		return row
	}
	row.State, row.Reason = Done, ""
	for _, figure := range p.figuresOf(c.cell) {
		if row.measure(figure, done) {
			break
		}
	}
	return row
}

// figuresOf are the figures that may stand for a cell, the first that was measured does.
func (p *plan) figuresOf(cell *Cell) []Figure {
	if imagined := p.spec.Value(cell, AxisDevice); len(imagined) > len(DeviceImagined) && imagined[:len(DeviceImagined)] == DeviceImagined {
		return slices.Concat(onDevice, []Figure{p.spec.Goal.Figure})
	}
	return []Figure{p.spec.Goal.Figure, PSS, RSS}
}

// measure fills in a figure; false: no trial has it.
func (r *CellRow) measure(figure Figure, trials []Trial) bool {
	var values []float64
	for _, t := range trials {
		if s, ok := t.Figures[figure]; ok {
			values = append(values, Value(figure, s))
		}
	}
	if len(values) == 0 {
		return false
	}
	s := summarise(values)
	r.Figure, r.Unit, r.Value = figure, info(figure).Unit, s.Mean
	if s.Count > 1 && s.StdDev > 0 {
		half := Student(float64(s.Count-1), rowLevel) * s.StdDev / math.Sqrt(float64(s.Count))
		r.Within = &Interval{Low: s.Mean - half, High: s.Mean + half}
	}
	return true
}
