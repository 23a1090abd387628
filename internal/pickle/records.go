package pickle

import (
	"encoding/binary"
	"slices"
)

// Records is a Builder that takes dictionaries of known keys without their keys. Large files are
// millions of dictionaries of a few shapes, written the same way each. Those the Decoder reads in
// one go, straight from the bytes, and everything else as ever.
type Records interface {
	Builder

	// Shape is asked once about each sequence of keys: how are dictionaries of these keys taken?
	Shape(d *Decoder, keys []Value) Form

	// Record gets the values of a dictionary in the order of the keys that Shape was asked about;
	// shape counts those that were taken, from 0. The slice is valid only during the call.
	Record(d *Decoder, shape int, values []Value) (Value, error)

	// Rows gets dictionaries that follow each other in a list, as columns of equal length in the
	// order of the keys, and returns one Value for them all. On an error, bad is the row that it
	// is about. The columns are valid only during the call.
	Rows(d *Decoder, shape int, columns []Column) (made Value, bad int, err error)

	// Pure says whether a list that List made v of, met again with the same items, is v again.
	Pure(v Value) bool
}

// Form says how dictionaries of a shape are taken. The zero Form: not at all.
type Form struct {
	Take bool

	// Rows: many at a time, by Records.Rows. Such a dictionary cannot be referred to again; that is
	// an error, and remembering it costs nothing.
	Rows bool

	// Integers are the keys whose Column holds 64-bit integers rather than Values; dictionaries with
	// anything else there come the long way.
	Integers []bool
}

// Column holds the values of one key: Values, or integers as 64 bits where the Form says so.
type Column []uint64

// shape is a sequence of keys that the Builder was asked about.
type shape struct {
	keys []Value
	raw  []rawKey // how the keys were written the last time
	id   int      // what Record calls it; -1: the Builder does not take it
	form Form

	unresolved []int // the keys whose columns hold Values
}

// rawKey is a reference to a key as bytes, the first in the lowest byte; a zero size is not known.
type rawKey struct {
	bits uint64
	mask uint64
	size int
}

const (
	maxShapes  = 32
	maxKeys    = 24
	maxPuts    = 2*maxKeys + 2
	batchRows  = 256
	recordRoom = 64 << 10 // bytes that should be at hand before records are tried
	valueRoom  = 48       // a key with its value, texts and lists aside
)

// takes asks the Builder about the keys of a dictionary that came the long way, once for each
// sequence of keys.
func (d *Decoder) takes(pairs []Value) bool {
	if len(pairs) < 4 || len(pairs) > 2*maxKeys {
		return false
	}
	var keys [maxKeys]Value
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].Tag() != Str {
			return false
		}
		keys[i/2] = pairs[i]
	}
	n := len(pairs) / 2
	for _, s := range d.shapes {
		if slices.Equal(s.keys, keys[:n]) {
			return s.id >= 0
		}
	}
	if len(d.shapes) == maxShapes {
		return false
	}
	s := &shape{keys: slices.Clone(keys[:n]), raw: make([]rawKey, n), id: -1}
	if s.form = d.records.Shape(d, s.keys); s.form.Take {
		s.id = d.taken
		d.taken++
		d.order = append(d.order, s)
		if s.form.Integers == nil {
			s.form.Integers = make([]bool, n)
		}
		for k, integers := range s.form.Integers {
			if !integers {
				s.unresolved = append(s.unresolved, k)
			}
		}
		d.news = true
	}
	d.shapes = append(d.shapes, s)
	return s.id >= 0
}

// learn takes the reference that comes next for how a key is written, if it means that key: until a memo
// entry is replaced (see forget).
func (d *Decoder) learn(k int) bool {
	s := &d.scan
	at, size := s.i, 5
	var id uint64
	switch s.b[at] {
	case 'h':
		id, size = uint64(s.b[at+1]), 2
	case 'j':
		id = uint64(binary.LittleEndian.Uint32(s.b[at+1:]))
	default:
		return false
	}
	if d.memo.get(id) != s.r.shape.keys[k] {
		return false
	}
	mask := uint64(1)<<(8*size) - 1
	s.r.keys[k] = rawKey{binary.LittleEndian.Uint64(s.b[at:]) & mask, mask, size}
	s.i = at + size
	d.news = true
	return true
}

// forget drops what bytes meant: a memo entry means something else now.
func (d *Decoder) forget() {
	d.lists = lists{}
	for _, s := range d.order {
		clear(s.raw)
	}
	d.generation++
	d.news = true
}

// record tries to read the dictionaries that follow, of which the first begins with the next byte.
// It returns false, having changed nothing that counts, where the bytes are of no known shape or
// are not all there. The error is about the byte that it says.
func (d *Decoder) record() (done bool, at int64, err error) {
	in := d.in
	if in.ahead != nil && d.news {
		in.ahead.publish(d.order, d.generation)
		d.news = false
	}
	if r, row := in.rowAhead(); r != nil && r.generation == d.generation {
		return d.takeRows(r, row)
	}
	if in.end-in.at < recordRoom {
		in.need(recordRoom)
	}
	s, r := &d.scan, &d.run
	s.b, r.base, r.generation = in.buf[in.at:in.end], in.offset(), d.generation
	for nth, shape := range d.order {
		s.i = 0
		if s.rows(r, shape, shape.raw, d.batch(shape)); r.n == 0 {
			continue
		}
		if done, at, err = d.takeRows(r, 0); !done {
			continue
		}
		copy(d.order[1:nth+1], d.order[:nth]) // next time first
		d.order[0] = shape
		return done, at, err
	}
	return false, 0, nil
}

// takeRows hands the Builder the rows of a run, from one on.
func (d *Decoder) takeRows(r *run, from int) (done bool, at int64, err error) {
	n := d.resolve(r, from, d.batch(r.shape))
	if n == 0 {
		return false, 0, nil
	}
	made, bad, err := d.hand(r, from, n)
	if err != nil {
		return true, r.base + int64(r.starts[from+bad]), err
	}
	d.in.at += int(r.starts[from+n] - r.starts[from])
	return true, d.in.offset(), d.push(made)
}

// hand gives the Builder what was understood.
func (d *Decoder) hand(r *run, from, n int) (made Value, bad int, err error) {
	keys := len(r.shape.keys)
	if r.shape.form.Rows {
		for k := range keys {
			d.columns[k] = r.columns[k][from : from+n]
		}
		return d.records.Rows(d, r.shape.id, d.columns[:keys])
	}
	for k := range keys {
		d.values[k] = Value(r.columns[k][from])
	}
	if made, err = d.records.Record(d, r.shape.id, d.values[:keys]); err == nil && d.self > 0 {
		d.remember(d.self-1, made)
	}
	return made, 0, err
}

// batch is how many records may become one Value: many only as items of a list.
func (d *Decoder) batch(shape *shape) int {
	if !shape.form.Rows || len(d.marks) == 0 {
		return 1
	}
	at := d.marks[len(d.marks)-1] - 1
	if at < 0 || d.stack[at].Tag() != open || d.slots[d.stack[at].Payload()].dict {
		return 1
	}
	return batchRows
}
