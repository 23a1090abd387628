package store

import (
	"math"

	"hightide/internal/mem"
)

// What a filter's spot held of runs, which a trend of lines is made of. It is the sum of the lines there that are among
// those of a run's report that held most. Where none is, it held less than the least of them.

// held is what is found of it in one run.
type held struct {
	lines   int          // at the spot
	bytes   int64        // that these held
	squares float64      // of their errors, added up: each was sampled by itself
	least   mem.Optional // that a line of the run held, of those that are kept; absent: none is
}

// heldBy adds up the lines of a run.
func (f Filter) heldBy(found []mem.Place) (h held) {
	for _, p := range found {
		bytes, ok := p.Bytes.Get()
		if p.Kind != "" || !ok {
			continue
		}
		if h.least.Or(bytes) >= bytes {
			h.least = p.Bytes
		}
		if f.Held.has(p) {
			h.lines, h.bytes, h.squares = h.lines+1, h.bytes+bytes, h.squares+float64(p.Error)*float64(p.Error)
		}
	}
	return h
}

// hold enters it into the row of its run.
func (f Filter) hold(r *Run, h held) {
	least, ok := h.least.Get()
	if f.Held == (Spot{}) || !ok {
		return
	}
	label := mem.Sampled
	if r.Label == mem.Imagined {
		label = mem.Imagined
	}
	r.Held = mem.Figure{Bytes: h.bytes, Error: int64(math.Ceil(math.Sqrt(h.squares))),
		What:   "what " + f.Held.String() + " held",
		Source: "lines", Label: label}
	if h.lines == 0 {
		r.Held.Error = least
	}
}

// figuresKept are those of a report that a row keeps, and how much of what each is of: a recording may be a stranger's.
var figuresKept = []string{mem.FigureGrowth, mem.FigureFragmentation}

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
