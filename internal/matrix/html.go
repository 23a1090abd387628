package matrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"hightide/internal/mem"
	"hightide/web"
)

// pageMost is what a page may weigh so that it can still be mailed; it leaves out digits before it gets larger.
const pageMost = 1_000_000

// detail is how much of each trial a page carries.
type detail struct {
	digits int  // significant digits of a figure
	brief  bool // of each trial's figure the maximum and the mean alone
}

// details are tried in this order until the page is small enough. The last one is taken whatever it weighs.
var details = []detail{{digits: 6}, {digits: 4}, {digits: 3}, {digits: 3, brief: true}}

// HTML writes the matrix as one page that needs nothing else: filters, charts, tables, each cell with its trials.
// Without a comparison the page shows what was measured and no ratios.
func HTML(w io.Writer, r *Result, c *Comparison) error {
	var page bytes.Buffer
	for _, d := range details {
		text, err := json.Marshal(pack(r, c, d))
		if err != nil {
			return fmt.Errorf("write the matrix page: %w", err)
		}
		page.Reset()
		if err := web.Matrix(&page, text); err != nil {
			return err
		}
		if page.Len() <= pageMost {
			break
		}
	}
	if _, err := page.WriteTo(w); err != nil {
		return fmt.Errorf("write the matrix page: %w", err)
	}
	return nil
}

// packed is a result in columns: neighbours are alike, so they compress well. web/src/matrix/model.ts reads it.
type packed struct {
	Version    int               `json:"version"`
	Name       string            `json:"name"`
	StartWall  int64             `json:"start_wall_ns"`
	Axes       []Axis            `json:"axes"`
	Machines   []Machine         `json:"machines"`
	Goal       Goal              `json:"goal"`
	Spec       string            `json:"spec"`
	Keys       []string          `json:"keys"`
	Cells      [][]int           `json:"cells"` // of each its values' places in the axes
	Trials     trialColumn       `json:"trials"`
	Digits     int               `json:"digits"` // figures of trials are rounded to so many
	Comparison *packedComparison `json:"comparison,omitempty"`
}

// trialColumn has an entry for each trial of a known cell. Times are milliseconds, starts since the matrix began.
type trialColumn struct {
	Cell     []int                    `json:"cell"`
	Repeat   []int                    `json:"repeat"`
	State    []State                  `json:"state"`
	Reason   []string                 `json:"reason"`
	Run      []string                 `json:"run"`
	Machine  []string                 `json:"machine"`
	Start    []int64                  `json:"start_ms"`
	Duration []int64                  `json:"duration_ms"`
	Figures  map[Figure]*figureColumn `json:"figures"`
}

// figureColumn has an entry for each trial that measured a figure. Values are multiples of Unit; all but Max and
// StdDev are how far below Max they lie. A brief one has no Min, Median and StdDev.
type figureColumn struct {
	Trial  []int         `json:"trial"`
	Unit   int64         `json:"unit"`
	Max    []int64       `json:"max"`
	Mean   []int64       `json:"mean"`
	Min    []int64       `json:"min,omitempty"`
	Median []int64       `json:"median,omitempty"`
	StdDev []json.Number `json:"std_dev,omitempty"`
	Count  []int         `json:"count"`
	Label  []mem.Label   `json:"label"`
	Error  []int64       `json:"error,omitempty"` // where one has it, all have
}

func pack(r *Result, c *Comparison, d detail) *packed {
	p := &packed{Version: ResultVersion, Name: r.Name, StartWall: r.StartWall, Machines: r.Machines, Goal: r.Goal, Spec: r.Spec,
		Digits: d.digits, Comparison: packComparison(c)}
	p.Axes = append(p.Axes, r.Axes...)
	places := make(map[string]int, len(r.Cells))
	for i := range r.Cells {
		places[r.Cells[i].Key] = i
		p.Keys = append(p.Keys, r.Cells[i].Key)
		p.Cells = append(p.Cells, p.places(&r.Cells[i]))
	}
	p.Trials = packTrials(r, places, d)
	return p
}

// places of a cell's values in their axes. A value that its axis lacks is added to the page's axis, so that no cell
// is left out.
func (p *packed) places(c *Cell) []int {
	at := make([]int, len(p.Axes))
	for i := range p.Axes {
		value := ""
		if i < len(c.Values) {
			value = c.Values[i]
		}
		if at[i] = slices.Index(p.Axes[i].Values, value); at[i] < 0 {
			at[i] = len(p.Axes[i].Values)
			p.Axes[i].Values = append(slices.Clip(p.Axes[i].Values), value)
		}
	}
	return at
}

func packTrials(r *Result, places map[string]int, d detail) trialColumn {
	t := trialColumn{Figures: map[Figure]*figureColumn{}}
	units := figureUnits(r.Trials)
	for i := range r.Trials {
		trial := &r.Trials[i]
		cell, known := places[trial.Cell]
		if !known {
			continue
		}
		at := len(t.Cell)
		t.Cell, t.Repeat, t.State = append(t.Cell, cell), append(t.Repeat, trial.Repeat), append(t.State, trial.State)
		t.Reason, t.Run, t.Machine = append(t.Reason, trial.Reason), append(t.Run, trial.Run), append(t.Machine, trial.Machine)
		t.Start = append(t.Start, (trial.StartWall-r.StartWall)/1e6)
		t.Duration = append(t.Duration, (trial.Duration+5e5)/1e6)
		for figure, s := range trial.Figures {
			column := t.Figures[figure]
			if column == nil {
				column = &figureColumn{Unit: units[figure].unit}
				t.Figures[figure] = column
			}
			column.add(at, s, d, units[figure].errors)
		}
	}
	return t
}

// unitOf is what all values of a figure are multiples of: pages, KiB, or 1.
type unitOf struct {
	unit   int64
	errors bool // one of them is estimated
}

func figureUnits(trials []Trial) map[Figure]unitOf {
	units := map[Figure]unitOf{}
	for i := range trials {
		for figure, s := range trials[i].Figures {
			u := units[figure]
			u.unit = divisor(divisor(u.unit, s.Max), s.Min)
			u.errors = u.errors || s.Error != 0
			units[figure] = u
		}
	}
	for figure, u := range units {
		u.unit = max(u.unit, 1)
		units[figure] = u
	}
	return units
}

// divisor is the greatest common one of two figures; of 0 and another, the other.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

func (c *figureColumn) add(trial int, s Summary, d detail, errors bool) {
	unit := float64(c.Unit)
	most := float64(s.Max) / unit
	step := math.Pow10(max(0, int(math.Ceil(math.Log10(max(1, math.Abs(most)))))-d.digits))
	round := func(v float64) int64 { return int64(math.Round(v/unit/step) * step) }
	top := round(float64(s.Max))
	c.Trial, c.Count, c.Label = append(c.Trial, trial), append(c.Count, s.Count), append(c.Label, s.Label)
	c.Max, c.Mean = append(c.Max, top), append(c.Mean, top-round(s.Mean))
	if errors {
		c.Error = append(c.Error, round(float64(s.Error)))
	}
	if d.brief {
		return
	}
	c.Min, c.Median = append(c.Min, top-round(float64(s.Min))), append(c.Median, top-round(s.Median))
	c.StdDev = append(c.StdDev, significant(s.StdDev/unit, 3))
}

// significant is a value with so many digits.
func significant(v float64, digits int) json.Number {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "0"
	}
	return json.Number(strconv.FormatFloat(v, 'g', digits, 64))
}
