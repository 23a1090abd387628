// Package pickle reads Python pickles, protocols 0 to 5, without being able to run anything: it
// builds plain data and refuses every instruction that would import, call or reduce.
//
//	bytes ──▶ Decode (a stack machine, one pass) ──▶ Builder ──▶ the caller's own columns
//
// No tree of generic objects is built. A container is handed to the Builder when its parent takes
// it, and stands from then on for the Value that the Builder returned; its storage is used again.
// That is what lets a gigabyte of allocator events be read in the memory of their columns alone.
// Read Decode in machine.go; strings, numbers and limits are in this file. Dictionaries that
// repeat the keys of earlier ones, which is most of a large file, go another way (records.go):
//
//	bytes ──▶ scan (no memo; readAhead has it run on another core) ──▶ run ──▶ resolve ──▶ Records
package pickle

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"strings"
)

// Value is a pickled value in a word: a tag in the low four bits, the payload above.
type Value uint64

// Tag says what a Value is.
type Tag uint8

// Tags. Made values belong to the Builder; List and Dict occur only inside the machine.
const (
	None  Tag = iota
	Bool      // payload 0 or 1
	Int       // 60-bit signed, inline
	Wide      // index of an integer beyond 60 bits
	Float     // index
	Str       // index of an interned string
	Made      // the Builder's own, payload of 60 bits
	open      // a container still being filled: index of its slot
	mark
	elsewhere // a memo entry too wide for its place
)

// Tag returns what v is.
func (v Value) Tag() Tag { return Tag(v & 15) }

// Payload returns the bits above the tag, unsigned.
func (v Value) Payload() uint64 { return uint64(v) >> 4 }

// MakeValue wraps 60 bits of the Builder's own.
func MakeValue(payload uint64) Value { return Value(payload<<4) | Value(Made) }

func tagged(tag Tag, payload uint64) Value { return Value(payload<<4) | Value(tag) }

// Builder receives the containers, innermost first, each once. The slices are valid only during
// the call. A returned Value must not have a tag of the machine's own; normally it is Made.
type Builder interface {
	// Dict gets keys and values in turn.
	Dict(d *Decoder, pairs []Value) (Value, error)
	List(d *Decoder, items []Value) (Value, error)
	Tuple(d *Decoder, items []Value) (Value, error)
}

// Merger is a Builder for which neighbours in a list can be one Value, such as rows of a table that
// follow each other. Lists of millions then take no room.
type Merger interface {
	Merge(last, next Value) (Value, bool)
}

// Limits bound what a file can make the decoder do. Zero fields take the defaults.
type Limits struct {
	Depth       int   // containers inside each other; default 64
	Items       int64 // values pushed in all; default 4e9
	Memo        int   // entries; default 256 Mi
	StringBytes int   // one string; default 8 MiB
	Open        int64 // values waiting in unfinished containers; default 2 Mi
	Memory      int64 // bytes of strings, numbers, memo and what the Builder spends, beside PerByte; default 64 MiB
	PerByte     int64 // the same for each byte of the file as it is stored, compressed or not; default 128
}

func (l Limits) orDefaults() Limits {
	fill(&l.Depth, 64)
	fill(&l.Items, 4e9)
	fill(&l.Memo, 256<<20)
	fill(&l.StringBytes, 8<<20)
	fill(&l.Open, 2<<20)
	fill(&l.Memory, 64<<20)
	fill(&l.PerByte, 128)
	return l
}

func fill[T int | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// What can be wrong with a pickle; test with errors.Is.
var (
	ErrUnsafe    = errors.New("wants to import or call something")
	ErrLimit     = errors.New("exceeds a limit")
	ErrMalformed = errors.New("is not a well-formed pickle")
	ErrTruncated = errors.New("ends in the middle")
)

// Error says where decoding stopped and why. Offset counts bytes from the start of the stream.
type Error struct {
	Offset int64
	Op     byte
	Err    error
}

func (e *Error) Unwrap() error { return e.Err }
func (e *Error) Error() string {
	if e.Op == 0 {
		return fmt.Sprintf("pickle: at byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("pickle: opcode 0x%02x at byte %d: %v", e.Op, e.Offset, e.Err)
}

// String returns the text of a Str; empty for any other.
func (d *Decoder) String(v Value) string {
	if v.Tag() != Str {
		return ""
	}
	return d.texts.at(v.Payload())
}

// Int returns an Int, Wide or Bool as 64 bits. Unsigned values from 2^63 on wrap to negative, as
// addresses of tagged memory do.
func (d *Decoder) Int(v Value) (int64, bool) {
	switch v.Tag() {
	case Int:
		return int64(v) >> 4, true
	case Wide:
		return d.wide[v.Payload()], true
	case Bool:
		return int64(v.Payload()), true
	}
	return 0, false
}

// Float returns a Float or an integer as a float64.
func (d *Decoder) Float(v Value) (float64, bool) {
	if v.Tag() == Float {
		return d.floats[v.Payload()], true
	}
	i, ok := d.Int(v)
	return float64(i), ok
}

// Offset counts the bytes read so far.
func (d *Decoder) Offset() int64 { return d.in.offset() }

// intValue fails only for an integer that a Value does not hold.
func (d *Decoder) intValue(i int64) (Value, error) {
	if short(i) {
		return Value(i<<4) | Value(Int), nil
	}
	if err := d.Spend(numberCost); err != nil {
		return 0, err
	}
	d.wide = append(d.wide, i)
	return tagged(Wide, uint64(len(d.wide)-1)), nil
}

// numberCost is what a number takes, with what growing its table leaves behind.
const numberCost = 24

// Spend says that so many more bytes are kept to the end. It fails where they are out of all proportion to the file:
// a compressed file of a few MiB holds billions of values.
func (d *Decoder) Spend(bytes int) error {
	if d.spent += int64(bytes); d.spent <= d.allowed {
		return nil
	}
	stored := d.in.offset()
	if d.stored != nil {
		stored = d.stored.Stored()
	}
	if d.allowed = d.limits.Memory + d.limits.PerByte*stored; d.spent <= d.allowed {
		return nil
	}
	return fmt.Errorf("%w: it takes more than %d bytes of memory, for a file of %d so far", ErrLimit, d.allowed, stored)
}

// short says whether a Value holds an integer.
func short(i int64) bool { return i>>59 == 0 || i>>59 == -1 }

func (d *Decoder) pushInt(i int64) error {
	v, err := d.intValue(i)
	if err != nil {
		return err
	}
	return d.push(v)
}

func (d *Decoder) pushFloat(f float64) error {
	if err := d.Spend(numberCost); err != nil {
		return err
	}
	if math.IsNaN(f) {
		f = math.NaN()
	}
	d.floats = append(d.floats, f)
	return d.push(tagged(Float, uint64(len(d.floats)-1)))
}

// intern returns the one Value for a text, so that equal strings compare equal as Values.
func (d *Decoder) intern(text []byte) (Value, error) {
	hash := maphash.Bytes(d.scan.seed, text)
	if i, ok := d.index.Find(hash, func(i uint32) bool { return d.texts.at(uint64(i)) == string(text) }); ok {
		return tagged(Str, uint64(i)), nil
	}
	if err := d.Spend(len(text) + stringCost); err != nil {
		return 0, err
	}
	n := len(d.texts.places)
	d.index.Add(hash, uint32(n))
	d.texts.add(text)
	return tagged(Str, uint64(n)), nil
}

// stringCost is what a string takes beside its bytes: where it lies, with room to grow, and its place in the index.
const stringCost = 32

// texts keeps strings side by side, each known by a word without a pointer in it. Millions of small ones would
// otherwise be looked at one by one whenever Go collects.
type texts struct {
	chunks []string
	last   strings.Builder // what the last chunk is of
	places []uint64        // chunk, and unless the chunk is one text, where in it: 16 bits each of begin and end
}

const (
	textsBytes = 1<<16 - 1
	largeText  = textsBytes / 8
)

func (t *texts) at(n uint64) string {
	place := t.places[n]
	chunk := t.chunks[place>>32]
	if uint32(place) == math.MaxUint32 {
		return chunk
	}
	return chunk[uint16(place>>16):uint16(place)]
}

func (t *texts) add(text []byte) {
	if len(text) > largeText {
		t.chunks, t.last = append(t.chunks, string(text)), strings.Builder{}
		t.places = append(t.places, uint64(len(t.chunks)-1)<<32|math.MaxUint32)
		return
	}
	if t.last.Cap()-t.last.Len() < len(text) || t.last.Len()+len(text) > textsBytes-1 || len(t.chunks) == 0 {
		t.last = strings.Builder{} // the chunks hold what it had
		t.last.Grow(textsBytes)
		t.chunks = append(t.chunks, "")
	}
	begin := t.last.Len()
	t.last.Write(text)
	t.chunks[len(t.chunks)-1] = t.last.String()
	t.places = append(t.places, uint64(len(t.chunks)-1)<<32|uint64(begin)<<16|uint64(t.last.Len()))
}

// SizeOf is the bytes that a file or a reader in memory will give, 0 where nobody knows. It only
// spares copies.
func SizeOf(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	case interface{ Len() int }:
		return int64(r.Len())
	}
	return 0
}
