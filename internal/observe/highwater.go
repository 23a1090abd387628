package observe

import (
	"hightide/internal/mem"
)

// reached notes that a process had so much resident, after it was last looked at. What the tree had together then was
// at least that much with what the others had.
func (r *Recorder) reached(p *process, mark int64) {
	if mark <= p.earlier {
		return // it had that before the recording
	}
	known := p.MaxRSS.Or(0)
	p.MaxRSS.Raise(mem.Some(mark))
	p.dirty = p.dirty || mark > known
	if mark <= p.highest+p.highest/markError {
		mark = p.highest // it was read, and so is its moment
	}
	if !p.rss.Known() || max(mark, p.highest) <= p.summed {
		return
	}
	now := p.End.Or(r.now()) // it was there then, at the latest
	put := func(key seriesKey, label mem.Label, value int64) {
		r.columns.putSample(key, mem.UnitBytes, label, now, value)
		r.observe(key, now, value)
	}
	if mark > p.highest {
		p.highest = mark
		put(seriesKey{process: p.ID, name: mem.SeriesRSS}, mem.Measured, mark)
	}
	p.summed = p.highest
	rise := p.highest - p.part
	if p.together[0] >= p.part && rise > 0 {
		put(seriesKey{name: mem.SeriesTreeRSS}, mem.Measured, p.together[0]+rise)
	}
	if p.together[1] > 0 && rise > 0 {
		put(seriesKey{name: mem.SeriesTreePSS}, mem.Estimated, p.together[1]+rise)
	}
}

// partOf notes what the tree has together with each process that was a part of it then. One that has given its memory
// back, and is about to end, is none.
func (r *Recorder) partOf(kind int, time, together int64) {
	for _, p := range r.order {
		if !p.gone && p.rssAt >= time {
			p.together[kind], p.part, p.summed = together, p.rss.Or(0), p.highest
		}
	}
}

// afterBye is how much more than at its interpreter's end a process may take until its own.
const afterBye = 1.25

// highWater gives the kernel's high-water mark to the process whose it is. On the command's end the kernel tells
// the largest one of the command and of all below it that somebody waited for, not which. Where it is more than any
// was seen with, it belongs to one that took more after it was last looked at. One whose end the heap library saw has
// told all it took, and one whose agent saw its interpreter end most of it. Of the others it is the largest.
func (r *Recorder) highWater(kernel int64) {
	if kernel <= ownMaxRSS() {
		return // it starts with what we had when the command was made of us, before it became its own program
	}
	var owner *process
	for _, p := range r.order {
		known := p.MaxRSS.Or(0)
		if known >= kernel-kernel/markError {
			return
		}
		if !p.gone || p.final || p.bye && float64(kernel) > afterBye*float64(known) {
			continue
		}
		if owner == nil || known > owner.MaxRSS.Or(0) {
			owner = p
		}
	}
	if owner != nil {
		r.reached(owner, kernel)
		if owner.heap != nil && len(owner.channels) == 0 { // its heap was written without knowing of that
			r.lastHeap(owner, r.now())
		}
	}
}

// markError: the kernel counts pages for each processor, and its two marks of one process differ by up to this part.
const markError = 500
