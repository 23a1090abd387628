package pickle

import (
	"encoding/binary"
	"hash/maphash"
)

// run is dictionaries of one shape that follow each other, as their bytes have them: integers are read,
// and nothing is looked up. What it means, resolve says.
type run struct {
	shape      *shape
	keys       []rawKey // how the keys were written
	generation uint32   // of the memo entries that the keys refer to
	b          []byte   // that it was read from, from base in the stream
	base       int64

	n       int
	starts  [batchRows + 1]int32 // where each row begins in b; the last is the end
	ops     [batchRows]int32     // values that the machine would have pushed
	until   [batchRows]int32     // where the puts of each row end
	puts    []put
	lists   []listBytes
	pairs   [][2]int64
	columns [][batchRows]uint64 // integers where the form says so, else Values, of which some are yet to be looked up
}

// put is a memo entry to be made once a whole row is understood.
type put struct {
	id     uint32
	column uint8
	next   bool // the entry that MEMOIZE would make, rather than id
}

const itself = maxKeys // as a put's column: the dictionary

// listBytes is a list that holds nothing but things met before.
type listBytes struct {
	listKey
	v           uint32 // the Value that they stood for before; zero: not known
	begin, size int32  // its items in b
}

// Tags of what is to be looked up yet; they occur only in a run.
const (
	entry  = elsewhere + 1 + iota // memo entry of that number
	listed                        // index of lists
	paired                        // index of pairs
	spelt                         // a text: where it begins in b, and below that 32 bits of its length
)

// scan reads rows from bytes. It touches neither memo nor Builder, so that it may run on another core.
type scan struct {
	b     []byte
	i     int
	ops   int
	r     *run
	seed  maphash.Seed
	lists listPredictor

	// learn says whether the bytes at i refer to a key, and remembers them in keys. Where it is nil, a key is
	// what is written as in keys.
	learn func(k int) bool
}

// rows reads up to most rows of a shape from i on; afterwards i is behind the last that was understood.
func (s *scan) rows(r *run, shape *shape, keys []rawKey, most int) {
	r.shape, r.keys, r.b, r.n = shape, keys, s.b, 0
	r.puts, r.lists, r.pairs = r.puts[:0], r.lists[:0], r.pairs[:0]
	for len(r.columns) < len(keys) {
		r.columns = append(r.columns, [batchRows]uint64{})
	}
	s.r = r
	for r.n < most {
		start, puts, lists, pairs := s.i, len(r.puts), len(r.lists), len(r.pairs)
		if s.ops = 2*len(keys) + 2; !s.dict(r.n) {
			s.i, r.puts, r.lists, r.pairs = start, r.puts[:puts], r.lists[:lists], r.pairs[:pairs]
			break
		}
		r.starts[r.n], r.until[r.n], r.ops[r.n] = int32(start), int32(len(r.puts)), int32(s.ops)
		r.n++
	}
	r.starts[r.n] = int32(s.i)
}

// dict reads: } put? ( (key value)* u
func (s *scan) dict(n int) bool {
	r, b, i := s.r, s.b, s.i
	if i+valueRoom > len(b) || b[i] != '}' {
		return false
	}
	if i++; b[i] != '(' {
		if s.i = i; !s.scanMemo(itself) || b[s.i] != '(' {
			return false
		}
		i = s.i
	}
	i++
	columns, integers := r.columns[:len(r.keys)], r.shape.form.Integers[:len(r.keys)]
	for k := range r.keys {
		if i+valueRoom > len(b) {
			return false
		}
		raw := &r.keys[k]
		if bits := binary.LittleEndian.Uint64(b[i:]); raw.size != 0 && bits&raw.mask == raw.bits {
			i += raw.size
		} else {
			if s.i = i; s.learn == nil || !s.learn(k) {
				return false
			}
			i = s.i
		}
		to := &columns[k][n]
		switch op := b[i]; {
		case integers[k]:
			v, size := integer(b[i : i+integerRoom])
			if size == 0 {
				return false
			}
			i += size
			*to = uint64(v)
		case op == 'j':
			*to = uint64(binary.LittleEndian.Uint32(b[i+1:]))<<4 | uint64(entry)
			i += 5
		case op == 'h':
			*to = uint64(b[i+1])<<4 | uint64(entry)
			i += 2
		default:
			s.i = i
			if !s.value(k, to) {
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

// scanMemo reads BINPUT, LONG_BINPUT or MEMOIZE, if one is next.
func (s *scan) scanMemo(column int) bool {
	if s.i+valueRoom > len(s.b) {
		return false
	}
	p := put{column: uint8(column)}
	switch s.b[s.i] {
	case 0x94:
		p.next = true
		s.i++
	case 'r':
		p.id = binary.LittleEndian.Uint32(s.b[s.i+1:])
		s.i += 5
	case 'q':
		p.id = uint32(s.b[s.i+1])
		s.i += 2
	default:
		return true
	}
	s.r.puts = append(s.r.puts, p)
	return true
}

// value reads a value that is not a reference.
func (s *scan) value(k int, to *uint64) bool {
	switch s.b[s.i] {
	case ']':
		return s.list(k, to)
	case 'K', 'M', 'J', 0x8a:
		return s.number(k, to)
	case 'N':
		*to = uint64(tagged(None, 0))
		s.i++
		return true
	case 0x88, 0x89:
		*to = uint64(tagged(Bool, uint64(0x89-s.b[s.i])))
		s.i++
		return true
	case 0x8c, 'X':
		return s.text(k, to)
	}
	return false
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

// number reads an integer that a Value holds, or a tuple of two of any size.
func (s *scan) number(k int, to *uint64) bool {
	v, size := integer(s.b[s.i : s.i+integerRoom])
	if size == 0 {
		return false
	}
	s.i += size
	second, more := integer(s.b[s.i : s.i+integerRoom])
	if more == 0 {
		*to = uint64(v)<<4 | uint64(Int)
		return short(v)
	}
	if s.i += more; s.b[s.i] != 0x86 {
		return false
	}
	s.i++
	s.ops += 2
	*to = uint64(len(s.r.pairs))<<4 | uint64(paired)
	s.r.pairs = append(s.r.pairs, [2]int64{v, second})
	return s.scanMemo(k)
}

func (s *scan) text(k int, to *uint64) bool {
	n, at := int(s.b[s.i+1]), s.i+2
	if s.b[s.i] == 'X' {
		n, at = int(binary.LittleEndian.Uint32(s.b[s.i+1:])), s.i+5
	}
	if at+n > len(s.b) || at >= 1<<28 {
		return false
	}
	*to = (uint64(at)<<32|uint64(n))<<4 | uint64(spelt)
	s.i = at + n
	return s.scanMemo(k)
}

// list reads: ] put? ( reference* e, or: ] put? reference a, or: ] put?
func (s *scan) list(k int, to *uint64) bool {
	if s.i++; !s.scanMemo(k) || s.i+valueRoom > len(s.b) {
		return false
	}
	b, i := s.b, s.i
	begin, end := i, i
	switch b[i] {
	case '(':
		return s.items(to, i+1)
	case 'h', 'j':
		size := 2
		if b[i] == 'j' {
			size = 5
		}
		if b[i+size] == 'a' {
			end = i + size
			i = end + 1
		}
	}
	s.i = i
	s.listed(to, keyOf(s.seed, b[begin:end]), begin, end)
	return true
}

// items reads: reference* e
func (s *scan) items(to *uint64, begin int) bool {
	key, end, ok := s.lists.predict(s.b, begin)
	if !ok {
		if end = references(s.b, begin); end < 0 {
			return false
		}
		raw := s.b[begin:end]
		key = keyOf(s.seed, raw)
		s.lists.learn(raw, key)
	}
	s.i = end + 1
	s.ops += (end - begin) / 2
	s.listed(to, key, begin, end)
	return true
}

func (s *scan) listed(to *uint64, key listKey, begin, end int) {
	*to = uint64(len(s.r.lists))<<4 | uint64(listed)
	s.r.lists = append(s.r.lists, listBytes{key, 0, int32(begin), int32(end - begin)})
}

// references returns where those that begin at i end, if APPENDS is there, and not too far away; else -1.
func references(b []byte, i int) int {
	b = b[:max(min(len(b)-5, i+recordRoom), 0)]
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
		return -1
	}
	return i
}
