package matrix

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/web"
)

// pageMost is what a page may weigh so that it can still be mailed; it leaves out digits before it gets larger.
const pageMost = 1_000_000

// detail is how much of each trial a page carries.
type detail struct {
	digits int     // significant digits of a figure, at the least
	brief  bool    // of each trial's figure the maximum and the mean alone
	weight float64 // what a figure of one trial takes of the page, in bytes, about
}

// details are tried in this order until the page is small enough. The last one is taken whatever it weighs.
var details = []detail{{digits: 6, weight: 14}, {digits: 4, weight: 9}, {digits: 3, weight: 7},
	{digits: 3, brief: true, weight: 4}}

// HTML writes the matrix as one page that needs nothing else: filters, charts, tables, each cell with its trials.
// Without a comparison the page shows what was measured and no ratios. Reports are the addresses of recordings' own
// reports, by run and as seen from the page; each cell links to those of its trials.
func HTML(w io.Writer, r *Result, c *Comparison, reports map[string]string) error {
	figures := 0
	for i := range r.Trials {
		figures += len(r.Trials[i].Figures)
	}
	var page bytes.Buffer
	for i, d := range details {
		if i < len(details)-1 && float64(figures)*d.weight > pageMost {
			continue // no need to try
		}
		packed := pack(r, c, d)
		packed.Reports = reports
		text, err := json.Marshal(packed)
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

// Typical names for each cell the run that stands for it. Of its finished trials the one with the median of a figure,
// else the last one that has a recording. Cells without one are not in it.
func Typical(r *Result, figure Figure) []string {
	trials := map[string][]*Trial{}
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Run != "" {
			trials[t.Cell] = append(trials[t.Cell], t)
		}
	}
	var runs []string
	for i := range r.Cells {
		some := trials[r.Cells[i].Key]
		if len(some) == 0 {
			continue
		}
		last := some[len(some)-1]
		done := slices.DeleteFunc(some, func(t *Trial) bool { return t.State != Done })
		if len(done) == 0 {
			runs = append(runs, last.Run)
			continue
		}
		slices.SortStableFunc(done, func(p, q *Trial) int {
			return cmp.Compare(p.Figures[figure].Max,
				q.Figures[figure].Max)
		})
		runs = append(runs, done[(len(done)-1)/2].Run)
	}
	return runs
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
	Digits     int               `json:"digits"`            // figures of trials are rounded to so many
	Reports    map[string]string `json:"reports,omitempty"` // of a run: its report's address
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

// figureColumn has an entry for each trial that measured a figure. Values are multiples of Unit; Mean, Min and Median
// are how far below Max they lie. A brief one has no Min, Median and StdDev.
type figureColumn struct {
	Trial  []int       `json:"trial"`
	Unit   int64       `json:"unit"`
	Max    []int64     `json:"max"`
	Mean   []int64     `json:"mean"`
	Min    []int64     `json:"min,omitempty"`
	Median []int64     `json:"median,omitempty"`
	StdDev []float64   `json:"std_dev,omitempty"`
	Count  []int       `json:"count"`
	Label  []mem.Label `json:"label"`
	Error  []int64     `json:"error,omitempty"` // where one has it, all have

	estimated bool // one of them has an error
}

func pack(r *Result, c *Comparison, d detail) *packed {
	p := &packed{Version: ResultVersion, Name: r.Name, StartWall: r.StartWall, Machines: r.Machines, Goal: r.Goal,
		Spec:   r.Spec,
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
	for i := range r.Trials {
		trial := &r.Trials[i]
		cell, known := places[trial.Cell]
		if !known {
			continue
		}
		at := len(t.Cell)
		t.Cell, t.Repeat, t.State = append(t.Cell, cell), append(t.Repeat, trial.Repeat), append(t.State, trial.State)
		t.Reason, t.Run, t.Machine = append(t.Reason, trial.Reason), append(t.Run, trial.Run),
			append(t.Machine, trial.Machine)
		t.Start = append(t.Start, (trial.StartWall-r.StartWall)/1e6)
		t.Duration = append(t.Duration, (trial.Duration+5e5)/1e6)
		for figure, s := range trial.Figures {
			if t.Figures[figure] == nil {
				t.Figures[figure] = newFigureColumn(r.Trials, figure, d)
			}
			t.Figures[figure].add(at, s, d)
		}
	}
	return t
}

// newFigureColumn finds the unit of a figure. It is what all of its values are multiples of (pages, KiB, or 1), or a
// round multiple of that which still leaves the smallest one its digits.
func newFigureColumn(trials []Trial, figure Figure, d detail) *figureColumn {
	c := &figureColumn{}
	least := int64(math.MaxInt64)
	for i := range trials {
		s, ok := trials[i].Figures[figure]
		if !ok {
			continue
		}
		c.Unit = divisor(divisor(c.Unit, s.Max), s.Min)
		c.estimated = c.estimated || s.Error != 0
		if s.Max > 0 {
			least = min(least, s.Max)
		}
	}
	c.Unit = max(c.Unit, 1)
	for float64(c.Unit)*10*math.Pow10(d.digits-1) <= float64(least) && least < math.MaxInt64 {
		c.Unit *= 10
	}
	return c
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

func (c *figureColumn) add(trial int, s Summary, d detail) {
	units := func(v float64) int64 { return int64(math.Round(v / float64(c.Unit))) }
	top := units(float64(s.Max))
	c.Trial, c.Count, c.Label = append(c.Trial, trial), append(c.Count, s.Count), append(c.Label, s.Label)
	c.Max, c.Mean = append(c.Max, top), append(c.Mean, top-units(s.Mean))
	if c.estimated {
		c.Error = append(c.Error, units(float64(s.Error)))
	}
	if d.brief {
		return
	}
	c.Min, c.Median = append(c.Min, top-units(float64(s.Min))), append(c.Median, top-units(s.Median))
	c.StdDev = append(c.StdDev, short(s.StdDev/float64(c.Unit), deviationDigits))
}

// deviationDigits are those of a standard deviation, which is an estimate itself.
const deviationDigits = 2
