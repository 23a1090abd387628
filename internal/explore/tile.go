package explore

import (
	"math/bits"

	"hightide/internal/mem"
)

// Window is what a reader looks at.
type Window struct {
	From, To      int              // points; an empty window is the whole trace
	Low, High     mem.Bytes        // of the stack; High 0: all of it
	Width, Height int              // pixels; 0: 1200 × 600
	Most          int              // blocks drawn singly; 0: 2,000
	First         func(n int) bool // blocks that are drawn rather than others; nil: none
}

// Tile is the blocks of a window, stacked. Columns are of Step points each, from point From on.
type Tile struct {
	From int       `json:"from" doc:"The first point. A point is a number of events."`
	To   int       `json:"to" doc:"The point after the last."`
	Step int       `json:"step" doc:"How many points a column stands for."`
	Low  mem.Bytes `json:"low" doc:"From where in the stack of blocks on, in bytes."`
	High mem.Bytes `json:"high" doc:"Up to where in the stack of blocks, in bytes."`
	Unit mem.Bytes `json:"unit" doc:"Bytes of one in an offset."`

	Allocated []mem.Bytes `json:"allocated" doc:"By column: the highest of what was allocated, in bytes."`
	Reserved  []mem.Bytes `json:"reserved" doc:"By column: the highest of what was reserved, in bytes."`
	At        []mem.Bytes `json:"at" doc:"By column: what was allocated at its first point, which the blocks add up to, in bytes."`

	Blocks Drawn `json:"blocks" doc:"The blocks that are drawn, in lists of one length."`
	Inside int   `json:"inside" doc:"How many blocks were allocated at some point of the window."`
}

// Drawn are the blocks that are drawn singly, in columns, in the order in which they lie on each other.
type Drawn struct {
	N        []int32     `json:"n" doc:"By block: its number in the trace."`
	Begin    []int32     `json:"begin" doc:"By block: the point from which on it was allocated."`
	End      []int32     `json:"end" doc:"By block: the point from which on it was not; -1: it outlives the trace."`
	Bytes    []mem.Bytes `json:"bytes" doc:"By block: its size in bytes."`
	Site     []uint32    `json:"site" doc:"By block: the number of the line that allocated it, among the sites of the labels."`
	Category []uint32    `json:"category" doc:"By block: the number of its category among those of the labels."`
	Module   []uint32    `json:"module" doc:"By block: the number of its module among those of the labels."`
	Stream   []uint32    `json:"stream" doc:"By block: the number of its stream among those of the labels."`
	First    []int       `json:"first,omitempty" doc:"Positions in these lists of blocks that the window asked for."`

	// Steps is for each block: the number of its steps. Then for each come the column, as difference to the one before,
	// and the offset from there on, in units above Low, likewise. The first is in the column in which it is first drawn.
	Steps []int32 `json:"steps" doc:"For each block the number of its steps. Then for each of them the column, as difference to the one before, and its offset in units above low, likewise. The first is where it is first drawn."`
}

const (
	defaultWidth, defaultHeight, defaultMost = 1200, 600, 2000
	mostWidth, mostHeight, mostDrawn         = 2400, 4096, 2200
	mostSteps                                = 12_000 // of all blocks of a tile
	unitsPerPixel                            = 4
)

// within brings a window into the trace and into what can be answered.
func (e *Explorer) within(w Window) Window {
	if w.To <= w.From {
		w.From, w.To = 0, e.Points()
	}
	w.From = min(max(w.From, 0), e.Points()-1)
	w.To = min(max(w.To, w.From+1), e.Points())
	w.Width, w.Height = bound(w.Width, defaultWidth, mostWidth), bound(w.Height, defaultHeight, mostHeight)
	w.Most = bound(w.Most, defaultMost, mostDrawn)
	if w.Low = max(w.Low, 0); w.High <= w.Low {
		w.Low, w.High = 0, max(e.Peak.Bytes, 1)
	}
	return w
}

func bound(value, usual, most int) int {
	if value <= 0 {
		return usual
	}
	return min(value, most)
}

// Tile lays the blocks of a window out.
func (e *Explorer) Tile(w Window) Tile {
	w = e.within(w)
	shift := uint(bits.Len(uint((w.To - w.From - 1) / w.Width)))
	step := 1 << shift
	from := w.From &^ (step - 1)
	columns := (w.To - from + step - 1) >> shift
	t := Tile{From: from, Step: step, To: min(from+columns<<shift, e.Points()), Low: w.Low, High: w.High}
	t.Unit = max((w.High-w.Low)/mem.Bytes(w.Height*unitsPerPixel), 1)
	t.Allocated, t.Reserved = e.levels(from, columns, shift)
	s := sweep{e: e, from: from, columns: columns, shift: shift, window: w,
		least: max((w.High-w.Low)/mem.Bytes(w.Height*2), 1)}
	chosen := s.choose()
	t.Blocks = s.draw(chosen, t.Unit)
	t.At, t.Inside = s.sum, s.inside
	e.label(&t.Blocks)
	return t
}
