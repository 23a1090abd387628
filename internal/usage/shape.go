package usage

import (
	"math"
	"slices"
)

// Shape is what a curve over time does as a whole, and when.
type Shape struct {
	Kind   string // one of the names below; empty: too few samples
	Period int64  // of a saw-tooth, ns; 0: it has none that holds
	At     int64  // when a spike is highest, or a warm-up ends
	Lasts  int64  // ns that all spikes together last
	Times  int    // of spikes: how many
	First  int64  // bytes at the beginning: of insufficient cleanup
	Last   int64  // and at the end
	Levels []Level
}

// Kinds of a shape: the one vocabulary of reports, pages, the SDK and the documentation.
const (
	Steady   = "steady"
	WarmUp   = "warm-up"   // rises, then steady
	SawTooth = "saw-tooth" // fills and is given back, three times and more
	Spikes   = "spikes"    // flat but for short moments
	// what is kept rises all the time, as by a leak: along a line, a curve or under a saw-tooth
	Growth    = "steady growth"
	Staircase = "staircase"            // flat, a rise, flat, three levels and more
	NotBack   = "insufficient cleanup" // falls again, but not to where it began
	Uneven    = "uneven"
)

// Level is a stretch of time between two change points.
type Level struct {
	From, To int64
	Value    int64 // mean

	rises float64 // in it, from its first third to its last
	apart float64 // what counts as another level
}

func (l *Level) isFlat() bool { return math.Abs(l.rises) < l.apart }

const (
	shapeBins   = 600
	shapeLeast  = 16   // samples
	steadyShare = 0.03 // of the median: what changes less does not change
	levelShare  = 0.03 // of the peak: what two levels are apart at least
	mostLevels  = 32
	leastLevel  = 3      // bins
	growthShare = 0.25   // of the range: what a growth keeps at least
	spikeShare  = 0.15   // of the time that spikes last at most
	notBack     = 0.25   // of the range: what it ends above its beginning at least
	regular     = 0.35   // of a period, by which falls may stray from it
	fall        = 0.5    // of the range, that a saw-tooth falls
	changeWeigh = 3 * 2. // of a change point, in σ²·log n: that of the normal distribution, thrice
)

// ShapeOf looks at samples, in order of their times.
func ShapeOf(times, values []int64) Shape {
	if len(times) < shapeLeast {
		return Shape{}
	}
	at, means := shapeBinned(times, values)
	sorted := slices.Sorted(slices.Values(means))
	n := len(means)
	low, mid, high := sorted[n/20], sorted[n/2], sorted[n-1]
	span := float64(times[len(times)-1] - times[0])
	s := Shape{Levels: levels(at, times[len(times)-1], means)}
	falls := fallsOf(times, values, fall*(high-low))
	above, when, spikes := timeAbove(times, values, low+(high-low)/2)
	last := s.Levels[len(s.Levels)-1]
	rises := allRise(s.Levels)
	switch {
	case high-low < steadyShare*max(mid, 1):
		s.Kind, s.Levels = Steady, s.Levels[:0]
	case keeps(times, values, growthShare*(high-low)):
		s.Kind, s.Levels = Growth, s.Levels[:0]
	case rises && len(s.Levels) > 1 && float64(last.To-last.From) >= 0.5*span && last.isFlat():
		s.Kind, s.At = WarmUp, last.From
	case rises && len(s.Levels) >= 3 && allFlat(s.Levels):
		s.Kind = Staircase
	case float64(above) < spikeShare*span && len(falls) >= 1:
		s.Kind, s.At, s.Lasts, s.Times = Spikes, when, above, spikes
	case len(falls) >= 3:
		s.Kind, s.Period, s.Levels = SawTooth, periodOf(falls), s.Levels[:0]
	case !rises && len(s.Levels) > 2 && float64(last.Value-s.Levels[0].Value) >= notBack*(high-low):
		s.Kind, s.First, s.Last = NotBack, s.Levels[0].Value, last.Value
	default:
		s.Kind = Uneven
	}
	return s
}

// keeps says whether what a curve never gives back rises steadily: the growth that is told as a leak, whose error is
// that of no sampling.
func keeps(times, values []int64, least float64) bool {
	first, last := times[0], times[len(times)-1]
	seconds := func(t int64) float64 { return float64(t-first) / 1e9 }
	t := TrendOf(Binned(times, values, first, last, MostBins, seconds), Noise{}, least)
	return t.Steady
}

// shapeBinned is the mean of each of at most shapeBins stretches of equal length, without those that have no sample.
func shapeBinned(times, values []int64) (at []int64, means []float64) {
	first, span := times[0], times[len(times)-1]-times[0]
	bins := int64(min(shapeBins, len(times)))
	for i := 0; i < len(times); {
		bin := int64(float64(times[i]-first) / float64(max(span, 1)) * float64(bins))
		total, j := 0.0, i
		for ; j < len(times) && int64(float64(times[j]-first)/float64(max(span, 1))*float64(bins)) == bin; j++ {
			total += float64(values[j])
		}
		at, means = append(at, times[i]), append(means, total/float64(j-i))
		i = j
	}
	return at, means
}

// levels splits means where they change to another level and stay there.
func levels(at []int64, end int64, means []float64) []Level {
	n := len(means)
	sums, squares := make([]float64, n+1), make([]float64, n+1)
	highest := 0.0
	for i, m := range means {
		sums[i+1], squares[i+1] = sums[i]+m, squares[i]+m*m
		highest = max(highest, m)
	}
	c := splitter{sums: sums, squares: squares, least: levelShare * highest,
		penalty: changeWeigh * math.Log(float64(n)) * square(noise(means))}
	c.split(0, n)
	slices.Sort(c.at)
	var all []Level
	from := 0
	for _, to := range append(c.at, n) {
		if to == from {
			continue
		}
		until := end
		if to < n {
			until = at[to]
		}
		third := (to - from + 2) / 3
		all = append(all, Level{at[from], until, int64(c.mean(from, to)), c.mean(to-third, to) - c.mean(from, from+third),
			c.least})
		from = to
	}
	return merged(all, int64(c.least))
}

// merged joins neighbours that came to be less than `least` apart.
func merged(all []Level, least int64) []Level {
	out := all[:0]
	for _, l := range all {
		if k := len(out) - 1; k >= 0 && max(l.Value-out[k].Value, out[k].Value-l.Value) < least {
			a, b := out[k].To-out[k].From, l.To-l.From
			share := float64(b) / float64(max(a+b, 1))
			out[k].Value += int64(share * float64(l.Value-out[k].Value))
			out[k].To = l.To
			continue
		}
		out = append(out, l)
	}
	return out
}

// splitter looks for change points by halves: where does splitting a stretch take most from the squares of what strays?
type splitter struct {
	sums, squares  []float64
	least, penalty float64
	at             []int
}

func (c *splitter) mean(from, to int) float64 { return (c.sums[to] - c.sums[from]) / float64(to-from) }

func (c *splitter) strays(from, to int) float64 {
	return c.squares[to] - c.squares[from] - square(c.sums[to]-c.sums[from])/float64(to-from)
}

func (c *splitter) split(from, to int) {
	if to-from < 2*leastLevel || len(c.at) >= mostLevels-1 {
		return
	}
	whole, best, where := c.strays(from, to), 0.0, 0
	for i := from + leastLevel; i <= to-leastLevel; i++ {
		if gain := whole - c.strays(from, i) - c.strays(i, to); gain > best {
			best, where = gain, i
		}
	}
	if best <= c.penalty || math.Abs(c.mean(from, where)-c.mean(where, to)) < c.least {
		return
	}
	c.at = append(c.at, where)
	c.split(from, where)
	c.split(where, to)
}

// noise is how far a mean strays from the one before, by the median: steps between levels are too few to matter.
func noise(means []float64) float64 {
	var steps []float64
	highest := 0.0
	for i, m := range means {
		highest = max(highest, math.Abs(m))
		if i > 0 {
			steps = append(steps, math.Abs(m-means[i-1]))
		}
	}
	return max(1.4826*Median(steps)/math.Sqrt2, 0.001*highest)
}

// fallsOf are the times at which a curve has fallen by more than `by` from its highest since the last fall.
func fallsOf(times, values []int64, by float64) (falls []int64) {
	if by <= 0 {
		return nil
	}
	top := values[0]
	for i, v := range values {
		if v > top {
			top = v
		} else if float64(top-v) > by {
			falls = append(falls, times[i])
			top = v
		}
	}
	return falls
}

// periodOf is the time between falls; 0 where they come at no regular time.
func periodOf(falls []int64) int64 {
	var gaps, strays []float64
	for i := 1; i < len(falls); i++ {
		gaps = append(gaps, float64(falls[i]-falls[i-1]))
	}
	period := Median(gaps)
	for _, g := range gaps {
		strays = append(strays, math.Abs(g-period))
	}
	if Median(strays) > regular*period {
		return 0
	}
	return int64(period)
}

// timeAbove is how long a curve is above a value, when it is highest, and how often it came above.
func timeAbove(times, values []int64, limit float64) (lasts, when int64, often int) {
	highest := 0
	for i, v := range values {
		if v > values[highest] {
			highest = i
		}
		if float64(v) <= limit {
			continue
		}
		if i+1 < len(times) {
			lasts += times[i+1] - times[i]
		}
		if i == 0 || float64(values[i-1]) <= limit {
			often++
		}
	}
	return lasts, times[highest], often
}

func allFlat(all []Level) bool {
	return !slices.ContainsFunc(all, func(l Level) bool { return !l.isFlat() })
}

func allRise(all []Level) bool {
	return slices.IsSortedFunc(all, func(a, b Level) int { return int(math.Copysign(1, float64(a.Value-b.Value))) })
}
