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
	Ratios      []Ratio                `json:"ratios"`
	Fits        []Fit                  `json:"fits"`
	Differences []Difference           `json:"differences"`
	Advice      []Advice               `json:"advice"`
	Notes       []string               `json:"notes"`
}

// statColumn has an entry for each cell with a figure. Low and High are null where no interval is known.
type statColumn struct {
	Cell  []int      `json:"cell"`
	Mean  []float64  `json:"mean"`
	Low   []*float64 `json:"low"`
	High  []*float64 `json:"high"`
	Basis []Basis    `json:"basis"`
}

// Digits that a page draws of: intervals of cells, and what is only drawn.
const (
	statDigits  = 6
	curveDigits = 4
)

func packComparison(c *Comparison) *packedComparison {
	if c == nil {
		return nil
	}
	p := &packedComparison{Version: c.Version, Figure: c.Figure, Device: c.Device, Level: c.Level, Figures: c.Figures, Stats: map[Figure]*statColumn{},
		Ratios: slices.Clone(c.Ratios), Fits: slices.Clone(c.Fits), Differences: c.Differences, Advice: c.Advice, Notes: c.Notes}
	for i := range c.Cells {
		for figure, s := range c.Cells[i].Figures {
			if p.Stats[figure] == nil {
				p.Stats[figure] = &statColumn{}
			}
			p.Stats[figure].add(i, s)
		}
	}
	for i := range p.Ratios {
		p.Ratios[i].Of = shortPairs(p.Ratios[i].Of)
	}
	for i := range p.Fits {
		p.Fits[i].Points, p.Fits[i].Curve = shortPoints(p.Fits[i].Points), p.Fits[i].Curve.short()
	}
	return p
}

func (c *statColumn) add(cell int, s Stat) {
	c.Cell, c.Mean, c.Basis = append(c.Cell, cell), append(c.Mean, short(s.Mean, statDigits)), append(c.Basis, s.Basis)
	if s.Interval == nil {
		c.Low, c.High = append(c.Low, nil), append(c.High, nil)
		return
	}
	low, high := short(s.Interval.Low, statDigits), short(s.Interval.High, statDigits)
	c.Low, c.High = append(c.Low, &low), append(c.High, &high)
}

func shortPairs(pairs []Pair) []Pair {
	pairs = slices.Clone(pairs)
	for i := range pairs {
		pairs[i].Ratio = short(pairs[i].Ratio, curveDigits)
		if interval := pairs[i].Interval; interval != nil {
			pairs[i].Interval = &Interval{short(interval.Low, curveDigits), short(interval.High, curveDigits)}
		}
	}
	return pairs
}

func shortPoints(points []FitPoint) []FitPoint {
	points = slices.Clone(points)
	for i := range points {
		points[i].Value, points[i].Residual = short(points[i].Value, curveDigits), short(points[i].Residual, curveDigits)
	}
	return points
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
		return v
	}
	power := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if power < 0 {
		step := math.Pow10(-power)
		return math.Round(v/step) * step
	}
	step := math.Pow10(power)
	return math.Round(v*step) / step
}
