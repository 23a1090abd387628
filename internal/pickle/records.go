package pickle

import "slices"

// Records is a Builder that takes dictionaries of known keys without their keys. Large files are
// millions of dictionaries of a few shapes, written the same way each; those the Decoder reads in
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
	}
	d.shapes = append(d.shapes, s)
	return s.id >= 0
}

// record tries to read the dictionaries that follow, of which the first begins with the next byte.
// It returns false, having changed nothing that counts, where the bytes are of no known shape or
// are not all there. The error is about the byte that it says.
func (d *Decoder) record() (done bool, at int64, err error) {
	in := d.in
	if in.end-in.at < recordRoom {
		in.need(recordRoom)
	}
	s := &d.scan
	s.b = in.buf[in.at:in.end]
	for nth, shape := range d.order {
		s.i = 0
		n := s.rows(shape, d.batch(shape))
		if n == 0 {
			continue
		}
		if nth > 0 { // next time first
			copy(d.order[1:nth+1], d.order[:nth])
			d.order[0] = shape
		}
		made, bad, err := d.hand(shape, n)
		if err != nil {
			return true, in.offset() + int64(s.starts[bad]), err
		}
		in.at += s.i
		return true, in.offset(), d.push(made)
	}
	return false, 0, nil
}

// hand gives the Builder what was understood.
func (d *Decoder) hand(shape *shape, n int) (made Value, bad int, err error) {
	s := &d.scan
	if shape.form.Rows {
		for k := range shape.keys {
			s.cols[k] = s.room[k][:n]
		}
		return d.records.Rows(d, shape.id, s.cols[:len(shape.keys)])
	}
	for k := range shape.keys {
		s.vals[k] = Value(s.room[k][0])
	}
	if made, err = d.records.Record(d, shape.id, s.vals[:len(shape.keys)]); err == nil && s.self > 0 {
		d.remember(s.self-1, made)
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
