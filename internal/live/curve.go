package live

import (
	"cmp"

	"hightide/internal/mem"
)

// Curve is a history of a figure in a bounded number of points: all of it thinned, by keeping the highest of
// neighbours, and the last of it whole.
type Curve struct {
	All    []Point // of the whole time
	Recent []Point // the newest, as they were read
	Peak   mem.Optional

	every, since int // readings that make a point of All; those in its last
}

// Point is a reading.
type Point struct{ Time, Value int64 }

const (
	points = 512
	recent = 600 // a minute at ten readings a second
)

// Add takes in a reading; times do not decrease.
func (c *Curve) Add(time, value int64) {
	c.Peak.Raise(mem.Some(value))
	c.Recent = newest(append(c.Recent, Point{time, value}), recent)
	c.every = cmp.Or(c.every, 1)
	if last := len(c.All) - 1; c.since%c.every != 0 && last >= 0 {
		c.All[last] = Point{time, max(c.All[last].Value, value)}
	} else {
		c.All = append(c.All, Point{time, value})
	}
	if c.since++; c.since >= c.every {
		c.since = 0
	}
	if len(c.All) >= 2*points {
		c.halve()
	}
}

func (c *Curve) halve() {
	for i := 0; i+1 < len(c.All); i += 2 {
		c.All[i/2] = Point{c.All[i+1].Time, max(c.All[i].Value, c.All[i+1].Value)}
	}
	c.All, c.every, c.since = c.All[:len(c.All)/2], c.every*2, 0
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
	from := c.All
	if len(c.Recent) > 0 && begin >= c.Recent[0].Time {
		from = c.Recent
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
