package allocator

import "math/bits"

// freeList is an ordered set of free blocks: by size, then tie (age of the segment and address, or
// address alone). Its entries lie in leaves of at most leafSize, in order, so that finding one is two
// short binary searches and inserting moves a few hundred bytes. A block knows its leaf.
type freeList struct {
	leaves []*leaf
	lows   []key // no entry of leaves[i] is below lows[i], none of leaves[i-1] is above
	count  int
}

const (
	leafSize  = 64
	leafSmall = 12 // a leaf of fewer entries joins a neighbour that has room
)

type key struct{ size, tie uint64 }

type entry struct {
	key
	block int32
}

type leaf struct {
	n       int
	entries [leafSize]entry
}

// below is 1 if a < b, else 0, without a branch.
func (a key) below(b key) int {
	_, borrow := bits.Sub64(a.tie, b.tie, 0)
	_, borrow = bits.Sub64(a.size, b.size, borrow)
	return int(borrow)
}

// leafOf is the last leaf whose low is not above k.
func (f *freeList) leafOf(k key) int {
	lows := f.lows
	at, n := 0, len(lows)
	for n > 1 {
		half := n / 2
		at += half & (k.below(lows[at+half]) - 1) // stay where k is below
		n -= half
	}
	return at
}

// lower is the first entry of a leaf that is not below k.
func (l *leaf) lower(k key) int {
	at, n := 0, l.n
	for n > 0 {
		half := (n + 1) / 2
		at += half & -l.entries[(at+half-1)&(leafSize-1)].below(k)
		n -= half
	}
	return at
}

// place is a position in a freeList; valid until it changes.
type place struct{ leaf, at int }

// find is the first entry not below k; ok is false where there is none.
func (f *freeList) find(k key) (p place, ok bool) {
	if f.count == 0 {
		return place{}, false
	}
	p.leaf = f.leafOf(k)
	p.at = f.leaves[p.leaf].lower(k)
	if p.at == f.leaves[p.leaf].n { // all of this leaf are below, and the next one is not empty
		p.leaf, p.at = p.leaf+1, 0
	}
	return p, p.leaf < len(f.leaves)
}

func (f *freeList) first() (place, bool) { return place{}, f.count > 0 }

func (f *freeList) at(p place) *entry { return &f.leaves[p.leaf].entries[p.at] }

// next steps forwards.
func (f *freeList) next(p place) (place, bool) {
	if p.at++; p.at == f.leaves[p.leaf].n {
		p = place{p.leaf + 1, 0}
	}
	return p, p.leaf < len(f.leaves)
}

// previous steps backwards.
func (f *freeList) previous(p place) (place, bool) {
	if p.at > 0 {
		return place{p.leaf, p.at - 1}, true
	}
	if p.leaf == 0 {
		return p, false
	}
	return place{p.leaf - 1, f.leaves[p.leaf-1].n - 1}, true
}

// last is the highest entry.
func (f *freeList) last() (place, bool) {
	if f.count == 0 {
		return place{}, false
	}
	n := len(f.leaves) - 1
	return place{n, f.leaves[n].n - 1}, true
}

// insert adds an entry that is not in the set.
func (f *freeList) insert(k key, block int32) {
	f.count++
	if len(f.leaves) == 0 {
		f.leaves, f.lows = append(f.leaves, &leaf{}), append(f.lows, key{})
	}
	i := f.leafOf(k)
	l := f.leaves[i]
	if l.n == leafSize {
		i = f.split(i, k)
		l = f.leaves[i]
	}
	at := l.lower(k)
	copy(l.entries[at+1:l.n+1], l.entries[at:l.n])
	l.entries[at] = entry{k, block}
	l.n++
}

// split halves a full leaf and returns the half for k.
func (f *freeList) split(i int, k key) int {
	left, right := f.leaves[i], &leaf{}
	cut := leafSize / 2
	right.n = copy(right.entries[:], left.entries[cut:])
	left.n = cut
	f.leaves, f.lows = append(f.leaves, nil), append(f.lows, key{})
	copy(f.leaves[i+2:], f.leaves[i+1:])
	copy(f.lows[i+2:], f.lows[i+1:])
	f.leaves[i+1], f.lows[i+1] = right, right.entries[0].key
	return i + 1 - k.below(f.lows[i+1])
}

// remove takes out the entry of a key, which must be there.
func (f *freeList) remove(k key) {
	i := f.leafOf(k)
	f.removeAt(place{i, f.leaves[i].lower(k)})
}

func (f *freeList) removeAt(p place) {
	l := f.leaves[p.leaf]
	copy(l.entries[p.at:l.n-1], l.entries[p.at+1:l.n])
	l.n--
	f.count--
	if l.n < leafSmall {
		f.shrink(p.leaf)
	}
}

// shrink joins a leaf of few entries with the next one, or drops it if it is empty.
func (f *freeList) shrink(i int) {
	if f.leaves[i].n > 0 {
		if i+1 == len(f.leaves) {
			i--
		}
		if i < 0 || f.leaves[i].n+f.leaves[i+1].n > leafSize*3/4 {
			return
		}
		left, right := f.leaves[i], f.leaves[i+1]
		left.n += copy(left.entries[left.n:], right.entries[:right.n])
		i++
	} else if i == 0 && len(f.leaves) > 1 {
		f.lows[1] = key{}
	}
	f.leaves = append(f.leaves[:i], f.leaves[i+1:]...)
	f.lows = append(f.lows[:i], f.lows[i+1:]...)
	if len(f.leaves) == 0 {
		f.leaves, f.lows = nil, nil
	}
}
