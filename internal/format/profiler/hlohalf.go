package profiler

import (
	"cmp"
	"maps"
	"slices"

	"hightide/internal/mem"
)

// What a program would need with half of its batch:
//
//	hloDims, arguments ──▶ candidates for the batch ──▶ the dimensions that must be halved with each
//	                   └─▶ buffers of half the size ──▶ the same order of temporaries, played again ──▶ mem.Halved
//
// What only the sizes say, and not the instructions, is halved for the lowest figure and kept for the highest. Likewise
// dimensions that a program takes apart, as a batch for a loop over parts of it: the parts shrink, or their number.

const (
	mostHalved = 4 // candidates of one program

	// What XLA decides anew for another size: which operations it joins, and which temporaries have the place of a
	// result. Of 19 trainings compiled at half of their batch, for a CPU and for a GPU, none was farther off;
	// scripts/tests/test_halved.py has seven of them.
	anewBelow = 16  // a sixteenth less
	anewAbove = 100 // a hundredth more
)

// hloArgument is an array that the program is given.
type hloArgument struct {
	shape *hloShape
	name  string
	state bool // it comes out again in the same shape, or in its place
}

// hloBatch is a length that may be the batch's.
type hloBatch struct {
	length   uint64
	classes  map[int]bool // of dimensions that must have it
	names    []string     // of arguments
	score    int
	elements uint64
}

// halves are the figures for each length that may be the batch's, the likeliest first.
func (g *hloGraph) halves(b *hloBuffers, name func(instruction uint64) string) (all []mem.Halved) {
	d := dimsOf(g.parts, g.entry)
	if d.entry == nil {
		return nil
	}
	arguments, lives := g.arguments(d, name), d.lives(g.order)
	for _, batch := range d.batches(arguments) {
		h := mem.Halved{Batch: int64(batch.length), Arguments: batch.names}
		for _, outermost := range []bool{true, false} {
			s := d.spread(&batch, arguments, outermost)
			low := b.needs(lives, s.sizes(b, true), true)
			high := b.needs(lives, s.sizes(b, false), false)
			h.Low, h.High = least(h.Low, mem.Bytes(min(low, high))), max(h.High, mem.Bytes(max(low, high)))
			if !s.guessed {
				break
			}
		}
		h.Low, h.High = h.Low-h.Low/anewBelow, h.High+h.High/anewAbove
		all = append(all, h)
	}
	return all
}

func least(so, bytes mem.Bytes) mem.Bytes {
	if so == 0 {
		return bytes
	}
	return min(so, bytes)
}

// arguments are the arrays that the entry is given.
func (g *hloGraph) arguments(d *hloDims, name func(instruction uint64) string) (all []hloArgument) {
	type kind struct {
		element uint64
		dims    string
	}
	of := func(s *hloShape) kind { return kind{s.element, string(dimsKey(s.dims))} }
	results := map[kind]int{}
	if root := d.code[d.entry.root]; root != nil {
		for _, leaf := range root.shape.leaves() {
			results[of(leaf)]++
		}
	}
	donated := map[uint64]bool{} // whole, by the number of a parameter
	for _, n := range g.donated {
		if len(n[3]) == 0 {
			donated[n.one(2)] = true
		}
	}
	for _, p := range d.entry.parameters {
		if p == nil {
			continue
		}
		whole := donated[p.number]
		for _, leaf := range p.shape.leaves() {
			a := hloArgument{shape: leaf, name: name(p.id), state: whole}
			if results[of(leaf)] > 0 {
				results[of(leaf)]--
				a.state = true
			}
			all = append(all, a)
		}
	}
	return all
}

func dimsKey(dims []uint64) (key []byte) {
	for _, d := range dims {
		for range 8 {
			key = append(key, byte(d))
			d >>= 8
		}
	}
	return key
}

// batches are the lengths that may be the batch's. It is the first dimension of an argument that no loop walks over, and
// stands nowhere else in one: what is multiplied with a weight is no batch.
func (d *hloDims) batches(arguments []hloArgument) (all []hloBatch) {
	walked, inner := map[int]bool{}, map[int]bool{}
	for node, is := range d.walked {
		if is {
			walked[d.find(node)] = true
		}
	}
	leads := func(s *hloShape) int { // the node of the dimension that may be the batch; -1: none
		for i, n := range s.dims {
			if class := d.find(s.first + i); n > 1 && !walked[class] {
				return i
			}
		}
		return -1
	}
	for _, a := range arguments {
		lead := leads(a.shape)
		for i := range a.shape.dims {
			if class := d.find(a.shape.first + i); i != lead && !walked[class] {
				inner[class] = true
			}
		}
	}
	byLength := map[uint64]*hloBatch{}
	for _, state := range []bool{false, true} { // state counts only where nothing else has a batch
		if state && len(byLength) > 0 {
			break
		}
		for _, a := range arguments {
			if lead := leads(a.shape); lead >= 0 && a.state == state && !inner[d.find(a.shape.first+lead)] {
				n := a.shape.dims[lead]
				if byLength[n] == nil {
					byLength[n] = &hloBatch{length: n, classes: map[int]bool{}}
				}
				byLength[n].add(d.find(a.shape.first+lead), &a)
			}
		}
	}
	for _, b := range byLength {
		if root := d.code[d.entry.root]; root != nil {
			for _, leaf := range root.shape.leaves() {
				if i := leads(leaf); i >= 0 && b.classes[d.find(leaf.first+i)] {
					b.score++
				}
			}
		}
		all = append(all, *b)
	}
	slices.SortFunc(all, func(x, y hloBatch) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(y.elements, x.elements), cmp.Compare(y.length, x.length))
	})
	return all[:min(len(all), mostHalved)]
}

func (b *hloBatch) add(class int, a *hloArgument) {
	b.classes[class] = true
	b.names = append(b.names, a.name)
	b.score++
	elements := uint64(1)
	for _, d := range a.shape.dims {
		elements *= d
	}
	b.elements += elements
}

// hloSpread is where a batch is found.
type hloSpread struct {
	*hloDims
	batch        uint64
	scaled, kept map[int]bool // classes of dimensions that have it, and that do not
	guessed      bool         // nothing said which of several has it
}

// spread follows the batch through what folds dimensions into others. Where one of several must have it and nothing says
// which, it is the outermost, or the innermost.
func (d *hloDims) spread(b *hloBatch, arguments []hloArgument, outermost bool) *hloSpread {
	s := &hloSpread{hloDims: d, batch: b.length, scaled: maps.Clone(b.classes), kept: map[int]bool{}}
	for _, a := range arguments {
		for i := range a.shape.dims {
			if class := d.find(a.shape.first + i); !s.scaled[class] {
				s.kept[class] = true
			}
		}
	}
	for s.all(false, outermost) {
	}
	for s.all(true, outermost) {
		s.guessed = true
		for s.all(false, outermost) {
		}
	}
	return s
}

// all goes through what folds and says whether something became known. Guessing, it stops at the first guess.
func (s *hloSpread) all(guess, outermost bool) (found bool) {
	for _, split := range s.splits {
		for side := range split {
			if class := s.one(split[side], split[1-side], guess, outermost); class >= 0 {
				s.scaled[class], found = true, true
				if guess {
					return true
				}
			}
		}
	}
	for _, sum := range s.sums {
		whole := s.find(sum.whole)
		if !s.scaled[whole] && !s.kept[whole] &&
			!slices.ContainsFunc(sum.parts, func(part int) bool { return !s.scaled[s.find(part)] }) {
			s.scaled[whole], found = true, true
		}
	}
	return found
}

// one is the dimension that has the batch of another side; -1: it is known already, or not known.
func (s *hloSpread) one(to, from []int, guess, outermost bool) int {
	has := func(node int) bool { return s.scaled[s.find(node)] }
	if !slices.ContainsFunc(from, has) || slices.ContainsFunc(to, has) {
		return -1
	}
	var may []int
	for _, node := range to {
		if !s.kept[s.find(node)] {
			may = append(may, node)
		}
	}
	switch {
	case len(may) == 0:
		return -1
	case len(may) == 1:
		return s.find(may[0])
	case s.length[may[0]] == s.batch: // as before it was folded
		return s.find(may[0])
	case !guess:
		return -1
	case outermost:
		return s.find(may[0])
	}
	return s.find(may[len(may)-1])
}

// sizes are those of buffers with half of the batch. An array none of whose dimensions is known to have it, and one of
// no known origin could, is halved where the least is asked for.
func (s *hloSpread) sizes(b *hloBuffers, low bool) map[uint64]int64 {
	sizes := make(map[uint64]int64, len(b.size))
	for id, size := range b.size {
		sizes[id] = size
		c := s.code[b.defined[id]]
		if c == nil {
			continue
		}
		shape := c.shape.part(b.path[id]...)
		if shape == nil || shape.tuple {
			continue
		}
		times := s.times(shape, low)
		if uses := s.filled[c.id]; len(uses) > 0 {
			var all []int
			for _, use := range uses {
				all = append(all, s.times(use, low))
			}
			if times = slices.Min(all); low {
				times = slices.Max(all)
			}
		}
		for range times {
			sizes[id] = sizes[id] / int64(s.batch) * int64(s.batch/2)
		}
	}
	return sizes
}

// times is how many dimensions of an array have the batch.
func (s *hloSpread) times(shape *hloShape, low bool) (times int) {
	may := false
	for i, n := range shape.dims {
		class := s.find(shape.first + i)
		if s.scaled[class] {
			times++
		}
		may = may || !s.kept[class] && n%s.batch == 0
	}
	if times == 0 && may && low {
		return 1
	}
	return times
}

// needs is what all allocations take with other sizes of buffers.
func (b *hloBuffers) needs(l *hloLives, sizes map[uint64]int64, inPlace bool) (sum int64) {
	for i := range b.allocations {
		if a := &b.allocations[i]; !a.local && a.size > 0 {
			sum += b.scaled(a, l, sizes, inPlace)
		}
	}
	return sum
}

// scaled is the size of an allocation whose buffers have other sizes.
func (b *hloBuffers) scaled(a *hloAllocation, l *hloLives, sizes map[uint64]int64, inPlace bool) int64 {
	if moves := b.movesOf(a); moves != nil && a.kind() == HLOTemporary {
		between := a.size - b.most(moves)
		bytes := b.with(l, moves, sizes, inPlace)
		if !inPlace {
			bytes = min(bytes, (&hloBuffers{size: sizes}).most(moves)) // where all stays as it was
		}
		return bytes + between
	}
	var most, was int64
	for _, id := range a.buffers {
		most, was = max(most, sizes[id]), max(was, b.size[id])
	}
	return a.size - was + most
}

// most is what temporaries take at their fullest.
func (b *hloBuffers) most(moves []hloMove) (bytes int64) {
	heap := newHLOHeap(b.size)
	for _, m := range moves {
		heap.play(m)
		bytes = max(bytes, heap.now)
	}
	return bytes
}
