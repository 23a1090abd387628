package live

import "hightide/internal/mem"

// Curve is a history of a figure in a bounded number of points: of the whole time the lowest and the highest reading of
// each part, and the last of it whole.
type Curve struct {
	Recent []Point // the newest, as they were read
	Peak   mem.Optional

	first        Point
	parts        []part // of the whole time
	every, since int    // readings that make a part; those in its last
}

// Point is a reading.
type Point struct{ Time, Value int64 }

// part is what is kept of neighbouring readings.
type part struct{ low, high Point }

const (
	points = 512
	recent = 600 // a minute at ten readings a second
)

// Add takes in a reading; times do not decrease.
func (c *Curve) Add(time, value int64) {
	read := Point{time, value}
	if len(c.parts) == 0 {
		c.first, c.every = read, 1
	}
	c.Peak.Raise(mem.Some(value))
	c.Recent = newest(append(c.Recent, read), recent)
	if one := (part{read, read}); c.since > 0 {
		last := len(c.parts) - 1
		c.parts[last] = c.parts[last].with(one)
	} else {
		c.parts = append(c.parts, one)
	}
	if c.since++; c.since >= c.every {
		c.since = 0
	}
	if len(c.parts) >= 2*points {
		c.halve()
	}
}

func (c *Curve) halve() {
	for i := 0; i+1 < len(c.parts); i += 2 {
		c.parts[i/2] = c.parts[i].with(c.parts[i+1])
	}
	c.parts, c.every, c.since = c.parts[:len(c.parts)/2], c.every*2, 0
}

// with is both of two neighbours in one.
func (p part) with(later part) part {
	if later.low.Value < p.low.Value {
		p.low = later.low
	}
	if later.high.Value > p.high.Value {
		p.high = later.high
	}
	return p
}

// All are the points that are kept of the whole time, by time, with the first reading and the newest.
func (c *Curve) All() []Point {
	if len(c.parts) == 0 {
		return nil
	}
	all := make([]Point, 0, 2*len(c.parts)+2)
	keep := func(p Point) {
		if last := len(all) - 1; last < 0 || all[last] != p {
			all = append(all, p)
		}
	}
	keep(c.first)
	for _, p := range c.parts {
		if p.high.Time < p.low.Time {
			p.low, p.high = p.high, p.low
		}
		keep(p.low)
		keep(p.high)
	}
	keep(c.Recent[len(c.Recent)-1])
	return all
}

// Last is the newest reading.
func (c *Curve) Last() mem.Optional {
	if len(c.Recent) == 0 {
		return mem.Optional{}
	}
	return mem.Some(c.Recent[len(c.Recent)-1].Value)
}

// Highest is the highest reading in each of n stretches of equal length from begin to end, -1 where nothing was read:
// before the first reading. A stretch without a reading holds the one before.
func (c *Curve) Highest(begin, end int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = -1
	}
	from := c.Recent
	if len(from) > 0 && begin < from[0].Time {
		from = c.All()
	}
	before, last := int64(-1), -1
	for _, p := range from {
		if p.Time < begin {
			before = p.Value
			continue
		}
		at := min(int(float64(p.Time-begin)/float64(max(end-begin, 1))*float64(n)), n-1)
		if p.Time <= end && at >= 0 {
			out[at], last = max(out[at], p.Value), max(last, at)
		}
	}
	for i := 0; i <= last; i++ {
		if out[i] < 0 {
			out[i] = before
		}
		before = out[i]
	}
	return out
}

// newest cuts a list to its last n, now and then.
func newest[T any](all []T, n int) []T {
	if len(all) > 2*n {
		return append(all[:0], all[len(all)-n:]...)
	}
	return all
}
