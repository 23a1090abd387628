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
	"math"
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
	StringBytes int   // one string; default 64 MiB
	TableBytes  int64 // all distinct strings together; default 1 GiB
	Open        int64 // values waiting in unfinished containers; default 16 Mi
	Numbers     int   // floats and integers beyond 60 bits, which are kept to the end; default 16 Mi
}

func (l Limits) orDefaults() Limits {
	fill(&l.Depth, 64)
	fill(&l.Items, 4e9)
	fill(&l.Memo, 256<<20)
	fill(&l.StringBytes, 64<<20)
	fill(&l.TableBytes, 1<<30)
	fill(&l.Open, 16<<20)
	fill(&l.Numbers, 16<<20)
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
	return d.strings[v.Payload()]
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

// Strings is the number of distinct strings so far; their values have payloads below it.
func (d *Decoder) Strings() int { return len(d.strings) }

// intValue fails only for an integer that a Value does not hold.
func (d *Decoder) intValue(i int64) (Value, error) {
	if short(i) {
		return Value(i<<4) | Value(Int), nil
	}
	if err := d.roomForNumber(); err != nil {
		return 0, err
	}
	d.wide = append(d.wide, i)
	return tagged(Wide, uint64(len(d.wide)-1)), nil
}

// roomForNumber bounds the numbers that are kept beside the Values: a compressed file of a few MiB holds
// billions of them.
func (d *Decoder) roomForNumber() error {
	if len(d.floats)+len(d.wide) >= d.limits.Numbers {
		return fmt.Errorf("%w: more than %d floats and integers beyond 60 bits", ErrLimit, d.limits.Numbers)
	}
	return nil
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
	if err := d.roomForNumber(); err != nil {
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
	if i, ok := d.index[string(text)]; ok {
		return tagged(Str, uint64(i)), nil
	}
	d.stringBytes += int64(len(text)) + 32
	if d.stringBytes > d.limits.TableBytes {
		return 0, fmt.Errorf("%w: more than %d bytes of strings", ErrLimit, d.limits.TableBytes)
	}
	s := string(text)
	d.index[s] = uint32(len(d.strings))
	d.strings = append(d.strings, s)
	return tagged(Str, uint64(len(d.strings)-1)), nil
}
