package server

import (
	"slices"
	"sort"
)

// message is what viewers are sent of one stretch of a recording: events, encoded. Of one that is not in the recording,
// from and next are the same place.
type message struct {
	from, next int64
	text       []byte
}

// ring keeps the newest messages of a run, for viewers that are a little behind and for those that come back. The
// number of a message never changes.
type ring struct {
	messages []message
	first    int64 // number of the oldest
	start    int64 // the place in the recording where the oldest begins
	bytes    int
}

// ringBytes bounds what is kept: about two minutes of a training with eight ranks.
const ringBytes = 2 << 20

// push adds the newest, and gives up the oldest.
func (r *ring) push(m message) {
	r.messages = append(r.messages, m)
	r.bytes += len(m.text)
	r.shrink(ringBytes)
}

// shrink gives up the oldest beyond so many bytes, but never the newest of all.
func (r *ring) shrink(most int) {
	drop := 0
	for ; r.bytes > most && drop < len(r.messages)-1; drop++ {
		r.start = r.messages[drop].next
		r.bytes -= len(r.messages[drop].text)
		r.messages[drop].text = nil
	}
	r.messages, r.first = r.messages[drop:], r.first+int64(drop)
}

// keepLast gives up all but the newest, and their room.
func (r *ring) keepLast() {
	r.shrink(0)
	r.messages = slices.Clone(r.messages)
}

// skip takes in a stretch of the recording that has nothing for viewers.
func (r *ring) skip(m message) {
	if len(r.messages) == 0 {
		r.start = m.next
	}
}

// restartAt forgets all: what comes next begins at a place of the recording.
func (r *ring) restartAt(at int64) {
	r.first += int64(len(r.messages))
	r.messages, r.start, r.bytes = nil, at, 0
}

// end is the number that the next message gets.
func (r *ring) end() int64 { return r.first + int64(len(r.messages)) }

// since are the messages from a number on, and whether all of them are still there.
func (r *ring) since(number int64) ([]message, bool) {
	if number < r.first {
		return nil, false
	}
	return r.messages[number-r.first:], true
}

// behind is the number of the first message behind a place of the recording, and whether all that came since is
// still there.
func (r *ring) behind(place int64) (int64, bool) {
	at := sort.Search(len(r.messages), func(i int) bool { return r.messages[i].next > place })
	last := r.start
	if n := len(r.messages); n > 0 {
		last = r.messages[n-1].next
	}
	return r.first + int64(at), place >= r.start && place <= last
}
