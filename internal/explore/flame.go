package explore

import (
	"math"
	"slices"

	"hightide/internal/analyze/graph"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Flame is blocks by the call stack that allocated them.
type Flame struct {
	report.StackSet
	Numbers []int64 `json:"numbers" doc:"By frame: the number of its place, by which its source is asked for; -1: it stands for a stack without frames."`
	Point   int     `json:"point" doc:"The point at which the blocks lived; -1: they are of a range."`
}

// Of is which blocks of a range a flame graph has.
type Of string

// What a Flame of a range can be of.
const (
	Allocated Of = "allocated" // freed since or not
	Held      Of = "held"      // when most of the range was
	Freed     Of = "freed"     // by the program
)

// FlameAt is what lived at a point.
func (e *Explorer) FlameAt(point int, f Filter) (Flame, error) {
	point = min(max(point, 0), e.Points()-1)
	flame, err := e.flame("allocated at the moment", f, func(with func(n int)) {
		e.eachAt(point, func(n int) bool {
			if e.allocated(n, point) {
				with(n)
			}
			return true
		})
	})
	flame.Event, flame.Point = mem.Some(int64(point-1)), point
	return flame, err
}

// FlameIn is what was allocated, held or freed by the events between two points.
func (e *Explorer) FlameIn(from, to int, of Of, f Filter) (Flame, error) {
	from = min(max(from, 0), e.Points()-1)
	if to <= from {
		to = e.Points()
	}
	to = min(to, e.Points())
	switch of {
	case Held:
		return e.FlameAt(e.highest(from, to), f)
	case Freed:
		return e.flame("freed in the range, by what allocated it", f, func(with func(n int)) {
			for n, event := range e.To {
				if p := int(event) + 1; p >= from && p < to && int(event) < e.Moments {
					with(n)
				}
			}
		})
	}
	return e.flame("allocated in the range, freed since or not", f, func(with func(n int)) {
		first, _ := slices.BinarySearch(e.From, int32(max(from, 1)-1))
		for n := first; n < e.Len() && int(e.From[n])+1 < to; n++ {
			with(n)
		}
	})
}

// highest is the first point of a range at which most is allocated.
func (e *Explorer) highest(from, to int) (highest int) {
	at, most := e.levelAt(from), mem.Bytes(math.MinInt64)
	for p := from; p < to; p++ {
		if p > from {
			e.step(p-1, &at)
		}
		if at.allocated > most {
			highest, most = p, at.allocated
		}
	}
	return highest
}

func (e *Explorer) flame(title string, f Filter, each func(with func(n int))) (Flame, error) {
	e.naming.Lock()
	defer e.naming.Unlock()
	wants, err := e.wants(f)
	if err != nil {
		return Flame{}, err
	}
	var uses mem.Tally[useKey, report.StackUse]
	each(func(n int) {
		if wants == nil || wants(n) {
			e.use(&uses, n)
		}
	})
	flame := Flame{Point: -1, Numbers: []int64{}}
	flame.StackSet = graph.StackSetOf(e.Names, report.StackSet{Name: "device", Title: title, Label: e.Label}, uses.All)
	for _, frame := range flame.Frames {
		number := noPlace
		if !graph.StandsForNone(frame.Location) {
			number = int64(e.Stacks.Location(frame.Location))
		}
		flame.Numbers = append(flame.Numbers, number)
	}
	return flame, nil
}

// useKey is a stack, with what was there before the trace apart.
type useKey struct {
	stack  uint32
	before bool
}

// noPlace is the number of a frame that no source names.
const noPlace = int64(-1)

// use counts a block; Node is its stack until a tree has a place for it.
func (e *Explorer) use(uses *mem.Tally[useKey, report.StackUse], n int) {
	u := uses.At(useKey{e.Stack[n], e.From[n] < 0})
	if u.Count == 0 {
		u.First = e.From[n] + 1 // blocks come in the order of their allocation
	}
	u.Node = int(e.Stack[n])
	u.Bytes += e.Bytes[n]
	u.Count++
}
