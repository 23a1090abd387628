package matrix

import (
	"math"
	"slices"
)

// packedComparison is a comparison for the page: intervals in columns, without what the page has in its cells and
// trials. web/src/matrix/compared.ts reads it.
type packedComparison struct {
	Version     int                    `json:"version"`
	Figure      Figure                 `json:"figure"`
	Device      Figure                 `json:"device_figure"`
	Level       float64                `json:"level"`
	Figures     []FigureInfo           `json:"figures"`
	Stats       map[Figure]*statColumn `json:"stats"`
	Ratios      []packedRatio          `json:"ratios"`
	Fits        []packedFit            `json:"fits"`
	Differences []Difference           `json:"differences"`
	Advice      []Advice               `json:"advice"`
	Notes       []string               `json:"notes"`
	Regression  *Regression            `json:"regression,omitempty"`
}

// statColumn has an entry for each cell with a figure. Low and High are how far the interval reaches below and above
// the mean, in parts of 100,000 of it; null where no interval is known.
type statColumn struct {
	Cell  []int    `json:"cell"`
	Low   []*int64 `json:"low"`
	High  []*int64 `json:"high"`
	Basis []Basis  `json:"basis"`
}

// packedRatio is a ratio with its pairs in columns.
type packedRatio struct {
	Ratio
	Of *pairColumn `json:"of,omitempty"`
}

// pairColumn has an entry for each pair; ratios are multiples of 1/10,000, null where they are not known.
type pairColumn struct {
	Cell    []int     `json:"cell"`
	Base    []int     `json:"base"`
	Ratio   []int64   `json:"ratio"`
	Low     []*int64  `json:"low"`
	High    []*int64  `json:"high"`
	Verdict []Verdict `json:"verdict"`
}

// packedFit is a fit with its curve in fewer digits, and its points without what the cells say.
type packedFit struct {
	Fit
	Points pointColumn `json:"points"`
	Curve  *Curve      `json:"curve,omitempty"`
}

// pointColumn has an entry for each point. Sequence is absent where lengths are not varied.
type pointColumn struct {
	Cell     []int     `json:"cell"`
	Sequence []float64 `json:"sequence,omitempty"`
	Residual []float64 `json:"residual"`
}

// Digits that a page has of what is only drawn, and parts of its ratios.
const (
	curveDigits    = 4
	residualDigits = 2
	meanParts      = 100_000
	ratioParts     = 10_000
)

func packComparison(c *Comparison) *packedComparison {
	if c == nil {
		return nil
	}
	p := &packedComparison{Version: c.Version, Figure: c.Figure, Device: c.Device, Level: c.Level, Figures: c.Figures,
		Stats:       map[Figure]*statColumn{},
		Differences: c.Differences, Advice: c.Advice, Notes: c.Notes, Regression: c.Regression.short()}
	for i := range c.Cells {
		for figure, s := range c.Cells[i].Figures {
			if p.Stats[figure] == nil {
				p.Stats[figure] = &statColumn{}
			}
			p.Stats[figure].add(i, s)
		}
	}
	for _, r := range c.Ratios {
		p.Ratios = append(p.Ratios, packedRatio{r, packPairs(r.Of)})
	}
	for _, f := range c.Fits {
		p.Fits = append(p.Fits, packedFit{f, packPoints(f), f.Curve.short()})
	}
	return p
}

func (c *statColumn) add(cell int, s Stat) {
	c.Cell, c.Basis = append(c.Cell, cell), append(c.Basis, s.Basis)
	var low, high *int64
	if s.Interval != nil && s.Mean == 0 {
		low, high = new(int64), new(int64)
	} else if s.Interval != nil {
		low, high = parts((s.Mean-s.Interval.Low)/s.Mean, meanParts), parts((s.Interval.High-s.Mean)/s.Mean, meanParts)
	}
	c.Low, c.High = append(c.Low, low), append(c.High, high)
}

// short is the same without the sentences, which say in words what the page shows.
func (g *Regression) short() *Regression {
	if g == nil {
		return nil
	}
	page := *g
	page.Changes = slices.Clone(g.Changes)
	for i := range page.Changes {
		page.Changes[i].Sentence = ""
	}
	return &page
}

// parts is a ratio in parts of one.
func parts(ratio float64, of float64) *int64 {
	n := int64(math.Round(ratio * of))
	return &n
}

func packPairs(pairs []Pair) *pairColumn {
	if len(pairs) == 0 {
		return nil
	}
	c := &pairColumn{}
	for _, p := range pairs {
		c.Cell, c.Base, c.Verdict = append(c.Cell, p.Cell), append(c.Base, p.Base), append(c.Verdict, p.Verdict)
		c.Ratio = append(c.Ratio, *parts(p.Ratio, ratioParts))
		var low, high *int64
		if p.Interval != nil {
			low, high = parts(p.Interval.Low, ratioParts), parts(p.Interval.High, ratioParts)
		}
		c.Low, c.High = append(c.Low, low), append(c.High, high)
	}
	return c
}

func packPoints(f Fit) pointColumn {
	var c pointColumn
	for _, p := range f.Points {
		c.Cell, c.Residual = append(c.Cell, p.Cell), append(c.Residual, short(p.Residual, residualDigits))
		if f.Sequence != "" {
			c.Sequence = append(c.Sequence, p.Sequence)
		}
	}
	return c
}

func (c *Curve) short() *Curve {
	if c == nil {
		return nil
	}
	column := func(values []float64) []float64 {
		values = slices.Clone(values)
		for i := range values {
			values[i] = short(values[i], curveDigits)
		}
		return values
	}
	return &Curve{X: column(c.X), Fit: column(c.Fit), Low: column(c.Low), High: column(c.High)}
}

// short is a value with so many significant digits, as few as JSON can write it in.
func short(v float64, digits int) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	power := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if power < 0 {
		step := math.Pow10(-power)
		return math.Round(v/step) * step
	}
	step := math.Pow10(power)
	return math.Round(v*step) / step
}
