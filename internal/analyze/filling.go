package analyze

import (
	"fmt"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// A container with a bound that is known fills, and then grows no more. Where what it has when it is full fits into the memory
// that was left, it is no leak: a note says what it will take.

// filling takes those out of what grows.
func (in *Input) filling(r *report.Report) {
	in.growing = slices.DeleteFunc(in.growing, func(g growing) bool {
		full, known := g.whenFull()
		room, _ := in.hostRoom()
		if left, ok := room.Get(); !known || g.source == "device" || !ok || full-g.kept > float64(left) {
			return false
		}
		r.AddNote(fmt.Sprintf("`%s`%s fills: it keeps %s (%s), and has %d of at most %d items (%s). %s",
			g.holder.Name, atLines(g.holder), g.rate(), g.label, g.holder.Items, g.holder.Bound.Or(0), g.holder.BoundBy, g.fullWords(full)))
		return true
	})
}

// whenFull is what the items of a bounded container come to.
func (g *growing) whenFull() (bytes float64, known bool) {
	if g.holder == nil || g.holder.PerStep <= 0 {
		return 0, false
	}
	bound, known := g.holder.Bound.Get()
	return max(g.slope, holderRate(*g.holder)) / g.holder.PerStep * float64(bound), known
}

// fullWords says what a bounded container takes when it is full, and when that is.
func (g *growing) fullWords(full float64) string {
	more := math.Ceil(float64(g.holder.Bound.Or(0)-g.holder.Items) / g.holder.PerStep)
	unit := "step"
	if g.minutes {
		unit = "minute"
	}
	return fmt.Sprintf("When it is full that is %v (%s), in about %s.", bytesPer(full), mem.Estimated, report.Counted(int64(max(more, 1)), unit))
}

// atLines is where a container grows: the line, or all of several that may be it.
func atLines(h *mem.Holder) string {
	if h.Where.File == "" || h.Where.Line <= 0 {
		return ""
	}
	return " (" + lineNames(h) + ")"
}

// lineNames is "train.py:10", or "train.py:10 or 12".
func lineNames(h *mem.Holder) string {
	names := mem.LineName(h.Where)
	for _, other := range h.Others {
		if other.File == h.Where.File {
			names += fmt.Sprintf(" or %d", other.Line)
		} else {
			names += " or " + mem.LineName(other)
		}
	}
	return names
}
