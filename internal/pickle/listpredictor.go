package pickle

import "bytes"

// listPredictor guesses the next list from the one before it: the steps of a training repeat, and a list whose
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
