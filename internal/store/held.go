package store

import (
	"math"

	"hightide/internal/mem"
)

// What a filter's spot held of runs, which a trend of lines is made of. It is the sum of the lines there that are among
// those of a run's report that held most. What others there may have held is a figure of the report.

// held is what is found of it in one run.
type held struct {
	lines   int     // at the spot
	bytes   float64 // that these held: in a recording of a stranger's they may be any number
	squares float64 // of their errors, added up: each was sampled by itself
}

// heldBy adds up the lines of a run.
func (f Filter) heldBy(found []mem.Place) (h held) {
	for _, p := range found {
		if bytes, ok := p.Bytes.Get(); ok && p.Kind == "" && f.Held.has(p) {
			h.lines, h.bytes, h.squares = h.lines+1, h.bytes+float64(bytes), h.squares+float64(p.Error)*float64(p.Error)
		}
	}
	return h
}

// hold enters it into the row of its run.
func (f Filter) hold(r *Run, h held) {
	unlisted, ok := r.Figures[mem.FigureUnlisted]
	if f.Held == (Spot{}) || !ok {
		return
	}
	off := math.Sqrt(h.squares)
	if h.lines == 0 || f.Held.Line == 0 { // of a function, other lines may not be listed
		off += float64(unlisted.Bytes)
	}
	r.Held = mem.Figure{Bytes: whole(h.bytes), Error: whole(off), What: "what " + f.Held.String() + " held",
		Source: unlisted.Source, Label: unlisted.Label}
}

// whole is a number of bytes that an integer holds.
func whole(bytes float64) int64 { return int64(min(max(math.Ceil(bytes), 0), 1<<62)) }

// figuresKept are those of a report that a row keeps, and how much of what each is of: a recording may be a stranger's.
var figuresKept = []string{mem.FigureGrowth, mem.FigureFragmentation, mem.FigureUnlisted}

// keepFigures has a row tell them.
func (r *Run) keepFigures(all map[string]mem.Figure) {
	if all == nil {
		return
	}
	r.Figures = map[string]mem.Figure{}
	for _, name := range figuresKept {
		if f, ok := all[name]; ok && f.Known() {
			f.What, f.Source, f.Label = storable(clipped(f.What)), mem.Quantity(storable(clipped(string(f.Source)))),
				mem.Label(storable(clipped(string(f.Label))))
			r.Figures[name] = f
		}
	}
}
