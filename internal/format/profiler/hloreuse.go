package profiler

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// XLA gives a temporary the place of a result where it is not larger, and is gone before the result is written. Smaller
// temporaries fit into more results: those of a training step are as large as its weights, whatever the batch.

// hloLives says from which instruction of the entry to which a buffer is needed.
type hloLives struct {
	*hloDims
	order  map[uint64]int        // of the entry's instructions
	users  map[uint64][]*hloCode // in the entry
	within map[uint64]int        // of what the entry calls: the order of the call
	seen   map[uint64]bool       // computations
}

const (
	forever  = math.MaxInt
	maxViews = 1 << 12 // of one buffer, and of its views

	muchSmaller = 12 // in powers of two, than the largest: such a temporary stays where it is
)

func (d *hloDims) lives(order map[uint64]int) *hloLives {
	l := &hloLives{d, order, map[uint64][]*hloCode{}, map[uint64]int{}, map[uint64]bool{}}
	for _, c := range d.entry.codes {
		for _, id := range c.operands {
			l.users[id] = append(l.users[id], c)
		}
		l.inside(c, order[c.id])
	}
	return l
}

func (l *hloLives) inside(c *hloCode, at int) {
	for _, id := range c.called {
		p := l.parts[id]
		if p == nil || p == l.entry || l.seen[id] || c.opcode == "fusion" {
			continue
		}
		l.seen[id] = true
		for _, inner := range p.codes {
			l.within[inner.id] = at
			l.inside(inner, at)
		}
	}
}

// hloStay is when a place is taken, by the order of the entry's instructions.
type hloStay struct{ from, to int }

// stay is when a buffer is needed.
func (l *hloLives) stay(instruction uint64, path []uint64) hloStay {
	if at, ok := l.within[instruction]; ok {
		return hloStay{at, at}
	}
	at, ok := l.order[instruction]
	if !ok {
		return hloStay{0, forever}
	}
	views := maxViews
	return hloStay{at, max(at, l.last(instruction, path, &views))}
}

// last is the last instruction that takes a buffer, or a view of it.
func (l *hloLives) last(instruction uint64, path []uint64, views *int) (at int) {
	if *views--; instruction == l.entry.root || *views <= 0 {
		return forever
	}
	for _, c := range l.users[instruction] {
		switch c.opcode {
		case "get-tuple-element":
			if len(path) > 0 && path[0] == c.index {
				at = max(at, l.last(c.id, path[1:], views))
			}
		case "tuple":
			for i, id := range c.operands {
				if id == instruction {
					at = max(at, l.last(c.id, append([]uint64{uint64(i)}, path...), views))
				}
			}
		case "bitcast":
			at = max(at, l.last(c.id, path, views))
		default:
			at = max(at, l.order[c.id])
		}
	}
	return at
}

// apart says whether one is gone before the other comes. Where one is made of the other, XLA may write it in its place.
func (s hloStay) apart(o hloStay, inPlace bool) bool {
	return s.to < o.from || o.to < s.from || inPlace && (s.to == o.from || o.to == s.from)
}

// hloTemporary is a place in a heap. Several buffers may have it one after the other.
type hloTemporary struct {
	first uint64 // its first buffer
	hloStay
}

// temporaries are the places of a heap.
func (b *hloBuffers) temporaries(l *hloLives, moves []hloMove) (all []hloTemporary) {
	first, at := map[uint64]uint64{}, map[uint64]int{}
	for _, m := range moves {
		if m.kind == hloFree {
			continue
		}
		stay := l.stay(b.defined[m.buffer], b.path[m.buffer])
		if known, ok := first[m.shares]; ok && m.kind == hloShare {
			first[m.buffer] = known
			t := &all[at[known]]
			t.from, t.to = min(t.from, stay.from), max(t.to, stay.to)
			continue
		}
		first[m.buffer], at[m.buffer] = m.buffer, len(all)
		all = append(all, hloTemporary{m.buffer, stay})
	}
	return all
}

// hloResult is the place of a result, and when it is taken.
type hloResult struct {
	size  int64
	stays []hloStay
}

// placed sorts what has the places of results: what stays with its result, and what could go elsewhere.
func (b *hloBuffers) placed(l *hloLives, sizes map[uint64]int64) (results []hloResult, loose []hloTemporary) {
	for i := range b.allocations {
		a := &b.allocations[i]
		if a.local || a.kind() != HLOOutput {
			continue
		}
		var r hloResult
		for _, id := range a.buffers {
			r.size = max(r.size, sizes[id])
		}
		for _, id := range a.buffers {
			stay := l.stay(b.defined[id], b.path[id])
			if sizes[id] == r.size { // it is the result, or made into it
				r.stays = append(r.stays, stay)
			} else {
				loose = append(loose, hloTemporary{id, stay})
			}
		}
		results = append(results, r)
	}
	slices.SortStableFunc(results, func(x, y hloResult) int { return cmp.Compare(x.size, y.size) })
	return results, loose
}

// with is the most that a heap has at once if buffers have other sizes: the largest are given the places of results
// first.
func (b *hloBuffers) with(l *hloLives, moves []hloMove, sizes map[uint64]int64, inPlace bool) (most int64) {
	results, loose := b.placed(l, sizes)
	all := append(b.temporaries(l, moves), loose...)
	outside := map[uint64]bool{}
	for _, t := range loose {
		outside[t.first] = true
	}
	slices.SortStableFunc(all, func(x, y hloTemporary) int { return cmp.Compare(sizes[y.first], sizes[x.first]) })
	left := maps.Clone(sizes) // of the heap
	var more []hloTemporary   // in the heap
	for i := range all {
		t := &all[i]
		size := sizes[t.first]
		first, _ := slices.BinarySearchFunc(results, size,
			func(r hloResult, size int64) int { return cmp.Compare(r.size, size) })
		if size < sizes[all[0].first]>>muchSmaller {
			first = len(results)
		}
		to := slices.IndexFunc(results[first:], func(r hloResult) bool {
			return !slices.ContainsFunc(r.stays, func(s hloStay) bool { return !s.apart(t.hloStay, inPlace) })
		})
		switch {
		case to >= 0:
			left[t.first] = 0
			r := &results[first+to]
			r.stays = append(r.stays, t.hloStay)
		case outside[t.first]:
			more = append(more, *t)
		}
	}
	heap, at := newHLOHeap(left), 0
	for _, m := range moves {
		heap.play(m)
		if m.kind != hloFree {
			at = l.stay(b.defined[m.buffer], b.path[m.buffer]).from
		}
		now := heap.now
		for i := range more {
			if t := &more[i]; t.from <= at && at <= t.to {
				now += sizes[t.first]
			}
		}
		most = max(most, now)
	}
	return most
}
