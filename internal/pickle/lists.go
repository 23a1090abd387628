package pickle

import (
	"bytes"
	"hash/maphash"
)

// lists remembers which bytes stood for which list, so that a stack that occurs a million times is
// looked up item by item once. It is a cache: full, it starts anew.
type lists struct {
	seed  maphash.Seed
	table []listEntry // open addressing; a power of two
	used  int
	arena []byte
}

type listEntry struct {
	hash uint64
	at   uint32 // in the arena
	size uint32 // 0: free
	v    Value
}

const (
	listTable = 1 << 10
	listArena = 24 << 20 // bytes of lists remembered
)

// find returns what raw stood for, or its hash for add.
func (l *lists) find(raw []byte) (v Value, hash uint64, found bool) {
	if l.table == nil {
		l.seed = maphash.MakeSeed()
		l.table = make([]listEntry, listTable)
	}
	hash = maphash.Bytes(l.seed, raw)
	mask := uint64(len(l.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &l.table[i]
		if e.size == 0 {
			return 0, hash, false
		}
		if e.hash == hash && int(e.size) == len(raw) && bytes.Equal(l.arena[e.at:e.at+e.size], raw) {
			return e.v, hash, true
		}
	}
}

func (l *lists) add(raw []byte, hash uint64, v Value) {
	if len(raw) == 0 {
		return
	}
	if len(l.arena)+len(raw) > listArena {
		l.clear()
	}
	if l.used >= len(l.table)/2 {
		l.grow()
	}
	l.insert(listEntry{hash, uint32(len(l.arena)), uint32(len(raw)), v})
	l.arena = append(l.arena, raw...)
}

func (l *lists) insert(e listEntry) {
	mask := uint64(len(l.table) - 1)
	i := e.hash & mask
	for l.table[i].size != 0 {
		i = (i + 1) & mask
	}
	l.table[i] = e
	l.used++
}

func (l *lists) grow() {
	old := l.table
	l.table, l.used = make([]listEntry, 2*len(old)), 0
	for _, e := range old {
		if e.size != 0 {
			l.insert(e)
		}
	}
}

func (l *lists) clear() {
	if l.used > 0 {
		clear(l.table)
		l.used, l.arena = 0, l.arena[:0]
	}
}
