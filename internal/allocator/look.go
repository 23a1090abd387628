package allocator

import (
	"sort"

	"hightide/internal/mem"
)

// Look is what RunAndLook is asked beside a run.
type Look struct {
	Points int // parts of the Curve at most; 0: CurvePoints
	// after which the memory is looked at; −1: where reserved memory is highest, or the request that found none
	Event int
	Guess int         // Seen.Ops of an earlier run, where the peak may be again: if it is, one run does
	Stop  func() bool // asked now and then; true ends the run. nil: nobody stops it
}

// Seen is the memory of a device at one moment of a run.
type Seen struct {
	Event    int // of the record; −1: before the first
	Ops      int // operations that were done
	Usage    Usage
	Segments []mem.Segment // by address
	// for each block of the segments, in their order: the event that allocated it; −1: none, or before the trace
	Made []int32
}

// stopEvery is how many operations are run between two questions whether to stop: well under a millisecond.
const stopEvery = 2048

// RunAndLook runs a Program like Run and besides says how memory lay at one moment. stopped: it was ended before that
// is known.
func RunAndLook(p *Program, setup Setup, look Look) (out *Outcome, seen *Seen, stopped bool) {
	first := newLooking(p, setup, look)
	if look.Event >= 0 {
		first.last = opsThrough(p, look.Event)
	} else if look.Guess > 0 {
		first.last = look.Guess
	}
	out = first.run()
	guessed := look.Event < 0 && out.OOM == nil && first.seen != nil && first.seen.Ops != first.highest+1
	if (first.seen == nil || guessed) && !first.stopped { // the highest moment is known now
		again := newLooking(p, setup, look)
		again.last, again.only = first.highest+1, true
		again.run()
		first.seen, first.stopped = again.seen, again.stopped
	}
	return out, first.seen, first.stopped
}

// opsThrough is how many operations belong to events up to one.
func opsThrough(p *Program, event int) int {
	return sort.Search(len(p.Ops), func(i int) bool { return int(p.Ops[i].Event) > event })
}

// looking is a run that is watched.
type looking struct {
	*runner
	look    Look
	made    []int32 // by ID of the operation, the event
	last    int     // after so many operations the memory is looked at; −1: it is not
	only    bool    // and the run ends there
	highest int     // the operation that led to the highest reserved memory; −1: none
	seen    *Seen
	stopped bool
}

func newLooking(p *Program, setup Setup, look Look) *looking {
	l := &looking{runner: newRunner(p, newPolicy("native", setup), setup), look: look, made: make([]int32, p.Blocks),
		last: -1, highest: -1}
	for i := range l.made {
		l.made[i] = -1
	}
	if look.Points > 0 {
		l.points = look.Points
	}
	return l
}

func (l *looking) run() *Outcome {
	if l.takeOverBeginning() {
		l.follow()
	}
	if l.out.OOM != nil && (l.seen == nil || l.look.Event < 0) {
		l.keepPoint(l.out.OOM.Event, 0)
	}
	return l.finish()
}

// follow is loop with the questions that a Look asks.
func (l *looking) follow() {
	step, most := l.step(), mem.Bytes(l.native.Stats.By[AllPools].ReservedBytes.Current)
	for i := range l.p.Ops {
		if i == l.last {
			l.keepBefore(i)
			if l.only {
				return
			}
		}
		if i%stopEvery == 0 && l.look.Stop != nil && l.look.Stop() {
			l.stopped = true
			return
		}
		op := &l.p.Ops[i]
		if i%step == 0 {
			l.part()
		}
		done := l.do(op)
		l.note()
		if !done {
			return
		}
		if op.Kind == OpAlloc {
			l.made[op.ID] = op.Event
		}
		if reserved := mem.Bytes(l.native.Stats.By[AllPools].ReservedBytes.Current); reserved > most {
			most, l.highest = reserved, i
		}
	}
	if l.last == len(l.p.Ops) {
		l.keepBefore(l.last)
	}
}

// keepBefore keeps how memory lies before an operation is done.
func (l *looking) keepBefore(i int) {
	event := -1
	if i > 0 {
		event = int(l.p.Ops[i-1].Event)
	}
	l.keepPoint(event, i)
}

func (l *looking) keepPoint(event, ops int) {
	s := &Seen{Event: event, Ops: ops, Usage: l.native.Usage(), Segments: l.native.State()}
	made := make(map[uint64]int32, len(l.made))
	for id, h := range l.handles {
		if h == 0 {
			continue
		}
		if b := &l.native.blocks[h]; b.state == allocated || b.state == waiting {
			if now, known := made[b.address]; !known || l.made[id] > now { // a handle may have been used again
				made[b.address] = l.made[id]
			}
		}
	}
	for i := range s.Segments {
		for _, b := range s.Segments[i].Blocks {
			event, known := made[b.Address]
			if !known || b.State == mem.BlockInactive {
				event = -1
			}
			s.Made = append(s.Made, event)
		}
	}
	l.seen = s
}
