package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"hightide/internal/interned"
)

// Decoder is the state of one decoding; a Builder uses it to look up strings and numbers.
type Decoder struct {
	// Trailing says that data followed the end of the pickle, which is at Offset; it was not read. Another says that it
	// begins as a pickle does.
	Trailing, Another bool

	in      *input
	build   Builder
	limits  Limits
	stack   []Value
	marks   []int
	memo    memo
	slots   []slot
	free    []uint32
	waiting int64 // values in open slots

	texts   texts          // distinct strings
	index   interned.Index // of texts
	floats  []float64
	wide    []int64
	pushed  int64
	spent   int64 // bytes that are kept to the end
	allowed int64 // of them, when it was last asked how long the file is
	stored  Stored

	records Records // build, if it is one
	merge   Merger  // likewise
	shapes  []*shape
	order   []*shape // those that records takes, the last one met first
	taken   int
	lists   lists
	scratch []Value

	scan       scan
	run        run    // of what is read when it is come upon, not ahead
	self       uint64 // 1 + the memo entry of a record that is taken alone; 0: none
	generation uint32 // counts how often bytes changed their meaning
	news       bool   // of shapes and keys, for those who read ahead
	columns    [maxKeys]Column
	values     [maxKeys]Value
}

// slot holds a container that its parent has not taken yet.
type slot struct {
	items []Value
	at    int   // where it lies on the stack
	memo  int64 // the memo entry that names it, -1: none
	depth int
	dict  bool
}

// Decode reads one pickle from r and returns its outermost value, with the Decoder to look into
// it. Errors are *Error. The value is never an open container: that too went through build.
func Decode(r io.Reader, build Builder, limits Limits) (Value, *Decoder, error) {
	seed := maphash.MakeSeed()
	d := &Decoder{in: newInput(r, seed), build: build, limits: limits.orDefaults()}
	d.stored, _ = r.(Stored)
	defer d.in.close()
	d.records, _ = build.(Records)
	d.merge, _ = build.(Merger)
	d.scan = scan{seed: seed, learn: d.learn}
	for {
		if d.in.at == d.in.end && !d.in.need(1) {
			return 0, nil, &Error{Offset: d.in.offset(), Err: d.in.short()}
		}
		start, code := d.in.offset(), d.in.buf[d.in.at]
		if code == '}' && len(d.order) > 0 {
			done, at, err := d.record()
			if err != nil {
				return 0, nil, &Error{Offset: at, Op: code, Err: err}
			}
			if done {
				continue
			}
		}
		d.in.at++
		if code == '.' {
			return d.stop(start)
		}
		if err := d.step(code); err != nil {
			return 0, nil, &Error{Offset: start, Op: code, Err: err}
		}
	}
}

func (d *Decoder) stop(start int64) (Value, *Decoder, error) {
	v, err := d.pop()
	if err == nil && len(d.stack) > 0 {
		err = fmt.Errorf("%w: %d values left over", ErrMalformed, len(d.stack))
	}
	if err == nil {
		v, err = d.closed(v)
	}
	if err != nil {
		return 0, nil, &Error{Offset: start, Op: '.', Err: err}
	}
	d.Trailing = d.in.need(1)
	d.Another = d.in.need(2) && d.in.buf[d.in.at] == 0x80 && d.in.buf[d.in.at+1] <= 5
	return v, d, nil
}

// step runs one opcode. The order of the cases follows how often real files have them.
func (d *Decoder) step(code byte) error {
	switch code {
	case 'h': // BINGET
		return d.get(d.in.uint(1))
	case 'j': // LONG_BINGET
		return d.get(d.in.uint(4))
	case 0x94: // MEMOIZE
		return d.memoize(d.memo.count, nil)
	case 'K': // BININT1
		return d.number(d.in.uint(1))
	case 'M': // BININT2
		return d.number(d.in.uint(2))
	case 'J': // BININT
		v, err := d.in.uint(4)
		return d.number(uint64(int64(int32(v))), err)
	case 0x8a: // LONG1
		return d.long(d.in.uint(1))
	case '}':
		return d.pushOpen(true)
	case ']':
		return d.pushOpen(false)
	case '(':
		d.marks = append(d.marks, len(d.stack))
		return d.push(tagged(mark, 0))
	case 'u': // SETITEMS
		return d.extend(true)
	case 'e': // APPENDS
		return d.extend(false)
	case 0x8c: // SHORT_BINUNICODE
		return d.text(d.in.uint(1))
	case 'X', 'T': // BINUNICODE, BINSTRING
		return d.text(d.in.uint(4))
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		return d.tuple(int(code - 0x84))
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return d.push(tagged(Bool, uint64(0x89-code)))
	case 'N':
		return d.push(tagged(None, 0))
	case 'G': // BINFLOAT
		b, err := d.in.takeBytes(8)
		if err != nil {
			return err
		}
		return d.pushFloat(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 's', 'a': // SETITEM, APPEND
		return d.one(code == 's')
	case 0x80: // PROTO
		if v, err := d.in.uint(1); err != nil || v > 5 {
			return or(err, fmt.Errorf("%w: protocol %d, known are 0 to 5", ErrMalformed, v))
		}
		return nil
	case 0x95: // FRAME
		_, err := d.in.takeBytes(8)
		return err
	}
	return d.rare(code)
}

func (d *Decoder) rare(code byte) error {
	switch code {
	case 'q': // BINPUT
		return d.memoize(d.in.uint(1))
	case 'r': // LONG_BINPUT
		return d.memoize(d.in.uint(4))
	case 0x8b: // LONG4
		return d.long(d.in.uint(4))
	case 0x8d, 0x8e: // BINUNICODE8, BINBYTES8
		return d.text(d.in.uint(8))
	case 'B': // BINBYTES
		return d.text(d.in.uint(4))
	case 'C', 'U': // SHORT_BINBYTES, SHORT_BINSTRING
		return d.text(d.in.uint(1))
	case 0x96: // BYTEARRAY8
		return d.text(d.in.uint(8))
	case ')': // EMPTY_TUPLE
		return d.tuple(0)
	case 't':
		n, err := d.sinceMark()
		if err != nil {
			return err
		}
		if err := d.tuple(n); err != nil {
			return err
		}
		return d.dropBelow() // the mark
	case 'l', 'd': // LIST, DICT
		return d.fromMark(code == 'd')
	case 0x8f: // EMPTY_SET, read as a list
		return d.pushOpen(false)
	case 0x90: // ADDITEMS
		return d.extend(false)
	case 0x91: // FROZENSET
		return d.fromMark(false)
	case '0': // POP
		if n := len(d.stack); n > 0 && d.stack[n-1].Tag() == mark {
			return d.popMark()
		}
		v, err := d.pop()
		if v.Tag() == open {
			d.release(v)
		}
		return err
	case '1':
		return d.popMark()
	case '2': // DUP
		if n := len(d.stack); n == 0 || d.stack[n-1].Tag() == mark || d.stack[n-1].Tag() == open {
			return fmt.Errorf("%w: nothing that can be duplicated", ErrMalformed)
		}
		return d.push(d.stack[len(d.stack)-1])
	case 'I', 'L', 'F', 'V', 'S', 'g', 'p':
		return d.textual(code)
	}
	return d.refuse(code)
}

// textual runs the opcodes of protocol 0, whose operand is a line.
func (d *Decoder) textual(code byte) error {
	line, err := d.in.line(d.limits.StringBytes)
	if err != nil {
		return err
	}
	switch code {
	case 'I', 'L':
		if code == 'I' && (string(line) == "00" || string(line) == "01") {
			return d.push(tagged(Bool, uint64(line[1]-'0')))
		}
		return d.decimal(bytes.TrimSuffix(line, []byte("L")))
	case 'F':
		f, err := strconv.ParseFloat(string(line), 64)
		if err != nil {
			return fmt.Errorf("%w: %q is not a number", ErrMalformed, clip(line))
		}
		return d.pushFloat(f)
	case 'V':
		text, err := unescape(line)
		if err != nil {
			return err
		}
		return d.pushText(text)
	case 'S':
		if len(line) < 2 || line[0] != line[len(line)-1] || (line[0] != '\'' && line[0] != '"') {
			return fmt.Errorf("%w: string without quotes", ErrMalformed)
		}
		return d.pushText(line[1 : len(line)-1])
	}
	id, err := strconv.ParseUint(string(line), 10, 32)
	if err != nil {
		return fmt.Errorf("%w: memo entry %q", ErrMalformed, clip(line))
	}
	if code == 'g' {
		return d.get(id, nil)
	}
	return d.memoize(id, nil)
}

func (d *Decoder) decimal(line []byte) error {
	if i, err := strconv.ParseInt(string(line), 10, 64); err == nil {
		return d.pushInt(i)
	}
	u, err := strconv.ParseUint(string(line), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: integer %q", ErrMalformed, clip(line))
	}
	return d.pushInt(int64(u))
}

// refuse names the instruction that only a program would need.
func (d *Decoder) refuse(code byte) error {
	switch code {
	case 'c', 'i': // GLOBAL, INST
		module, err := d.in.line(1024)
		if err != nil {
			return err
		}
		owner := string(clip(module))
		name, err := d.in.line(1024)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s.%s", ErrUnsafe, owner, clip(name))
	case 0x93: // STACK_GLOBAL
		if n := len(d.stack); n >= 2 {
			return fmt.Errorf("%w: %s.%s", ErrUnsafe, clip([]byte(d.String(d.stack[n-2]))), clip([]byte(d.String(d.stack[n-1]))))
		}
		return ErrUnsafe
	case 'R', 'b', 'o', 0x81, 0x92, 0x82, 0x83, 0x84: // REDUCE BUILD OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4
		return ErrUnsafe
	case 'P', 'Q': // PERSID BINPERSID
		return fmt.Errorf("%w: an object kept elsewhere", ErrUnsafe)
	case 0x97, 0x98: // NEXT_BUFFER READONLY_BUFFER
		return fmt.Errorf("%w: it refers to buffers outside the file", ErrUnsafe)
	}
	return fmt.Errorf("%w: unknown opcode", ErrMalformed)
}

func (d *Decoder) push(v Value) error {
	d.pushed++
	if d.pushed > d.limits.Items {
		return fmt.Errorf("%w: more than %d values", ErrLimit, d.limits.Items)
	}
	if int64(len(d.stack))+d.waiting >= d.limits.Open {
		return fmt.Errorf("%w: more than %d values wait for their container", ErrLimit, d.limits.Open)
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *Decoder) pop() (Value, error) {
	n := len(d.stack)
	if n == 0 || d.stack[n-1].Tag() == mark {
		return 0, fmt.Errorf("%w: the stack is empty", ErrMalformed)
	}
	v := d.stack[n-1]
	d.stack = d.stack[:n-1]
	return v, nil
}

func (d *Decoder) number(v uint64, err error) error {
	if err != nil {
		return err
	}
	return d.pushInt(int64(v))
}

// long reads a little-endian two's complement integer of n bytes; 9 bytes hold what is unsigned
// in 64 bits.
func (d *Decoder) long(n uint64, err error) error {
	if err != nil {
		return err
	}
	if n > 9 {
		return fmt.Errorf("%w: an integer of %d bytes", ErrLimit, n)
	}
	b, err := d.in.takeBytes(int(n))
	if err != nil {
		return err
	}
	if n == 9 && b[8] != 0 && b[8] != 0xff {
		return fmt.Errorf("%w: an integer beyond 64 bits", ErrLimit)
	}
	var v uint64
	if n > 0 && b[n-1]&0x80 != 0 {
		v = math.MaxUint64
	}
	for i := min(int(n), 8) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return d.pushInt(int64(v))
}

func (d *Decoder) text(n uint64, err error) error {
	if err != nil {
		return err
	}
	if n > uint64(d.limits.StringBytes) {
		return fmt.Errorf("%w: a string of %d bytes", ErrLimit, n)
	}
	b, err := d.in.takeBytes(int(n))
	if err != nil {
		return err
	}
	return d.pushText(b)
}

func (d *Decoder) pushText(b []byte) error {
	v, err := d.intern(b)
	if err != nil {
		return err
	}
	return d.push(v)
}

func or(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func clip(b []byte) []byte {
	if len(b) > 80 {
		b = b[:80]
	}
	return bytes.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) { // it goes to a terminal
			return '?'
		}
		return r
	}, b)
}
