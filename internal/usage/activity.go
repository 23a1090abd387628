package usage

import (
	"slices"

	"hightide/internal/mem"
)

// Activity is what one stack did among the events that a Device's history was made of. A sampled heap has none: of
// most blocks it sees neither beginning nor end.
type Activity struct {
	Stack       uint32
	Bytes       mem.Bytes // held at a moment
	Blocks      uint64
	Average     float64 // bytes held, over the time of the events
	Allocations uint64
	Churn       mem.Bytes // allocated and freed again
	Start       mem.Bytes // of blocks from before the trace that outlive it
	StartBlocks int
	Before      bool // blocks of before the trace that have no stack
}

// Measures are what there is to compare stacks by, as Activity.Measure numbers them.
var Measures = []string{"bytes", "bytes-time", "count", "churn"}

// Measure is one of Measures.
func (a *Activity) Measure(m int) int64 {
	return [...]int64{int64(a.Bytes), int64(a.Average), int64(a.Allocations), int64(a.Churn)}[m]
}

// Activity goes through all blocks once. seen, if not nil, is told of each that counts, with its bytes × time.
func (d *Device) Activity(at Moment, wants func(stack uint32) bool, seen func(span int, held float64)) []Activity {
	byStack := make([]Activity, d.Stacks.Len()+1) // the last is of blocks from before that have no stack
	clock := d.clock()
	low, high := max(d.Among.From, Beginning), min(d.Among.To, d.Moments-1)
	whole := max(clock(high)-clock(low), 1)
	for i, stack := range d.Stack {
		from, to := int(d.From[i]), int(d.To[i])
		if from > high || from >= to || to <= low || wants != nil && !wants(stack) {
			continue
		}
		n := int(stack)
		if n == 0 && from < 0 {
			n = len(byStack) - 1
		}
		u := &byStack[n]
		u.Stack, u.Before = stack, n == len(byStack)-1
		held := float64(d.Bytes[i]) * (clock(min(to, high)) - clock(max(from, low)))
		u.Average += held / whole
		if from >= low && from >= 0 {
			u.Allocations++
			if to <= high {
				u.Churn += d.Bytes[i]
			}
		}
		if from < 0 && to >= d.Moments {
			u.Start += d.Bytes[i]
			u.StartBlocks++
		}
		if from <= at && to > at {
			u.Bytes += d.Bytes[i]
			u.Blocks++
		}
		if seen != nil {
			seen(i, held)
		}
	}
	return slices.DeleteFunc(byStack, func(use Activity) bool {
		return use.Allocations+use.Blocks == 0 &&
			use.Average <= 0
	})
}

// clock gives the time of an event: of the wall where the trace has it and it moves, else its number.
func (d *Device) clock() func(Moment) float64 {
	n := len(d.Times)
	if n == 0 || d.Times[n-1] <= d.Times[0] {
		return func(event Moment) float64 { return float64(event) }
	}
	begin := d.Times[0]
	return func(event Moment) float64 { return float64(d.Times[min(max(event, 0), n-1)] - begin) }
}

// Pictured is a stack as a flame graph draws it, innermost first: never without a frame.
func (a *Activity) Pictured(names *Names) []mem.Location {
	if frames := names.Pictured(a.Stack); len(frames) > 0 {
		return frames
	}
	name := NoFrames
	if a.Before {
		name = BeforeTrace
	}
	return []mem.Location{{Function: name, Native: true}}
}

// Kinds are what a profile of a device has of each stack, as Values gives it: Measures and the blocks at that moment,
// of which pprof calls the first two otherwise.
var Kinds = []mem.ProfileKind{{Name: "objects", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes},
	{Name: "bytes-time", Unit: mem.UnitBytes}, {Name: "count", Unit: mem.UnitCount}, {Name: "churn", Unit: mem.UnitBytes}}

// Values are those of Kinds.
func (a *Activity) Values() []int64 {
	return []int64{int64(a.Blocks), a.Measure(0), a.Measure(1), a.Measure(2), a.Measure(3)}
}
