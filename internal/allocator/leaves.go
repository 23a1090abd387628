package allocator

import "math/bits"

// leaves are a sorted set of entries in pieces of at most leafSize, so that finding one is two short
// binary searches and inserting moves a few hundred bytes.
type leaves struct {
	all  []*leaf
	lows []key // no entry of all[i] is below lows[i], none of all[i-1] is above
	idle *leaf // the one that was left when the set became empty: sets of one entry come and go
}

const (
	leafSize  = 64
	leafSmall = 12 // a leaf of fewer entries joins a neighbour that has room
)

type leaf struct {
	n       int
	entries [leafSize]entry
}

// below is 1 if a < b, else 0, without a branch.
func (k key) below(b key) int {
	_, borrow := bits.Sub64(k.tie, b.tie, 0)
	_, borrow = bits.Sub64(k.size, b.size, borrow)
	return int(borrow)
}

// leafOf is the last leaf whose low is not above k.
func (f *leaves) leafOf(k key) int {
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

// lowerBound is the first entry not below k; ok is false where there is none.
func (f *leaves) lowerBound(k key) (leaf, at int, ok bool) {
	if len(f.all) == 0 {
		return 0, 0, false
	}
	leaf = f.leafOf(k)
	at = f.all[leaf].lower(k)
	if at == f.all[leaf].n { // all of this leaf are below, and the next one is not empty
		leaf, at = leaf+1, 0
	}
	return leaf, at, leaf < len(f.all)
}

func (f *leaves) at(leaf, at int) *entry { return &f.all[leaf].entries[at] }

// last is the highest entry of a set that is not empty.
func (f *leaves) last() (leaf, at int) {
	leaf = len(f.all) - 1
	return leaf, f.all[leaf].n - 1
}

// insert adds an entry that is not in the set.
func (f *leaves) insert(k key, block int32) {
	if len(f.all) == 0 {
		if f.idle == nil {
			f.idle = &leaf{}
		}
		f.all, f.lows = append(f.all, f.idle), append(f.lows, key{})
	}
	i := f.leafOf(k)
	l := f.all[i]
	if l.n == leafSize {
		i = f.split(i, k)
		l = f.all[i]
	}
	at := l.lower(k)
	copy(l.entries[at+1:l.n+1], l.entries[at:l.n])
	l.entries[at] = entry{k, block}
	l.n++
}

// split halves a full leaf and returns the half for k.
func (f *leaves) split(i int, k key) int {
	left, right := f.all[i], &leaf{}
	cut := leafSize / 2
	right.n = copy(right.entries[:], left.entries[cut:])
	left.n = cut
	f.all, f.lows = append(f.all, nil), append(f.lows, key{})
	copy(f.all[i+2:], f.all[i+1:])
	copy(f.lows[i+2:], f.lows[i+1:])
	f.all[i+1], f.lows[i+1] = right, right.entries[0].key
	return i + 1 - k.below(f.lows[i+1])
}

func (f *leaves) removeAt(leaf, at int) {
	l := f.all[leaf]
	copy(l.entries[at:l.n-1], l.entries[at+1:l.n])
	l.n--
	if l.n < leafSmall {
		f.shrink(leaf)
	}
}

// shrink joins a leaf of few entries with the next one, or drops it if it is empty.
func (f *leaves) shrink(i int) {
	if f.all[i].n > 0 {
		if i+1 == len(f.all) {
			i--
		}
		if i < 0 || f.all[i].n+f.all[i+1].n > leafSize*3/4 {
			return
		}
		left, right := f.all[i], f.all[i+1]
		left.n += copy(left.entries[left.n:], right.entries[:right.n])
		i++
	} else if i == 0 && len(f.all) > 1 {
		f.lows[1] = key{}
	}
	f.idle = f.all[i]
	f.idle.n = 0
	f.all = append(f.all[:i], f.all[i+1:]...)
	f.lows = append(f.lows[:i], f.lows[i+1:]...)
}
