package pickle

import "bytes"

// echoes are lists met lately and what followed each: steps of a training repeat, and bytes that are those of
// a list again need not be walked and hashed again. It is a cache, and a guess that is wrong costs a comparison.
type echoes struct {
	of   [echoSlots]echo
	last int32 // the list before
	odd  int   // lists that were not foretold, less some for each that was
}

type echo struct {
	listKey
	next int32 // what followed the last time
	raw  []byte
}

const (
	echoSlots = 1 << 12
	echoBytes = 2 << 10 // of a list; longer ones are not learned
	echoTrial = 1 << 16 // lists that are learned though none is foretold
	echoPause = 1 << 20 // lists until the next trial
	echoWorth = 64      // lists not foretold that one that is makes up for
)

// foretold returns the key and the end of the list whose items begin in b at begin, if it is the one expected.
func (e *echoes) foretold(b []byte, begin int) (key listKey, end int, ok bool) {
	at := e.of[e.last].next
	x := &e.of[at]
	end = begin + len(x.raw)
	if len(x.raw) == 0 || end >= len(b) || b[end] != 'e' || !bytes.Equal(b[begin:end], x.raw) {
		return listKey{}, 0, false
	}
	e.last, e.odd = at, max(0, e.odd-echoWorth)
	return x.listKey, end, true
}

// learn takes note of a list that was not foretold.
func (e *echoes) learn(raw []byte, key listKey) {
	if e.odd++; e.odd > echoTrial {
		if e.odd > echoPause {
			e.odd = 0
		}
		return
	}
	if len(raw) > echoBytes {
		return
	}
	at := int32(key.hash % echoSlots)
	x := &e.of[at]
	if x.listKey != key {
		x.listKey, x.raw = key, append(x.raw[:0], raw...)
	}
	e.of[e.last].next, e.last = at, at
}
