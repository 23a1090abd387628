package matrix

import (
	"math"
	"slices"
)

// Stat is one figure of one cell over its repeats. Of each repeat it takes one value (see Statistic).
type Stat struct {
	Count    int       `json:"count"` // repeats that have the figure
	Mean     float64   `json:"mean"`
	Median   float64   `json:"median"`
	StdDev   float64   `json:"std_dev"`
	Min      float64   `json:"min"`
	Max      float64   `json:"max"`
	Interval *Interval `json:"interval,omitempty"` // of the mean; absent: not known
	Basis    Basis     `json:"basis"`              // what the interval rests on
	Error    float64   `json:"error,omitempty"`    // of each value, where it is estimated; the interval has it in it

	variance float64 // of the mean, relative to its square
	df       float64
}

// Interval holds the truth in 95 of 100 such statements.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
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

// holds says whether a value lies in the interval.
func (i *Interval) holds(value float64) bool { return i.Low <= value && value <= i.High }

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

// noise is how the repeats of cells scatter, relative to their means.
type noise struct {
	alike  bool    // the cells' variances differ no more than chance makes them
	pooled float64 // mean variance of one repeat
	floor  float64 // no variance that is estimated is less
	df     float64 // degrees of freedom of all cells together
}

// Limits of what the spread of one cell says of another's. docs/decisions/intervals.md has the simulations.
const (
	leastCells = 3    // that vary
	alikeFrom  = 8    // prior degrees of freedom from which on all cells count as alike
	floorPart  = 0.25 // of the median variance: few repeats may lie close together by chance
)

// noiseOf learns from the cells that vary.
func noiseOf(stats []*Stat) noise {
	var n noise
	var variances, freedoms []float64
	sum := 0.0
	for _, s := range stats {
		if v, ok := s.relative(); ok && v > 0 {
			d := float64(s.Count - 1)
			variances, freedoms = append(variances, v), append(freedoms, d)
			n.df += d
			sum += d * v
		}
	}
	if len(variances) == 0 {
		return n
	}
	n.pooled = sum / n.df
	n.alike = len(variances) >= leastCells && prior(variances, freedoms) >= alikeFrom
	slices.Sort(variances)
	n.floor = floorPart * variances[len(variances)/2]
	return n
}

// prior is how much the variances of all cells say of that of one, as degrees of freedom: infinite where they differ no
// more than chance makes them. Source: Smyth, "Linear models and empirical Bayes methods for assessing differential
// expression in microarray experiments", 2004, section 6.2.
func prior(variances, freedoms []float64) float64 {
	logs := make([]float64, len(variances))
	mean, spread, expected := 0.0, 0.0, 0.0
	for i, v := range variances {
		logs[i] = math.Log(v) - digamma(freedoms[i]/2) + math.Log(freedoms[i]/2)
		mean += logs[i] / float64(len(logs))
		expected += trigamma(freedoms[i]/2) / float64(len(logs))
	}
	for _, e := range logs {
		spread += (e - mean) * (e - mean) / float64(len(logs)-1)
	}
	if spread <= expected {
		return math.Inf(1)
	}
	return 2 * inverseTrigamma(spread-expected)
}

// settle gives a cell the variance of its mean and what that rests on. Exact says that repeats that do not differ are so
// for a reason: those of the cells like it do not either.
func (n noise) settle(s *Stat, exact bool) {
	own, ok := s.relative()
	switch {
	case s.Count < 2:
		s.Basis = OneRun
	case exact || !ok:
		s.Basis, s.df = Identical, math.Inf(1)
		if !exact {
			s.df = 0 // all are zero, and others are not: no scale to say how far off that may be
		}
	case n.alike:
		s.Basis, s.variance, s.df = Pooled, n.pooled/float64(s.Count), n.df
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
	half := s.Error
	if s.variance > 0 {
		half += q.of(s.df) * math.Sqrt(s.variance) * s.Mean
	}
	s.Interval = &Interval{max(s.Mean-half, 0), s.Mean + half}
}

// sum adds up independent variances, with the degrees of freedom of their sum (Welch and Satterthwaite).
type sum struct{ variance, parts float64 }

func (s *sum) add(variance, df float64) {
	s.variance += variance
	if variance > 0 {
		s.parts += variance * variance / df
	}
}

// half is half of the interval's width.
func (s *sum) half(q *quantiles, most float64) float64 {
	if s.variance == 0 {
		return 0
	}
	return q.of(min(s.variance*s.variance/s.parts, most)) * math.Sqrt(s.variance)
}
