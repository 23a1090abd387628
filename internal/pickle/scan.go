package pickle

import "encoding/binary"

// pending is a memo entry to be made once a whole record is understood.
type pending struct {
	id uint64
	v  Value
}

// scan is a look at the bytes ahead that changes nothing until it has understood them.
type scan struct {
	d      *Decoder
	b      []byte
	i      int
	next   uint64 // the memo entry that MEMOIZE would make
	self   uint64 // 1 + the entry that names the dictionary itself; 0: none
	puts   [maxPuts]pending
	nputs  int
	ops    int64
	starts [batchRows]int // where each row begins in b
	room   [maxKeys][batchRows]uint64
	cols   [maxKeys]Column
	vals   [maxKeys]Value
}

// rows reads up to most dictionaries of a shape that follow each other, and accepts their memo
// entries. Where it returns, s.i is behind the last.
func (s *scan) rows(shape *shape, most int) int {
	for n := range most {
		s.starts[n] = s.i
		if s.d.memo.count+maxPuts > uint64(s.d.limits.Memo) {
			return n
		}
		s.nputs, s.self, s.next, s.ops = 0, 0, s.d.memo.count, int64(2*len(shape.keys)+2)
		if !s.dict(shape, n) {
			s.i = s.starts[n]
			return n
		}
		d := s.d
		d.pushed += s.ops
		if s.self > 0 && shape.form.Rows {
			d.spend(s.self - 1)
		}
		for _, p := range s.puts[:s.nputs] {
			d.remember(p.id, p.v)
		}
	}
	return most
}

// dict reads: } put? ( (key value)* u
func (s *scan) dict(shape *shape, n int) bool {
	b, i := s.b, s.i
	if i+valueRoom > len(b) || b[i] != '}' {
		return false
	}
	if i++; b[i] == 0x94 {
		s.next++
		s.self = s.next
		i++
	} else if b[i] != '(' {
		if s.i = i; !s.put(unset) || s.nputs == 0 {
			return false
		}
		i, s.nputs = s.i, 0
		s.self = s.puts[0].id + 1
	}
	if b[i] != '(' {
		return false
	}
	i++
	for k := range shape.raw {
		if i+valueRoom > len(b) {
			return false
		}
		raw := &shape.raw[k]
		if bits := binary.LittleEndian.Uint64(b[i:]); raw.size != 0 && bits&raw.mask == raw.bits {
			i += raw.size
		} else {
			if s.i = i; !s.key(shape.keys[k], raw) {
				return false
			}
			i = s.i
		}
		to := &s.room[k][n]
		switch op := b[i]; {
		case shape.form.Integers[k]:
			v, size := integer(b[i : i+integerRoom])
			if size == 0 {
				return false
			}
			i += size
			*to = uint64(v)
		case op == 'j':
			v := s.d.memo.get(uint64(binary.LittleEndian.Uint32(b[i+1:])))
			if tag := v.Tag(); tag == open || tag == mark {
				return false
			}
			i += 5
			*to = uint64(v)
		default:
			s.i = i
			if !s.value((*Value)(to)) {
				return false
			}
			i = s.i
		}
	}
	if i >= len(b) || b[i] != 'u' {
		return false
	}
	s.i = i + 1
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
	if s.i+valueRoom > len(s.b) {
		return false
	}
	var id uint64
	switch s.b[s.i] {
	case 0x94:
		id = s.next
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
	s.next = max(s.next, id+1)
	s.puts[s.nputs] = pending{id, v}
	s.nputs++
	return true
}

// value reads one value of a record.
func (s *scan) value(to *Value) bool {
	if s.i+valueRoom > len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case 'h', 'j':
		*to = s.reference()
		return *to != unset
	case 'K', 'M', 'J', 0x8a:
		return s.number(to)
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
	if v.Tag() == open {
		return unset
	}
	return v
}

const integerRoom = 16

// integer reads an integer of at most 64 bits, unsigned ones wrapped; size 0: there is none.
func integer(b []byte) (v int64, size int) {
	_ = b[integerRoom-1]
	switch b[0] {
	case 'J':
		return int64(int32(binary.LittleEndian.Uint32(b[1:]))), 5
	case 0x8a: // LONG1, little-endian two's complement
		n := int(b[1])
		v = int64(binary.LittleEndian.Uint64(b[2:]))
		if n == 0 || n > 8 {
			if n == 9 && b[10] == 0 {
				return v, 11
			}
			return 0, 0
		}
		shift := uint(64-8*n) & 63
		return v << shift >> shift, 2 + n
	case 'K':
		return int64(b[1]), 2
	case 'M':
		return int64(binary.LittleEndian.Uint16(b[1:])), 3
	}
	return 0, 0
}

// number reads an integer, or a tuple of two.
func (s *scan) number(to *Value) bool {
	v, size := integer(s.b[s.i : s.i+integerRoom])
	if size == 0 {
		return false
	}
	s.i += size
	second, more := integer(s.b[s.i : s.i+integerRoom])
	if more == 0 {
		*to = s.d.intValue(v)
		return true
	}
	if s.i += more; s.b[s.i] != 0x86 {
		return false
	}
	s.i++
	values := [2]Value{s.d.intValue(v), s.d.intValue(second)}
	made, err := s.d.build.Tuple(s.d, values[:])
	*to = made
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
	if !s.put(unset) || s.i+valueRoom > len(s.b) {
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
	i, b := s.i, s.b[:max(len(s.b)-5, 0)]
	for {
		for i < len(b) && b[i] == 'j' {
			i += 5
		}
		if i >= len(b) || b[i] != 'h' {
			break
		}
		i += 2
	}
	if i >= len(b) || b[i] != 'e' {
		return false
	}
	raw := b[s.i:i]
	s.i = i + 1
	s.ops += int64(len(raw) / 2)
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
		if tag := v.Tag(); tag == open || tag == mark {
			return 0, false
		}
		items = append(items, v)
	}
	s.d.scratch = items
	return s.make(items)
}
