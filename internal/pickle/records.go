package pickle

import (
	"encoding/binary"
	"slices"
)

// Records is a Builder that takes dictionaries of known keys without their keys. Large files are
// millions of dictionaries of a few shapes, written the same way each; those the Decoder reads in
// one go, straight from the bytes, and everything else as ever.
type Records interface {
	Builder

	// Shape is asked once about each sequence of keys. It returns whether dictionaries of these keys
	// go to Record, and whether one may be referred to again (else that is an error, and their
	// memo entries cost nothing).
	Shape(d *Decoder, keys []Value) (take, again bool)

	// Record gets the values of a dictionary in the order of the keys that Shape was asked about;
	// shape counts those that were taken, from 0. The slice is valid only during the call.
	Record(d *Decoder, shape int, values []Value) (Value, error)

	// Pure says whether a list that List made v of, met again with the same items, is v again.
	Pure(v Value) bool
}

// shape is a sequence of keys that the Builder was asked about.
type shape struct {
	keys  []Value
	raw   []rawKey // how the keys were written the last time
	id    int      // what Record calls it; -1: the Builder does not take it
	again bool
}

// rawKey is a reference to a key as bytes, the first in the lowest byte; a zero size is not known.
type rawKey struct {
	bits uint64
	mask uint64
	size int
}

const (
	maxShapes   = 32
	maxKeys     = 24
	maxPuts     = 2*maxKeys + 2
	recordRoom  = 64 << 10 // bytes that should be at hand before a record is tried
	operandRoom = 16       // an opcode with its operand, short strings aside
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
	if take, again := d.records.Shape(d, s.keys); take {
		s.id, s.again = d.taken, again
		d.taken++
		d.order = append(d.order, s)
	}
	d.shapes = append(d.shapes, s)
	return s.id >= 0
}

// pending is a memo entry to be made once a whole record is understood.
type pending struct {
	id uint64
	v  Value
}

// scan is a look at the bytes ahead that changes nothing until it has understood them.
type scan struct {
	d     *Decoder
	b     []byte
	i     int
	puts  [maxPuts]pending
	nputs int
	ops   int64
	vals  [maxKeys]Value
}

// record tries to read a dictionary whose opcode '}' is the next byte. It returns false, having
// changed nothing that counts, where the bytes are of no known shape or are not all there.
func (d *Decoder) record() (bool, error) {
	in := d.in
	if in.end-in.at < recordRoom {
		in.need(recordRoom)
	}
	s := &d.scan
	s.b = in.buf[in.at:in.end]
	for nth, shape := range d.order {
		s.i, s.nputs, s.ops = 1, 0, 2
		if !s.dict(shape) {
			continue
		}
		if nth > 0 { // next time first
			copy(d.order[1:nth+1], d.order[:nth])
			d.order[0] = shape
		}
		return true, d.accept(shape)
	}
	return false, nil
}

// accept takes over what the scan has understood.
func (d *Decoder) accept(shape *shape) error {
	s := &d.scan
	made, err := d.records.Record(d, shape.id, s.vals[:len(shape.keys)])
	if err != nil {
		return err
	}
	d.pushed += s.ops
	for _, p := range s.puts[:s.nputs] {
		v := p.v
		if v.Tag() == mark { // the dictionary itself
			v = made
			if !shape.again {
				v = Value(spent)
			}
		}
		d.remember(p.id, v)
	}
	d.in.at += s.i
	return d.push(made)
}

// dict reads: put? ( (key value)* u
func (s *scan) dict(shape *shape) bool {
	if !s.put(unset) || s.i+operandRoom > len(s.b) || s.b[s.i] != '(' {
		return false
	}
	s.i++
	for k := range shape.keys {
		if s.i+operandRoom > len(s.b) {
			return false
		}
		raw := &shape.raw[k]
		if bits := binary.LittleEndian.Uint64(s.b[s.i:]); raw.size != 0 && bits&raw.mask == raw.bits {
			s.i += raw.size
		} else if !s.key(shape.keys[k], raw) {
			return false
		}
		if !s.value(&s.vals[k]) {
			return false
		}
	}
	if s.i >= len(s.b) || s.b[s.i] != 'u' {
		return false
	}
	s.i++
	s.ops += int64(2 * len(shape.keys))
	return true
}

// key reads a reference to a key, and remembers its bytes. They mean the key until a memo entry is
// replaced (see forget).
func (s *scan) key(key Value, raw *rawKey) bool {
	at, size := s.i, 5
	switch s.b[at] {
	case 'h':
		size = 2
	case 'j':
	default:
		return false
	}
	if s.reference() != key {
		return false
	}
	mask := uint64(1)<<(8*size) - 1
	*raw = rawKey{binary.LittleEndian.Uint64(s.b[at:]) & mask, mask, size}
	return true
}

// forget drops what bytes meant: a memo entry means something else now.
func (d *Decoder) forget() {
	d.lists.clear()
	for _, s := range d.order {
		clear(s.raw)
	}
}

// put reads BINPUT, LONG_BINPUT or MEMOIZE, if one is next, to be done for v at the end.
func (s *scan) put(v Value) bool {
	if s.i+operandRoom > len(s.b) {
		return false
	}
	var id uint64
	switch s.b[s.i] {
	case 0x94:
		id = s.d.memo.count
		for _, p := range s.puts[:s.nputs] {
			id = max(id, p.id+1)
		}
		s.i++
	case 'r':
		id = uint64(binary.LittleEndian.Uint32(s.b[s.i+1:]))
		s.i += 5
	case 'q':
		id = uint64(s.b[s.i+1])
		s.i += 2
	default:
		return true
	}
	if s.nputs == maxPuts || !s.d.mayRemember(id) {
		return false
	}
	s.puts[s.nputs] = pending{id, v}
	s.nputs++
	return true
}

// value reads one value of a record.
func (s *scan) value(to *Value) bool {
	if s.i+operandRoom > len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case 'h', 'j':
		*to = s.reference()
		return *to != unset
	case 'K', 'M', 'J', 0x8a:
		return s.integer(to) && (!s.isInteger() || s.pair(to))
	case 'N':
		*to = tagged(None, 0)
		s.i++
		return true
	case 0x88, 0x89:
		*to = tagged(Bool, uint64(0x89-s.b[s.i]))
		s.i++
		return true
	case 0x8c, 'X':
		return s.text(to)
	case ']':
		return s.list(to)
	}
	return false
}

// reference returns unset for what only the machine can resolve.
func (s *scan) reference() Value {
	var v Value
	if s.b[s.i] == 'h' {
		v = s.d.memo.get(uint64(s.b[s.i+1]))
		s.i += 2
	} else {
		v = s.d.memo.get(uint64(binary.LittleEndian.Uint32(s.b[s.i+1:])))
		s.i += 5
	}
	if tag := v.Tag(); tag == open || tag == spent {
		return unset
	}
	return v
}

func (s *scan) isInteger() bool {
	if s.i+operandRoom > len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case 'K', 'M', 'J', 0x8a:
		return true
	}
	return false
}

func (s *scan) integer(to *Value) bool {
	b := s.b[s.i : s.i+operandRoom]
	var v int64
	switch b[0] {
	case 'K':
		v = int64(b[1])
		s.i += 2
	case 'M':
		v = int64(binary.LittleEndian.Uint16(b[1:]))
		s.i += 3
	case 'J':
		v = int64(int32(binary.LittleEndian.Uint32(b[1:])))
		s.i += 5
	default: // LONG1, little-endian two's complement
		n := int(b[1])
		if n == 0 || n > 9 || n == 9 && b[10] != 0 {
			return false
		}
		v = int64(binary.LittleEndian.Uint64(b[2:]))
		if n < 8 {
			v = v << (64 - 8*n) >> (64 - 8*n)
		}
		s.i += 2 + n
	}
	*to = s.d.intValue(v)
	return true
}

// pair reads the rest of a tuple of two integers.
func (s *scan) pair(first *Value) bool {
	values := [2]Value{*first}
	if !s.integer(&values[1]) || s.i+operandRoom > len(s.b) || s.b[s.i] != 0x86 {
		return false
	}
	s.i++
	made, err := s.d.build.Tuple(s.d, values[:])
	*first = made
	s.ops += 2
	return err == nil && s.put(made)
}

func (s *scan) text(to *Value) bool {
	n, at := int(s.b[s.i+1]), s.i+2
	if s.b[s.i] == 'X' {
		n, at = int(binary.LittleEndian.Uint32(s.b[s.i+1:])), s.i+5
	}
	if n > s.d.limits.StringBytes || at+n > len(s.b) {
		return false
	}
	v, err := s.d.intern(s.b[at : at+n])
	*to, s.i = v, at+n
	return err == nil && s.put(v)
}

// list reads: ] put? ( reference* e, or: ] put? reference a, or: ] put?
func (s *scan) list(to *Value) bool {
	s.i++
	entry := s.nputs
	if !s.put(unset) || s.i+operandRoom > len(s.b) {
		return false
	}
	var ok bool
	switch s.b[s.i] {
	case '(':
		s.i++
		ok = s.references(to)
	case 'h', 'j':
		before := s.i
		if v := s.reference(); v != unset && s.b[s.i] == 'a' {
			s.i++
			*to, ok = s.make([]Value{v})
			break
		}
		s.i = before
		*to, ok = s.make(nil)
	default:
		*to, ok = s.make(nil)
	}
	if entry < s.nputs {
		s.puts[entry].v = *to
	}
	return ok
}

func (s *scan) make(items []Value) (Value, bool) {
	v, err := s.d.build.List(s.d, items)
	return v, err == nil && s.d.records.Pure(v)
}

// references reads the items of a list that holds nothing but things met before. Its bytes are
// looked up as they are first.
func (s *scan) references(to *Value) bool {
	start, i, b := s.i, s.i, s.b
	n := 0
	for i+5 < len(b) {
		if op := b[i]; op == 'j' {
			i += 5
		} else if op == 'h' {
			i += 2
		} else {
			break
		}
		n++
	}
	if i+5 >= len(b) || b[i] != 'e' {
		return false
	}
	s.i = i + 1
	s.ops += int64(n)
	raw := b[start:i]
	v, key, found := s.d.lists.find(raw)
	if !found {
		var ok bool
		if v, ok = s.resolve(raw); !ok {
			return false
		}
		s.d.lists.add(key, v)
	}
	*to = v
	return true
}

// resolve makes the list of references that raw holds.
func (s *scan) resolve(raw []byte) (Value, bool) {
	items := s.d.scratch[:0]
	for i := 0; i < len(raw); {
		var v Value
		if raw[i] == 'h' {
			v = s.d.memo.get(uint64(raw[i+1]))
			i += 2
		} else {
			v = s.d.memo.get(uint64(binary.LittleEndian.Uint32(raw[i+1:])))
			i += 5
		}
		if tag := v.Tag(); tag == open || tag == spent || tag == mark {
			return 0, false
		}
		items = append(items, v)
	}
	s.d.scratch = items
	return s.make(items)
}
