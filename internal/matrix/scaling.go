package matrix

import (
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Fit is how memory goes with the batch, and the length of sequences where that is varied, with everything else the
// same.
type Fit struct {
	Figure   Figure     `json:"figure" doc:"The figure."`
	Axis     string     `json:"axis" doc:"The axis of batches."`
	Sequence string     `json:"sequence,omitempty" doc:"The axis of lengths of sequences; absent: they are not varied."`
	Values   []string   `json:"values" doc:"The values of the other axes; empty at those two."`
	Form     string     `json:"form" doc:"The form, as a + b × batch."`
	Terms    []Term     `json:"terms" doc:"Its terms."`
	R2       float64    `json:"r2" doc:"The coefficient of determination."`
	Straight bool       `json:"straight" doc:"Whether what is left over is no more than the noise of the runs."`
	Judged   bool       `json:"judged" doc:"Whether that can be told: there are cells enough, and the noise is known."`
	Freedom  int        `json:"freedom" doc:"How many points there are beyond the number of terms; 0 says nothing of the form."`
	Points   []FitPoint `json:"points" doc:"The cells."`
	Curve    *Curve     `json:"curve,omitempty" doc:"The line to be drawn, of the longest sequences."`
	Limit    *Limit     `json:"limit,omitempty" doc:"The largest batch that memory is predicted to hold."`
	Sentence string     `json:"sentence" doc:"The same in words."`
}

// Term is one of a fit.
type Term struct {
	Name     string    `json:"name" doc:"What it is of: fixed, batch, batch × seq²."`
	Value    float64   `json:"value" doc:"Its value."`
	Interval *Interval `json:"interval,omitempty" doc:"Its 95 % interval; absent: not known."`
}

// FitPoint is a cell in a fit.
type FitPoint struct {
	Cell     int     `json:"cell" doc:"The place of the cell in cells."`
	Batch    float64 `json:"batch" doc:"Its batch."`
	Sequence float64 `json:"sequence,omitempty" doc:"Its length of sequences."`
	Value    float64 `json:"value" doc:"What was measured."`
	Residual float64 `json:"residual" doc:"That less what the form gives."`
}

// Curve is a fit to be drawn, in columns. Low and high are absent where no interval is known.
type Curve struct {
	X    []float64 `json:"x" doc:"Batches."`
	Fit  []float64 `json:"fit" doc:"What the form gives there."`
	Low  []float64 `json:"low,omitempty" doc:"The lower end of its interval; absent: not known."`
	High []float64 `json:"high,omitempty" doc:"The upper end."`
}

// Limit is the largest batch that memory is foretold to hold.
type Limit struct {
	Of        string  `json:"of" doc:"Whose memory: device or machine."`
	Memory    int64   `json:"memory_bytes" doc:"How much that is, in bytes."`
	Batch     int64   `json:"batch" doc:"The largest batch."`
	Low       int64   `json:"low" doc:"So many fit as far as is known."`
	High      *int64  `json:"high,omitempty" doc:"More than so many do not; absent: not known."`
	Failed    *int64  `json:"failed,omitempty" doc:"The least batch that ran out of memory."`
	Times     float64 `json:"times" doc:"How many times the largest batch measured that is."`
	Unlimited bool    `json:"unlimited,omitempty" doc:"Whether memory was not seen to grow."`
	Refuted   bool    `json:"refuted,omitempty" doc:"Whether a batch that should fit did not."`
}

// forms are what memory may be made of. The first one alone is used where lengths of sequences are not varied.
var forms = []struct {
	name  string
	terms []string
}{
	{"a + b × batch", []string{"fixed", "batch"}},
	{"a + b × batch × seq", []string{"fixed", "batch × seq"}},
	{"a + b × batch × seq²", []string{"fixed", "batch × seq²"}},
	{"a + b × batch + c × batch × seq²", []string{"fixed", "batch", "batch × seq²"}},
	{"a + b × batch × seq + c × batch × seq²", []string{"fixed", "batch × seq", "batch × seq²"}},
}

func term(name string, batch, seq float64) float64 {
	switch name {
	case "batch":
		return batch
	case "batch × seq":
		return batch * seq
	case "batch × seq²":
		return batch * seq * seq
	}
	return 1
}

// fitted is a form with what is known of its coefficients.
type fitted struct {
	form       int
	value      []float64
	covariance [][]float64
	df         float64 // 0: no interval is known
	straight   bool    // what is left over is no more than the noise of the runs
	judged     bool    // whether that can be told
	press      float64 // sum of the squares of what each point is off when it is left out
}

// fits looks how memory goes with batches, for each combination of the other axes.
func (w *comparing) fits() {
	batch, seq := w.axis(kindBatch), w.axis(kindSequence)
	if batch < 0 {
		return
	}
	if _, ok := numbersOf(w.Axes[batch].Values); !ok {
		return
	}
	if seq >= 0 {
		if _, ok := numbersOf(w.Axes[seq].Values); !ok {
			seq = -1
		}
	}
	groups := map[string][]int{}
	var order []string
	for i, c := range w.Cells {
		values := slices.Clone(c.Values)
		values[batch] = ""
		if seq >= 0 {
			values[seq] = ""
		}
		key := joinKey(values)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	for _, key := range order {
		values := strings.Split(key, "\x00")
		w.alike = append(w.alike, values)
		w.fit(values, groups[key], batch, seq)
	}
}

// fit puts a line through cells of one kind.
func (w *comparing) fit(values []string, cells []int, batch, seq int) {
	f := Fit{Figure: w.Figure, Axis: w.Axes[batch].Name, Values: values}
	if w.away(values) && w.Device != "" {
		f.Figure = w.Device
	}
	if seq >= 0 && len(w.Axes[seq].Values) > 1 {
		f.Sequence = w.Axes[seq].Name
	}
	if info(f.Figure).Unit != mem.UnitBytes {
		return
	}
	var points []point
	for _, i := range cells {
		s, ok := w.Cells[i].Figures[f.Figure]
		if !ok || !w.speaks(i, f.Figure) {
			continue
		}
		p := point{cell: i, seq: 1, stat: s}
		p.batch = number(w.Cells[i].Values[batch])
		if f.Sequence != "" {
			p.seq = number(w.Cells[i].Values[seq])
		}
		points = append(points, p)
	}
	slices.SortStableFunc(points, func(p, q point) int { return order2(p.seq-q.seq, p.batch-q.batch) })
	best, ok := w.choose(points, f.Sequence != "")
	if !ok {
		return
	}
	w.describe(&f, points, best)
	f.Limit = w.limit(&f, points, best, cells, batch)
	f.Curve = w.curve(&f, points, best)
	f.Sentence = w.scalingSentence(&f)
	w.Fits = append(w.Fits, f)
}

// point is a cell whose memory is fitted.
type point struct {
	cell       int
	batch, seq float64
	stat       Stat
}

func number(text string) float64 {
	numbers, _ := numbersOf([]string{text})
	return numbers[0]
}

func order2(first, second float64) int {
	switch {
	case first < 0 || first == 0 && second < 0:
		return -1
	case first == 0 && second == 0:
		return 0
	}
	return 1
}

// choose fits each form that there are points for, and takes the one that foretells points best which it has not seen.
func (w *comparing) choose(points []point, varied bool) (fitted, bool) {
	candidates := forms[:1]
	if varied {
		candidates = forms
	}
	var best fitted
	found := false
	for n, form := range candidates {
		p := len(form.terms)
		if len(points) < p || n > 0 && len(points) < p+1 {
			continue
		}
		f, ok := w.least(points, n)
		if ok && (!found || f.press < best.press*(1-1e-9)) {
			best, found = f, true
		}
	}
	return best, found
}

// least is the fit of least squares through the cells' means.
func (w *comparing) least(points []point, form int) (fitted, bool) {
	terms := forms[form].terms
	p := len(terms)
	scale := make([]float64, p)
	rows := make([][]float64, len(points))
	for i, pt := range points {
		rows[i] = make([]float64, p)
		for k, name := range terms {
			rows[i][k] = term(name, pt.batch, pt.seq)
			scale[k] = max(scale[k], math.Abs(rows[i][k]))
		}
	}
	if slices.Contains(scale, 0) {
		return fitted{}, false
	}
	gram := square(p)
	for _, row := range rows {
		for k := range row {
			row[k] /= scale[k]
		}
		for k := range row {
			for l := range row {
				gram[k][l] += row[k] * row[l]
			}
		}
	}
	inverse, ok := invert(gram)
	if !ok {
		return fitted{}, false
	}
	f := fitted{form: form, value: make([]float64, p)}
	for i, row := range rows {
		for k := range p {
			f.value[k] += dot(inverse[k], row) * points[i].stat.Mean
		}
	}
	spread(&f, points, rows, inverse)
	for k := range p {
		f.value[k] /= scale[k]
		for l := range p {
			f.covariance[k][l] /= scale[k] * scale[l]
		}
	}
	return f, true
}

// bentBelow is how unlikely residuals must be, were they the noise of the runs, for cells to lie on no such line.
const bentBelow = 0.01

// spread finds how exact a fit is. Where what is left over is no more than the noise of the runs, that noise tells;
// else the residuals do. Of these there are few, so intervals are wide.
func spread(f *fitted, points []point, rows, inverse [][]float64) {
	p := len(f.value)
	var rest, expected float64 // sums of squares of residuals
	noisy := square(p)         // covariance from the noise of the runs
	var freedom sum
	known := true
	for i, row := range rows {
		residual := points[i].stat.Mean - dot(f.value, row)
		s := points[i].stat
		known = known && s.known()
		variance := s.variance * s.Mean * s.Mean
		lever := quadratic(inverse, row)
		rest += residual * residual
		expected += (1 - lever) * variance
		freedom.add(&s, variance)
		if lever < 1-1e-9 {
			f.press += residual * residual / ((1 - lever) * (1 - lever))
		}
		weights := make([]float64, p)
		for k := range p {
			weights[k] = dot(inverse[k], row)
		}
		for k := range p {
			for l := range p {
				noisy[k][l] += weights[k] * weights[l] * variance
			}
		}
	}
	left := len(points) - p
	f.judged = known && left > 0
	f.covariance = noisy
	f.df = freedom.df()
	if !known {
		f.df = 0
	}
	if left < 1 || negligible(rest, points) || known && expected > 0 &&
		beyondF(rest/expected, float64(left), f.df) >= bentBelow {
		f.straight = f.judged
		return
	}
	f.df = float64(left)
	for k := range p {
		for l := range p {
			f.covariance[k][l] = inverse[k][l] * rest / float64(left)
		}
		f.covariance[k][k] = max(f.covariance[k][k], noisy[k][k])
	}
}

// negligible says that residuals are those of arithmetic.
func negligible(rest float64, points []point) bool {
	whole := 0.0
	for _, p := range points {
		whole += p.stat.Mean * p.stat.Mean
	}
	return rest <= 1e-18*whole
}

// describe fills in what a fit says.
func (w *comparing) describe(f *Fit, points []point, best fitted) {
	form := forms[best.form]
	f.Form, f.Freedom = form.name, len(points)-len(form.terms)
	for k, name := range form.terms {
		t := Term{Name: name, Value: best.value[k]}
		if half, ok := w.halfOf(best, best.covariance[k][k]); ok {
			t.Interval = &Interval{t.Value - half, t.Value + half}
		}
		f.Terms = append(f.Terms, t)
	}
	mean, rest, whole := 0.0, 0.0, 0.0
	for _, p := range points {
		mean += p.stat.Mean / float64(len(points))
	}
	for _, p := range points {
		residual := p.stat.Mean - best.at(p.batch, p.seq)
		rest += residual * residual
		whole += (p.stat.Mean - mean) * (p.stat.Mean - mean)
		fp := FitPoint{Cell: p.cell, Batch: p.batch, Value: p.stat.Mean, Residual: residual}
		if f.Sequence != "" {
			fp.Sequence = p.seq
		}
		f.Points = append(f.Points, fp)
	}
	f.R2 = 1
	if whole > 0 {
		f.R2 = 1 - rest/whole
	}
	for k := range f.Terms {
		roundAll(&f.Terms[k].Value)
		f.Terms[k].Interval.round()
	}
	for k := range f.Points {
		roundAll(&f.Points[k].Residual)
	}
	roundAll(&f.R2)
	f.Straight, f.Judged = best.straight, best.judged
}

// halfOf is half the width of an interval; false: none is known.
func (w *comparing) halfOf(f fitted, variance float64) (float64, bool) {
	switch {
	case f.df <= 0:
		return 0, false
	case variance <= 0:
		return 0, true
	}
	return w.quantiles.of(f.df) * math.Sqrt(variance), true
}

// at is what a fit foretells.
func (f fitted) at(batch, seq float64) float64 { return dot(f.value, f.row(batch, seq)) }

func (f fitted) row(batch, seq float64) []float64 {
	terms := forms[f.form].terms
	row := make([]float64, len(terms))
	for k, name := range terms {
		row[k] = term(name, batch, seq)
	}
	return row
}

// band is what a fit foretells with its interval; without one, low and high are the same.
func (w *comparing) band(f fitted, batch, seq float64) (low, middle, high float64) {
	middle = f.at(batch, seq)
	half, _ := w.halfOf(f, quadratic(f.covariance, f.row(batch, seq)))
	return middle - half, middle, middle + half
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

func dot(p, q []float64) float64 {
	s := 0.0
	for i := range p {
		s += p[i] * q[i]
	}
	return s
}

func quadratic(m [][]float64, v []float64) float64 {
	s := 0.0
	for i := range v {
		s += v[i] * dot(m[i], v)
	}
	return s
}

// invert is by Gauss and Jordan with the largest pivot; false: there is no inverse worth its digits.
func invert(m [][]float64) ([][]float64, bool) {
	n := len(m)
	a, inverse := make([][]float64, n), square(n)
	for i := range m {
		a[i], inverse[i][i] = slices.Clone(m[i]), 1
	}
	for c := range n {
		pivot := c
		for r := c; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		if math.Abs(a[pivot][c]) < 1e-10 {
			return nil, false
		}
		a[c], a[pivot], inverse[c], inverse[pivot] = a[pivot], a[c], inverse[pivot], inverse[c]
		for r := range n {
			if r == c {
				continue
			}
			factor := a[r][c] / a[c][c]
			for k := range n {
				a[r][k] -= factor * a[c][k]
				inverse[r][k] -= factor * inverse[c][k]
			}
		}
		for k := range n {
			inverse[c][k] /= a[c][c]
		}
		for k := c + 1; k < n; k++ {
			a[c][k] /= a[c][c]
		}
		a[c][c] = 1
	}
	return inverse, true
}
