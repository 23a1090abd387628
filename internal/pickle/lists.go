package pickle

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// lists remembers which bytes stood for which list, so that a stack that occurs a million times is
// looked up item by item once. Bytes are known by 64 bits of hash under a seed that is drawn anew each
// time, and 32 bits more of their length and their ends. That two lists share all of it is less likely
// than a fault of the memory, and nobody can make it so. It is a cache: full, it starts anew.
type lists struct {
	table []listEntry // open addressing; a power of two
	used  int
}

// listKey is what bytes are known by.
type listKey struct {
	hash  uint64
	check uint32
}

type listEntry struct {
	hash  uint64
	check uint32
	v     uint32 // a Value of 32 bits; zero: free
}

const (
	listTable    = 1 << 10
	maxListTable = 1 << 20
)

// keyOf is what bytes are known by.
func keyOf(seed maphash.Seed, raw []byte) listKey {
	return listKey{maphash.Bytes(seed, raw), ends(raw)}
}

// findValue returns what bytes stood for; 0: not known.
func (l *lists) findValue(key listKey) Value {
	if l.table == nil {
		l.table = make([]listEntry, listTable)
	}
	mask := uint64(len(l.table) - 1)
	for i := key.hash & mask; ; i = (i + 1) & mask {
		e := &l.table[i]
		if e.v == 0 || e.hash == key.hash && e.check == key.check {
			return Value(e.v)
		}
	}
}

// findAll looks many up, so that waiting for memory overlaps.
func (l *lists) findAll(all []listBytes) {
	for i := range all {
		all[i].v = uint32(l.findValue(all[i].listKey))
	}
}

// ends mixes the first and last bytes of raw with its length.
func ends(raw []byte) uint32 {
	mixed := uint64(len(raw)) << 33
	if len(raw) >= 8 {
		mixed ^= binary.LittleEndian.Uint64(raw) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(raw[len(raw)-8:]), 23)
	}
	return uint32(mixed ^ mixed>>32)
}

// add remembers a list, if its Value is one of those that come in millions.
func (l *lists) add(key listKey, v Value) {
	if v>>32 != 0 || v == 0 {
		return
	}
	if l.used >= len(l.table)/4*3 {
		if len(l.table) < maxListTable {
			l.grow()
		} else {
			l.clear()
		}
	}
	l.insert(listEntry{key.hash, key.check, uint32(v)})
}

func (l *lists) insert(e listEntry) {
	mask := uint64(len(l.table) - 1)
	i := e.hash & mask
	for l.table[i].v != 0 {
		i = (i + 1) & mask
	}
	l.table[i] = e
	l.used++
}

func (l *lists) grow() {
	old := l.table
	l.table, l.used = make([]listEntry, 2*len(old)), 0
	for _, e := range old {
		if e.v != 0 {
			l.insert(e)
		}
	}
}

func (l *lists) clear() {
	if l.used > 0 {
		clear(l.table)
		l.used = 0
	}
}

// listPredictor guesses the next list from the one before it. The steps of a training repeat, and a list whose
// bytes are those of the guess need not be walked and hashed again. A wrong guess costs a comparison.
type listPredictor struct {
	slots  [predictorSlots]predictedList
	last   int32 // slot of the list before
	missed int   // lists that were not predicted, less some for each that was
}

type predictedList struct {
	listKey
	next int32 // slot of the list that followed the last time
	raw  []byte
}

const (
	predictorSlots = 1 << 12
	predictorBytes = 2 << 10 // of a list; longer ones are not learned
	predictorTrial = 1 << 16 // lists that are learned though none is predicted
	predictorPause = 1 << 20 // lists until the next trial
	predictorWorth = 64      // misses that one hit makes up for
)

// predict returns the key and the end of the list whose items begin in b at begin, if it is the one expected.
func (p *listPredictor) predict(b []byte, begin int) (key listKey, end int, ok bool) {
	at := p.slots[p.last].next
	guess := &p.slots[at]
	end = begin + len(guess.raw)
	if len(guess.raw) == 0 || end >= len(b) || b[end] != 'e' || !bytes.Equal(b[begin:end], guess.raw) {
		return listKey{}, 0, false
	}
	p.last, p.missed = at, max(0, p.missed-predictorWorth)
	return guess.listKey, end, true
}

// learn remembers a list that was not predicted.
func (p *listPredictor) learn(raw []byte, key listKey) {
	if p.missed++; p.missed > predictorTrial {
		if p.missed > predictorPause {
			p.missed = 0
		}
		return
	}
	if len(raw) > predictorBytes {
		return
	}
	at := int32(key.hash % predictorSlots)
	slot := &p.slots[at]
	if slot.listKey != key {
		slot.listKey, slot.raw = key, append(slot.raw[:0], raw...)
	}
	p.slots[p.last].next, p.last = at, at
}
