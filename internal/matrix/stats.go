package matrix

import (
	"math"
	"slices"
)

// Stat is one figure of one cell over its repeats. Of each repeat it takes one value (see Statistic).
type Stat struct {
	Count    int       `json:"count" doc:"How many repeats have the figure."`
	Mean     float64   `json:"mean" doc:"The mean over repeats."`
	Median   float64   `json:"median" doc:"The median."`
	StdDev   float64   `json:"std_dev" doc:"The standard deviation."`
	Min      float64   `json:"min" doc:"The smallest."`
	Max      float64   `json:"max" doc:"The largest."`
	Interval *Interval `json:"interval,omitempty" doc:"The 95 % interval of the mean; absent: not known."`
	Basis    Basis     `json:"basis" doc:"What that rests on: own repeats of the cell, pooled ones of cells that are alike, identical repeats, or one run, which gives none."`
	Error    float64   `json:"error,omitempty" doc:"How far each value may be off, where it is estimated; the interval includes it."`

	variance float64 // of the mean, relative to its square
	df       float64
	like     *alike // the cells that have one variance together; nil: it is the cell's own
	first    *Stat  // of the repeats that no cell's spread had a say in
}

// Interval holds the truth in 95 of 100 such statements.
type Interval struct {
	Low  float64 `json:"low" doc:"Its lower end."`
	High float64 `json:"high" doc:"Its upper end."`
}

// Basis says what an interval rests on.
type Basis string

// What intervals rest on.
const (
	OneRun    Basis = "one_run"   // nothing: there is none
	Identical Basis = "identical" // all repeats have the same value, as those of every cell like it
	Own       Basis = "own"       // the spread of the cell's own repeats
	Pooled    Basis = "pooled"    // that, and what the spread of the other cells says of it
)

// summarise is what is known of repeats by themselves.
func summarise(values []float64) Stat {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	s := Stat{Count: n, Min: sorted[0], Max: sorted[n-1], Median: (sorted[(n-1)/2] + sorted[n/2]) / 2}
	for _, v := range sorted {
		s.Mean += (v - sorted[0]) / float64(n) // from the least one: equal values have exactly that mean
	}
	s.Mean += sorted[0]
	for _, v := range sorted {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	if n > 1 {
		s.StdDev = math.Sqrt(s.StdDev / float64(n-1))
	} else {
		s.StdDev = 0
	}
	return s
}

// identical says that the repeats, two at least, do not differ.
func (s *Stat) identical() bool { return s.Count > 1 && s.Min == s.Max }

// relative is the variance of one repeat, relative to the square of the mean; false: it has none.
func (s *Stat) relative() (float64, bool) {
	if s.Count < 2 || s.Mean <= 0 {
		return 0, false
	}
	return s.StdDev * s.StdDev / (s.Mean * s.Mean), true
}

// noise is how the repeats of cells scatter about their means, relative to these.
type noise struct {
	by    []int             // places of the axes by whose values cells differ in that; of none: all are alike
	likes map[string]*alike // by those values; nil: cells differ, and not by values of an axis or two
	floor float64           // no variance of a cell's own is taken for less
	any   bool              // some cell varies
}

// alike are cells whose variances differ no more than chance makes them.
type alike struct {
	variance float64 // of one repeat
	df       float64
}

// Limits of what the spread of one cell says of another's. docs/decisions/intervals.md has the simulations.
const (
	leastCells = 4    // that vary, of those that are taken for alike
	alikeFrom  = 8    // prior degrees of freedom from which on cells count as alike
	splitLevel = 0.05 // at which an axis tells variances apart, over all comparisons
	floorPart  = 0.5  // of the median variance: few repeats may lie close together by chance
	floorStop  = 1    // the same where lying close together ends the repeats, and so is chance more often
)

// varying is what noise is learned from: a cell whose repeats differ.
type varying struct {
	values       []string
	variance, df float64
	first        float64 // variance of the first repeats
	log, firstDF float64 // of that, without the logarithm's bias
}

// noiseOf learns from the cells that vary. Whether they are alike is told from the first repeats of each. Where a
// cell is repeated until it is known well enough, those that lie close together by chance are fewer, and cells look
// different for that alone. Where they are not all alike it looks for one axis, then for two, by whose values they
// are: one framework's runs scatter more than another's.
func noiseOf(stats []*Stat, values [][]string, axes int, stops bool) noise {
	var cells []varying
	var variances []float64
	for i, s := range stats {
		if s == nil {
			continue
		}
		if v, ok := s.relative(); ok && v > 0 {
			c := varying{values: values[i], variance: v, df: float64(s.Count - 1)}
			if first, ok := s.first.relative(); ok && first > 0 {
				c.first, c.firstDF = first, float64(s.first.Count-1)
				c.log = math.Log(first) - digamma(c.firstDF/2) + math.Log(c.firstDF/2)
			}
			cells = append(cells, c)
			variances = append(variances, v)
		}
	}
	if len(cells) == 0 {
		return noise{}
	}
	slices.Sort(variances)
	n := noise{floor: floorPart * variances[len(variances)/2], any: true}
	if stops {
		n.floor = floorStop * variances[len(variances)/2]
	}
	for _, by := range partitions(axes) {
		if likes, ok := divide(cells, by); ok && !splits(cells, by, axes) {
			n.by, n.likes = by, likes
			break
		}
	}
	return n
}

// partitions are none, each and each two of so many axes.
func partitions(axes int) [][]int {
	all := [][]int{nil}
	for a := range axes {
		all = append(all, []int{a})
	}
	for a := range axes {
		for b := range a {
			all = append(all, []int{b, a})
		}
	}
	return all
}

// valuesOf are the values of some axes, as a key.
func valuesOf(values []string, by []int) string {
	switch len(by) {
	case 0:
		return ""
	case 1:
		return values[by[0]]
	}
	return values[by[0]] + "\x00" + values[by[1]]
}

// divide pools the variances of cells that share values; false: some of these are not alike, or too few to tell.
func divide(cells []varying, by []int) (map[string]*alike, bool) {
	parts := map[string][]varying{}
	for _, c := range cells {
		key := valuesOf(c.values, by)
		parts[key] = append(parts[key], c)
	}
	likes := make(map[string]*alike, len(parts))
	for key, part := range parts {
		if prior(part) < alikeFrom {
			return nil, false
		}
		var l alike
		for _, c := range part {
			l.df += c.df
			l.variance += c.df * c.variance
		}
		l.variance /= l.df
		likes[key] = &l
	}
	return likes, true
}

// splits says whether some axis tells the variances of cells apart that are taken for alike. One framework's runs may
// scatter three times as much as another's while few repeats of each cell leave that open; those of all its cells do
// not.
func splits(cells []varying, by []int, axes int) bool {
	type part struct{ sum, df float64 }
	tests, least := 0, 1.0
	for axis := range axes {
		if slices.Contains(by, axis) {
			continue
		}
		parts := map[string]map[string]*part{}
		for _, c := range cells {
			within := valuesOf(c.values, by)
			if parts[within] == nil {
				parts[within] = map[string]*part{}
			}
			p := parts[within][c.values[axis]]
			if p == nil {
				p = &part{}
				parts[within][c.values[axis]] = p
			}
			p.sum, p.df = p.sum+c.firstDF*c.first, p.df+c.firstDF
		}
		for _, of := range parts {
			for _, a := range of {
				for _, b := range of {
					if a != b && a.df > 0 && b.df > 0 && b.sum > 0 {
						tests++
						least = min(least, beyondF(a.sum/a.df/(b.sum/b.df), a.df, b.df))
					}
				}
			}
		}
	}
	return least*float64(tests) < splitLevel
}

// prior is how much the variances of all cells say of that of one, as degrees of freedom: infinite where they differ no
// more than chance makes them. Source: Smyth, "Linear models and empirical Bayes methods for assessing differential
// expression in microarray experiments", 2004, section 6.2.
func prior(all []varying) float64 {
	cells := slices.DeleteFunc(slices.Clone(all), func(c varying) bool { return c.firstDF == 0 })
	if len(cells) < leastCells {
		return 0
	}
	mean, spread, expected := 0.0, 0.0, 0.0
	for _, c := range cells {
		mean += c.log / float64(len(cells))
		expected += trigamma(c.firstDF/2) / float64(len(cells))
	}
	for _, c := range cells {
		spread += (c.log - mean) * (c.log - mean) / float64(len(cells)-1)
	}
	if spread <= expected {
		return math.Inf(1)
	}
	return 2 * inverseTrigamma(spread-expected)
}

// settle gives a cell the variance of its mean and what that rests on. Exact says that repeats that do not differ are
// so for a reason: those of the cells like it do not either.
func (n noise) settle(s *Stat, values []string, exact bool) {
	own, ok := s.relative()
	like := n.likes[valuesOf(values, n.by)]
	switch {
	case s.Count < 2:
		s.Basis = OneRun
	case exact:
		s.Basis, s.df = Identical, math.Inf(1)
	case !ok: // all are zero, and those of others are not: no scale to say how far off that may be
		s.Basis = Identical
	case like != nil:
		s.Basis, s.variance, s.df, s.like = Pooled, like.variance/float64(s.Count), like.df, like
	default:
		s.Basis, s.variance, s.df = Own, max(own, n.floor)/float64(s.Count), float64(s.Count-1)
	}
}

// known says whether the stat has an interval.
func (s *Stat) known() bool { return s.Count > 1 && s.df > 0 }

// bound gives the stat the interval of its mean.
func (s *Stat) bound(q *quantiles) {
	if !s.known() {
		return
	}
	half := s.scatter(q) + s.Error
	s.Interval = &Interval{max(s.Mean-half, 0), s.Mean + half}
}

// scatter is half of the interval's width as far as repeats tell.
func (s *Stat) scatter(q *quantiles) float64 {
	if s.variance == 0 {
		return 0
	}
	return q.of(s.df) * math.Sqrt(s.variance) * s.Mean
}

// sum adds up independent means' variances, with the degrees of freedom of their sum (Welch and Satterthwaite). Cells
// that have one variance together count as one estimate of it.
type sum struct {
	variance, parts float64
	likes           []shared
}

type shared struct {
	of       *alike
	variance float64
}

// add puts a variance in that the mean of a stat has a part in.
func (s *sum) add(stat *Stat, variance float64) {
	s.variance += variance
	if variance == 0 {
		return
	}
	if stat.like == nil {
		s.parts += variance * variance / stat.df
		return
	}
	for i := range s.likes {
		if s.likes[i].of == stat.like {
			s.likes[i].variance += variance
			return
		}
	}
	s.likes = append(s.likes, shared{stat.like, variance})
}

// df are the degrees of freedom of the sum; infinite where nothing varies.
func (s *sum) df() float64 {
	if s.variance == 0 {
		return math.Inf(1)
	}
	parts := s.parts
	for _, l := range s.likes {
		parts += l.variance * l.variance / l.of.df
	}
	return s.variance * s.variance / parts
}

// half is half of the interval's width.
func (s *sum) half(q *quantiles) float64 {
	if s.variance == 0 {
		return 0
	}
	return q.of(s.df()) * math.Sqrt(s.variance)
}
