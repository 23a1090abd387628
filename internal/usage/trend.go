package usage

import (
	"math"
	"slices"
)

// Curve is memory over steps (or minutes), in bins of time: of each bin the lowest value.
type Curve struct {
	X []float64
	Y []float64

	// Whole says that the bins are steps as they were, warm-up left out, and the values exact: then three of them are
	// enough.
	Whole bool
}

// Trend is what a curve does once warm-up is over.
type Trend struct {
	Steady bool
	Slope  float64 // bytes per x
	Half   float64 // half width of its 95 % interval
	Growth float64 // bytes kept over the window
	Points int     // of the curve that were looked at
	Early  float64 // slope of the first half, where it rose much faster than the second: then Slope is of the second; 0
	Why    string  // of what is not steady: "flat", "stops", "jumps", "comes and goes", "too short", Unsure
}

// Unsure is why a growth is not steady that has the shape of one, and is too near its noise to be told from that.
const Unsure = "unsure"

// What it takes to call a growth steady. The figures were set by simulation (growth_test.go): planted
// leaks of 64 KiB to 20 MiB a step against warm-up, caches that stop, saw-teeth and data loaded once.
const (
	WarmUpPart   = 0.10 // of the window, not looked at
	tail         = 0.04 // of the window, whose lowest values are not settled yet
	leastBins    = 6
	fewPoints    = 24
	mostSegments = 8
	needRising   = 0.75 // of the segments
	significance = 4.0  // standard errors of the growth
	worthALook   = 2.0  // likewise, from which on what is seen elsewhere may tell that it is one
	laterRises   = 3.0  // standard errors of the growth in the later half
	leastRises   = 6    // that tell how long a curve rests between two
	leastRest    = 0.06 // of the window
	grainsInRise = 4    // samples, from which on their number tells a rise
)

// Noise is what sampling does to a curve. It has the variance of the growth over its window. It is also what it would
// be over the later half if nothing grew there (bytes²), and the bytes that one sample stands for. All are 0 where
// nothing is sampled.
type Noise struct {
	Variance float64
	Later    float64
	Grain    float64
}

// TrendOf looks for steady growth. What counts is the lower envelope from the right, the lowest value
// that is still to come: what is kept for good. A saw-tooth has a flat one, so has a cache that
// stopped, while a leak's rises all the way.
//
// The window is cut into equal segments. A growth is steady when most of them rise, the later half
// and the end no less than the rest, and no single one makes it up. A segment that stands out (one
// table loaded amidst a leak) counts as the median. The slope is the growth over the window. Of a
// sum of sampled allocations that are never freed the noise is a random walk, for which the
// difference of its ends is the best estimator. The later half must rise by more than its noise too.
// Of a full cache that replaces its oldest entries, other samples stand for the same bytes at every
// step, and the envelope of their noise rises. Field least is the smallest growth that matters, in bytes.
func TrendOf(c Curve, of Noise, least float64) Trend {
	x, kept, whole := settle(c)
	if len(x) < leastBins && !(c.Whole && len(x) >= leastSteps) {
		return Trend{Why: "too short"}
	}
	total := kept[len(kept)-1] - kept[0]
	if total < least {
		return Trend{Why: "flat", Growth: total}
	}
	rises := segments(x, kept, segmentCount(len(x), total, of.Grain))
	rises, total = capped(rises)
	deviation := math.Sqrt(of.Variance + square(roughness(x, kept)))
	span := x[len(x)-1] - x[0]
	t := Trend{Slope: total / span, Half: 1.96 * deviation / span, Growth: total, Points: len(x)}
	if of == (Noise{}) { // levels as they were seen, at any moment of a step: its ends are off by as much as the others
		t.Half = max(t.Half, 1.96*math.Sqrt2*scatter(x, kept)/span)
	}
	if bent := bend(x, kept); len(x) < fewPoints { // of a short run a warm-up is a good part
		t.Half = math.Hypot(t.Half, 2*bent)
	} else {
		t.Half = max(t.Half, bent)
	}
	t.Why = shape(rises, total)
	if t.Why == "" && total < least {
		t.Why = "jumps"
	}
	if noise := max(grainsInRise*of.Grain, 2.5*roughness(x, kept)); t.Why == "" &&
		(restsAtEnd(x, kept, noise) || of == (Noise{}) && (restsAtEnd(whole.X, whole.Y, noise) ||
			slowsAtEnd(whole.X, whole.Y, noise))) { // of samples some are freed as the program ends
		t.Why = "stops"
	}
	if t.Why == "" && total < worthALook*deviation {
		t.Why = "flat"
	}
	if t.Why == "" && (total < significance*deviation || sum(rises[len(rises)/2:]) < laterRises*math.Sqrt(of.Later)) {
		t.Why = Unsure
	}
	if t.Why != "" && of.Grain > 0 {
		t.stairs(x, kept, max(grainsInRise*of.Grain, 2.5*roughness(x, kept)), least)
	}
	t.Steady = t.Why == ""
	if t.Steady && of == (Noise{}) {
		t.settled(x, kept)
	}
	return t
}

// settled takes the slope from the second half where the first rose much faster, and by more than its points stray: a
// warm-up that goes on is in the mean.
func (t *Trend) settled(x, kept []float64) {
	last, middle := len(x)-1, len(x)/2
	first := (kept[middle] - kept[0]) / (x[middle] - x[0])
	second := (kept[last] - kept[middle]) / (x[last] - x[middle])
	off := 2 * scatter(x[middle:], kept[middle:])
	if second <= 0 || first < settles*second || kept[middle]-kept[0]-second*(x[middle]-x[0]) < off {
		return
	}
	t.Early, t.Slope = first, second
	t.Half = 1.96 * math.Sqrt2 * scatter(x[middle:], kept[middle:]) / (x[last] - x[middle])
}

// settles is how much faster the first half of a warm-up rises than what follows it.
const settles = 1.3

// stairs judges a growth by its rises where these are few and even: segments of equal length hold one, two or none.
func (t *Trend) stairs(x, kept []float64, noise, least float64) {
	rises := risesOf(x, kept, max((kept[len(kept)-1]-kept[0])/50, noise))
	n := len(rises)
	if n < leastStairs {
		return
	}
	low, high := math.Inf(1), 0.0
	shortest, longest, rests := math.Inf(1), 0.0, 0.0
	for i, r := range rises {
		low, high = min(low, r.by), max(high, r.by)
		if i > 0 {
			apart := r.from - rises[i-1].from
			shortest, longest = min(shortest, apart), max(longest, apart)
			rests += r.from - rises[i-1].to
		}
	}
	span := rises[n-1].from - rises[0].from
	grown := kept[len(kept)-1] - kept[0] - rises[0].by
	if high > evenStairs*low || longest > evenStairs*shortest || rests < span/2 || grown < least ||
		x[len(x)-1]-rises[n-1].from > stairRest*longest {
		return
	}
	t.Why, t.Slope, t.Points = "", grown/span, n
	t.Half = max(1.96*noise, (high-low)/2) / span
}

// What it takes to call few rises even.
const (
	leastStairs = 4
	evenStairs  = 2.0 // the largest of their sizes, and of the times between them, over the smallest
	stairRest   = 1.3 // the time since the last began, over the longest between two
)

// stair is a rise of a curve that rests before and after it.
type stair struct{ from, to, by float64 }

// risesOf are the rises of a curve by more than noise, those of neighbouring points as one.
func risesOf(x, kept []float64, noise float64) (rises []stair) {
	last := -1 // point at which the last one ended
	for i := 1; i < len(x); i++ {
		by := kept[i] - kept[i-1]
		if by <= noise/2 {
			continue
		}
		if last == i-1 {
			r := &rises[len(rises)-1]
			r.to, r.by = x[i], r.by+by
		} else {
			rises = append(rises, stair{x[i-1], x[i], by})
		}
		last = i
	}
	return slices.DeleteFunc(rises, func(r stair) bool { return r.by < noise })
}

// restsAtEnd says whether a curve has not risen for far longer at its end than ever before: a buffer that became full
// late. A rise is by more than a fiftieth of the growth, and than its noise.
func restsAtEnd(x, kept []float64, noise float64) bool {
	step := max((kept[len(kept)-1]-kept[0])/50, noise)
	level, at := kept[0], x[0]
	longest, rises := 0.0, 0
	for i, v := range kept {
		if v < level+step || v == level {
			continue
		}
		if rises > 0 {
			longest = max(longest, x[i]-at)
		}
		rises++
		level, at = v, x[i]
	}
	rest, span := x[len(x)-1]-at, x[len(x)-1]-x[0]
	longer := 2.0
	if rises >= 2*leastRises {
		longer = 1.5
	}
	return rises >= leastRises && rest > max(longer*longest, leastRest*span)
}

// slowsAtEnd says whether a curve rose in its last part by less than half of the least that it rose before in a part as
// long: what became full creeps on a little. What rises now and then has parts without a rise, and does not slow.
func slowsAtEnd(x, kept []float64, noise float64) bool {
	end := x[len(x)-1]
	part := lastPart * (end - x[0])
	rise := func(from float64) float64 { return levelAt(x, kept, from+part) - levelAt(x, kept, from) }
	least := math.Inf(1)
	for _, from := range x {
		if from+part <= end-part {
			least = min(least, rise(from))
		}
	}
	return least >= noise && rise(end-part) < least/2
}

// lastPart of a curve is held against all parts before it.
const lastPart = 0.15

// levelAt is a curve between its points.
func levelAt(x, y []float64, at float64) float64 {
	i, _ := slices.BinarySearch(x, at)
	switch {
	case i == 0:
		return y[0]
	case i == len(x):
		return y[i-1]
	}
	return y[i-1] + (y[i]-y[i-1])*(at-x[i-1])/(x[i]-x[i-1])
}

// settle cuts the warm-up and the unsettled tail off a curve and turns it into what is kept; whole is the same with its
// tail, which may be high, and tells how long nothing rose.
func settle(c Curve) (x, kept []float64, whole Curve) {
	n := len(c.X)
	if n < leastBins && !c.Whole {
		return nil, nil, whole
	}
	kept = slices.Clone(c.Y)
	for i := n - 2; i >= 0; i-- {
		kept[i] = min(kept[i], kept[i+1])
	}
	if c.Whole {
		return c.X, kept, Curve{X: c.X, Y: kept}
	}
	span := c.X[n-1] - c.X[0]
	from, to := 0, n-max(1, int(math.Ceil(tail*float64(n))))
	for from < n && c.X[from] < c.X[0]+WarmUpPart*span {
		from++
	}
	if to-from < leastBins-1 {
		return nil, nil, whole
	}
	return c.X[from:to], kept[from:to], Curve{X: c.X[from:], Y: kept[from:]}
}

// segmentCount is how many segments the bins and the samples can fill: a leak of few samples would
// leave some of many empty by chance.
func segmentCount(bins int, total, grain float64) int {
	n := min(mostSegments, bins-1)
	if grain > 0 {
		n = min(n, int(total/grain/4))
	}
	return max(n, min(4, bins-1))
}

// segments is the rise in each of n stretches of equal length.
func segments(x, y []float64, n int) []float64 {
	rises := make([]float64, n)
	from, at := y[0], 0
	for k := range rises {
		edge := x[0] + (x[len(x)-1]-x[0])*float64(k+1)/float64(n)
		for at+1 < len(x) && x[at+1] <= edge+1e-9 {
			at++
		}
		value := y[at]
		if at+1 < len(x) && x[at] < edge { // between two bins
			value += (y[at+1] - y[at]) * (edge - x[at]) / (x[at+1] - x[at])
		}
		rises[k], from = value-from, value
	}
	return rises
}

// capped replaces what stands out by the median, and returns the sum with it.
func capped(rises []float64) ([]float64, float64) {
	median := Median(rises)
	var sum float64
	fair := make([]float64, len(rises))
	for i, r := range rises {
		if r > 3*median {
			r = median
		}
		fair[i] = r
		sum += r
	}
	return fair, sum
}

// shape names what is wrong with a growth; "" where it is steady.
func shape(rises []float64, total float64) string {
	n := len(rises)
	mean := total / float64(n)
	if total <= 0 {
		return "jumps"
	}
	rising := 0
	quarter := max(n/4, 1)
	var later, last float64
	for i, r := range rises {
		if r > 0.2*mean {
			rising++
		}
		if i >= (n+1)/2 {
			later += r
		}
		if i >= n-quarter {
			last += r
		}
	}
	switch {
	case later < 0.6*total/2, last < 0.4*mean*float64(quarter), rises[n-1] <= 0:
		return "stops"
	case float64(rising) < needRising*float64(n):
		return "comes and goes"
	}
	return ""
}

// bend is by how much the slopes of both halves stray from that of the whole: a warm-up that is not over, or a growth
// that gets slower, is in a mean slope, and no noise tells of it.
func bend(x, kept []float64) float64 {
	last, middle := len(x)-1, len(x)/2
	first := (kept[middle] - kept[0]) / (x[middle] - x[0])
	second := (kept[last] - kept[middle]) / (x[last] - x[middle])
	return math.Abs(second-first) / 2
}

// roughness is how far what is kept strays from a straight line, in bytes: by its median.
func roughness(x, kept []float64) float64 {
	slope := (kept[len(kept)-1] - kept[0]) / (x[len(x)-1] - x[0])
	var strays []float64
	for i := 1; i < len(x); i++ {
		strays = append(strays, math.Abs(kept[i]-kept[i-1]-slope*(x[i]-x[i-1])))
	}
	return 1.4826 * Median(strays)
}

// scatter is how far what is kept strays from the straight line through its ends, in bytes: the root of the mean
// square.
func scatter(x, kept []float64) float64 {
	slope := (kept[len(kept)-1] - kept[0]) / (x[len(x)-1] - x[0])
	squares := 0.0
	for i := range x {
		squares += square(kept[i] - kept[0] - slope*(x[i]-x[0]))
	}
	return math.Sqrt(squares / float64(len(x)))
}

// Refine takes the slope from levels at the ends of steps, where a few are known over most of a trend that was seen
// in samples. These fall anywhere in a step, and a step may take far more than it keeps.
func (t *Trend) Refine(ends Curve) {
	x, y := ends.X, ends.Y
	for len(x) >= leastSteps && x[0] < ends.X[0]+WarmUpPart*(ends.X[len(ends.X)-1]-ends.X[0]) && len(x) > leastSteps {
		x, y = x[1:], y[1:]
	}
	if len(x) < leastSteps || (x[len(x)-1]-x[0])*t.Slope < t.Growth/2 {
		return
	}
	span := x[len(x)-1] - x[0]
	slope := (y[len(y)-1] - y[0]) / span
	if half := 1.96 * math.Sqrt2 * scatter(x, y) / span; half < t.Half && slope > 0 {
		t.Growth *= slope / t.Slope
		t.Slope, t.Half = slope, half
	}
}

func square(v float64) float64 { return v * v }

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Median is the middle of values, 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Binned turns samples into a curve of at most n bins between two moments, each with the lowest
// value in it. at maps a moment to steps.
func Binned(times, values []int64, from, to int64, n int, at func(int64) float64) Curve {
	i, _ := slices.BinarySearch(times, from)
	end, _ := slices.BinarySearch(times, to+1)
	count := end - i
	n = min(n, count)
	c := Curve{}
	for b := range n {
		first, last := i+b*count/n, i+(b+1)*count/n
		low := values[first]
		for _, v := range values[first:last] {
			low = min(low, v)
		}
		x := at(times[first])
		if len(c.X) > 0 && x <= c.X[len(c.X)-1] {
			c.Y[len(c.Y)-1] = min(c.Y[len(c.Y)-1], float64(low))
			continue
		}
		c.X, c.Y = append(c.X, x), append(c.Y, float64(low))
	}
	return c
}

// Confidence is the chance that a growth is more than noise: as far as its error tells, and as far as so few points
// could rise by luck.
func (t *Trend) Confidence() float64 {
	c := 1.0
	if t.Half > 0 {
		c = 0.5 * (1 + math.Erf(t.Slope/(t.Half/1.96)/math.Sqrt2))
	}
	if t.Points > 1 {
		c *= 1 - 1/float64(uint64(1)<<min(t.Points-1, 20))
	}
	if !(c > 0) { // also where it is not a number
		return 0
	}
	return math.Round(min(c, 0.999)*1000) / 1000
}
