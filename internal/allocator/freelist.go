package allocator

import (
	"math/bits"
	"slices"
)

// freeList is an ordered set of free blocks: by size, then tie (age of the segment and address, or
// address alone).
//
//	sizes below 2 MiB ──▶ a bin for each 512 bytes: a short sorted list, found by a bitmap
//	larger ones       ──▶ sorted leaves, found by their lowest entries
//
// So the many small blocks cost a step each, and the fewer large ones two short binary searches.
type freeList struct {
	bins  *bins // nil: no small block was ever free
	large leaves
	count int
}

type key struct{ size, tie uint64 }

type entry struct {
	key
	block int32
}

// before says whether a comes first.
func (k key) before(b key) bool { return k.size < b.size || k.size == b.size && k.tie < b.tie }

// place is a position in a freeList; valid until it changes. Bin counts from 1; 0 is among the large.
type place struct{ bin, leaf, at int }

const (
	binStep = minBlock
	binned  = 2 << 20 // sizes below lie in bins
	binMany = 64      // entries from which on a bin is divided into leaves
)

// bins hold small sizes.
type bins struct {
	lists [binned / binStep]bin
	words [binned / binStep / 64]uint64 // bit i%64 of word i/64: bin i is not empty
	some  uint64                        // bit j: word j is not 0
}

// bin is the entries of nearly one size, in order.
type bin struct {
	few  []entry
	many *leaves // instead, once they are many
}

func (b *bin) lower(k key) (leaf, at int, ok bool) {
	if b.many != nil {
		return b.many.lowerBound(k)
	}
	for at < len(b.few) && b.few[at].before(k) {
		at++
	}
	return 0, at, at < len(b.few)
}

func (b *bin) empty() bool { return len(b.few) == 0 && b.many == nil }

func (b *bin) insert(k key, block int32) {
	if b.many != nil {
		b.many.insert(k, block)
		return
	}
	if len(b.few) == binMany {
		b.many = &leaves{}
		for _, e := range b.few {
			b.many.insert(e.key, e.block)
		}
		b.few = nil
		b.many.insert(k, block)
		return
	}
	_, at, _ := b.lower(k)
	b.few = slices.Insert(b.few, at, entry{k, block})
}

func (b *bin) removeAt(leaf, at int) {
	if b.many == nil {
		b.few = slices.Delete(b.few, at, at+1)
		return
	}
	b.many.removeAt(leaf, at)
	if len(b.many.all) == 0 {
		b.many = nil
	}
}

// from is the first bin from i on that is not empty, or -1.
func (b *bins) from(i int) int {
	if i >= len(b.lists) {
		return -1
	}
	if rest := b.words[i/64] >> (i % 64); rest != 0 {
		return i + bits.TrailingZeros64(rest)
	}
	rest := b.some &^ (2<<(i/64) - 1)
	if rest == 0 {
		return -1
	}
	word := bits.TrailingZeros64(rest)
	return word*64 + bits.TrailingZeros64(b.words[word])
}

// until is the last bin before i that is not empty, or -1.
func (b *bins) until(i int) int {
	for i--; i >= 0; i-- {
		if i%64 == 63 && b.words[i/64] == 0 {
			i -= 63
			continue
		}
		if !b.lists[i].empty() {
			return i
		}
	}
	return -1
}

// lowerBound is the first entry not below k; ok is false where there is none.
func (f *freeList) lowerBound(k key) (p place, ok bool) {
	if k.size < binned && f.bins != nil {
		i := int(k.size / binStep)
		if f.bins.words[i/64]>>(i%64)&1 != 0 {
			if leaf, at, ok := f.bins.lists[i].lower(k); ok {
				return place{i + 1, leaf, at}, true
			}
		}
		if i = f.bins.from(i + 1); i >= 0 {
			return place{bin: i + 1}, true
		}
	}
	p.leaf, p.at, ok = f.large.lowerBound(k)
	return p, ok
}

func (f *freeList) first() (place, bool) { return f.lowerBound(key{}) }

func (f *freeList) at(p place) *entry {
	if p.bin == 0 {
		return f.large.at(p.leaf, p.at)
	}
	b := &f.bins.lists[p.bin-1]
	if b.many != nil {
		return b.many.at(p.leaf, p.at)
	}
	return &b.few[p.at]
}

// next steps forwards.
func (f *freeList) next(p place) (place, bool) {
	l := &f.large
	if p.bin > 0 {
		b := &f.bins.lists[p.bin-1]
		if l = b.many; l == nil {
			if p.at++; p.at < len(b.few) {
				return p, true
			}
			return f.after(p.bin)
		}
	}
	if p.at++; p.at == l.all[p.leaf].n {
		p.leaf, p.at = p.leaf+1, 0
	}
	if p.leaf == len(l.all) && p.bin > 0 {
		return f.after(p.bin)
	}
	return p, p.leaf < len(l.all)
}

// after is the first entry beyond the bins before this one.
func (f *freeList) after(bin int) (place, bool) {
	if i := f.bins.from(bin); i >= 0 {
		return place{bin: i + 1}, true
	}
	return place{}, len(f.large.all) > 0
}

// previous steps backwards.
func (f *freeList) previous(p place) (place, bool) {
	switch {
	case p.at > 0:
		p.at--
		return p, true
	case p.leaf > 0:
		l := &f.large
		if p.bin > 0 {
			l = f.bins.lists[p.bin-1].many
		}
		p.leaf--
		p.at = l.all[p.leaf].n - 1
		return p, true
	case p.bin == 0:
		return f.lastBelow(binned / binStep)
	}
	return f.lastBelow(p.bin - 1)
}

// lastBelow is the highest entry of the bins below this one.
func (f *freeList) lastBelow(bin int) (p place, ok bool) {
	if f.bins == nil {
		return p, false
	}
	i := f.bins.until(bin)
	if i < 0 {
		return p, false
	}
	b := &f.bins.lists[i]
	p = place{bin: i + 1, at: len(b.few) - 1}
	if b.many != nil {
		p.leaf, p.at = b.many.last()
	}
	return p, true
}

// last is the highest entry.
func (f *freeList) last() (p place, ok bool) {
	if len(f.large.all) > 0 {
		p.leaf, p.at = f.large.last()
		return p, true
	}
	return f.lastBelow(binned / binStep)
}

// insert adds an entry that is not in the set.
func (f *freeList) insert(k key, block int32) {
	f.count++
	if k.size >= binned {
		f.large.insert(k, block)
		return
	}
	if f.bins == nil {
		f.bins = &bins{}
	}
	i := int(k.size / binStep)
	f.bins.lists[i].insert(k, block)
	f.bins.words[i/64] |= 1 << (i % 64)
	f.bins.some |= 1 << (i / 64)
}

// remove takes out the entry of a key, which must be there.
func (f *freeList) remove(k key) {
	if k.size >= binned {
		leaf, at, _ := f.large.lowerBound(k)
		f.removeAt(place{0, leaf, at})
		return
	}
	i := int(k.size / binStep)
	leaf, at, _ := f.bins.lists[i].lower(k)
	f.removeAt(place{i + 1, leaf, at})
}

func (f *freeList) removeAt(p place) {
	f.count--
	if p.bin == 0 {
		f.large.removeAt(p.leaf, p.at)
		return
	}
	i := p.bin - 1
	f.bins.lists[i].removeAt(p.leaf, p.at)
	if f.bins.lists[i].empty() {
		f.bins.words[i/64] &^= 1 << (i % 64)
		if f.bins.words[i/64] == 0 {
			f.bins.some &^= 1 << (i / 64)
		}
	}
}
