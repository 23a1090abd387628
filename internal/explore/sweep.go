package explore

import (
	"math"
	"sort"

	"hightide/internal/mem"
)

// sweep goes through the blocks of a window in the order of their allocation, with what lies below each in every
// column. A block costs its columns, or next to nothing where it is too small to be seen. What such blocks add is
// summed up when the next one that can be seen needs it.
type sweep struct {
	e             *Explorer
	from, columns int
	shift         uint
	window        Window
	least         mem.Bytes // of a block that can be seen

	sum    []mem.Bytes // by column: what lies below, at its first point
	rises  []mem.Bytes // what the unseen change that by, from a column on; it has one more
	dirty  bool
	inside int
}

// few columns are cheaper added one by one.
const fewColumns = 24

// each calls with every block that was allocated at the first point of a column and can be seen, and its columns.
func (s *sweep) each(with func(n, first, end int)) {
	s.sum, s.rises, s.dirty, s.inside = make([]mem.Bytes, s.columns), make([]mem.Bytes, s.columns+1), false, 0
	e, begin := s.e, int32(s.from-1)
	until := min(s.from+s.columns<<s.shift, e.Points()) - 1
	first := sort.Search(e.Len(), func(n int) bool { return e.From[n] > begin })
	for g := 0; g < first; g += group {
		if e.last[g/group] <= begin {
			continue
		}
		for n := g; n < min(g+group, first); n++ {
			if e.To[n] > begin {
				s.block(n, with)
			}
		}
	}
	for n := first; n < e.Len() && int(e.From[n]) < until; n++ {
		s.block(n, with)
	}
	s.settle()
}

// column is the first that begins at an event's point or later.
func (s *sweep) column(event int32) int {
	p := int(event) + 1 - s.from
	return min(max((p+1<<s.shift-1)>>s.shift, 0), s.columns)
}

func (s *sweep) block(n int, with func(n, first, end int)) {
	s.inside++
	first, end, size := s.column(s.e.From[n]), s.column(s.e.To[n]), s.e.Bytes[n]
	if first >= end {
		return // shorter than a column: only the outline knows it
	}
	if size < s.least {
		if end-first > fewColumns {
			s.rises[first] += size
			s.rises[end] -= size
			s.dirty = true
			return
		}
	} else {
		s.settle()
		with(n, first, end)
	}
	for c := first; c < end; c++ {
		s.sum[c] += size
	}
}

// settle adds what the unseen have come to.
func (s *sweep) settle() {
	if !s.dirty {
		return
	}
	var level mem.Bytes
	for c := range s.sum {
		level += s.rises[c]
		s.sum[c] += level
		s.rises[c] = 0
	}
	s.rises[s.columns], s.dirty = 0, false
}

// Areas are told apart by their logarithm, in so many parts of a power of two.
const (
	areaParts = 32
	areaMost  = 64 * areaParts
	asked     = 24 * areaParts // by which blocks that were asked for come before others
)

// seen is a block that could be drawn.
type seen struct {
	n    int32
	rank uint16 // of its area in the window
}

// choose finds the blocks with most area in the window.
func (s *sweep) choose() []int32 {
	var all []seen
	var ranks [areaMost]int
	low, high := s.window.Low, s.window.High
	s.each(func(n, first, end int) {
		size := s.e.Bytes[n]
		area := float64(size) * float64(end-first)
		if low > 0 || high < s.e.Peak.Bytes {
			area = areaWithin(s.sum[first:end], size, low, high)
		}
		if area > 0 {
			rank := min(max(int(math.Log2(area)*areaParts), 0), areaMost-asked-1)
			if s.window.First != nil && s.window.First(n) {
				rank += asked
			}
			ranks[rank]++
			all = append(all, seen{int32(n), uint16(rank)})
		}
	})
	least, room := areaMost, s.window.Most
	for least > 0 && ranks[least-1] <= room {
		least--
		room -= ranks[least]
	}
	var chosen []int32
	for _, b := range all {
		switch {
		case int(b.rank) >= least:
		case int(b.rank) == least-1 && room > 0:
			room--
		default:
			continue
		}
		chosen = append(chosen, b.n)
	}
	return chosen
}

// areaWithin is the part of a block between two heights, over all its columns.
func areaWithin(offsets []mem.Bytes, size, low, high mem.Bytes) (area float64) {
	for _, bottom := range offsets {
		if top := bottom + size; bottom < high && top > low {
			area += float64(min(top, high) - max(bottom, low))
		}
	}
	return area
}

// draw makes the steps of blocks. What moves by less than half a pixel stays; where that is too many steps, by more.
func (s *sweep) draw(chosen []int32, unit mem.Bytes) Drawn {
	for still := mem.Bytes(unitsPerPixel / 2); ; still *= 2 {
		d := s.stepsOf(chosen, unit, still*unit)
		if len(d.Steps) <= 2*mostSteps+3*len(chosen) || still > 1<<20 {
			return d
		}
	}
}

func (s *sweep) stepsOf(chosen []int32, unit, still mem.Bytes) Drawn {
	e, next := s.e, 0
	d := Drawn{Steps: []int32{}}
	s.each(func(n, first, end int) {
		if next == len(chosen) || chosen[next] != int32(n) {
			return
		}
		next++
		until := e.To[n] + 1
		if int(e.To[n]) >= e.Moments {
			until = -1
		}
		d.N, d.Begin, d.End, d.Bytes = append(d.N, int32(n)), append(d.Begin, e.From[n]+1), append(d.End, until),
			append(d.Bytes, e.Bytes[n])
		if s.window.First != nil && s.window.First(n) {
			d.First = append(d.First, len(d.N)-1)
		}
		d.Steps = appendSteps(d.Steps, s.sum, first, end, s.window.Low, unit, still)
	})
	return d
}

// appendSteps adds the course of a block's offset.
func appendSteps(steps []int32, sum []mem.Bytes, first, end int, low, unit, still mem.Bytes) []int32 {
	count := len(steps)
	steps = append(steps, 0)
	column, at, drawn := 0, int32(0), mem.Bytes(math.MinInt64/2)
	for c := first; c < end; c++ {
		if offset := sum[c]; offset-drawn >= still || drawn-offset >= still {
			units := int32(min(max((offset-low)/unit, math.MinInt32/4), math.MaxInt32/4))
			steps = append(steps, int32(c-column), units-at)
			column, at, drawn = c, units, offset
			steps[count]++
		}
	}
	return steps
}
