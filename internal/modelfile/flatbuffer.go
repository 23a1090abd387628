package modelfile

import (
	"encoding/binary"
	"errors"
	"io"
	"iter"
)

// flatbuffer reads tables at any place of a stranger's file. Its first error stays; then all that is read is zero.
type flatbuffer struct {
	r             io.ReaderAt
	size          int64 // -1: not known
	err           error
	steps, misses int

	room, window []byte // window is of the file, from begin on
	begin        int64
}

type flatVector struct{ at, n int64 } // of the first item, and how many

// How many numbers of a file are read at most, and how often from another place: tables may lead to each other over and
// over. The largest sound file takes a tenth of it.
const (
	mostSteps  = 10_000_000
	mostMisses = 2_000_000
)

var errWanders = errors.New("its tables lead to each other too often")

func (f *flatbuffer) fail(at int64, err error) {
	if f.err == nil && err != nil {
		f.err = &Error{Offset: at, Err: err}
	}
}

// bytes are n at a place, good until the next are read.
func (f *flatbuffer) bytes(at, n int64) []byte {
	if f.steps++; f.steps > mostSteps {
		f.fail(at, errWanders)
	}
	if at < 0 || f.size >= 0 && at > f.size-n {
		f.fail(max(at, 0), errEnds)
	}
	if f.err != nil {
		return make([]byte, n)
	}
	if at < f.begin || at+n > f.begin+int64(len(f.window)) {
		if f.misses++; f.misses > mostMisses {
			f.fail(at, errWanders)
			return make([]byte, n)
		}
		if cap(f.room) == 0 {
			f.room = make([]byte, 2<<10) // a name is the longest that is read at once
		}
		window := f.room[:cap(f.room)]
		got, err := f.r.ReadAt(window, at)
		if int64(got) < n {
			if err == io.EOF {
				err = errEnds
			}
			f.fail(at, err)
			return make([]byte, n)
		}
		f.window, f.begin = window[:got], at
	}
	return f.window[at-f.begin:][:n]
}

func (f *flatbuffer) uint16(at int64) uint16 { return binary.LittleEndian.Uint16(f.bytes(at, 2)) }
func (f *flatbuffer) uint32(at int64) uint32 { return binary.LittleEndian.Uint32(f.bytes(at, 4)) }
func (f *flatbuffer) uint64(at int64) uint64 { return binary.LittleEndian.Uint64(f.bytes(at, 8)) }

// follow is where the offset at a place leads.
func (f *flatbuffer) follow(at int64) int64 { return at + int64(f.uint32(at)) }

// field is where a table has a field; 0: it has not.
func (f *flatbuffer) field(table int64, number int64) int64 {
	index := table - int64(int32(f.uint32(table)))
	place := 4 + 2*number
	if place+2 > int64(f.uint16(index)) || f.err != nil {
		return 0
	}
	if offset := int64(f.uint16(index + place)); offset > 0 && f.err == nil {
		return table + offset
	}
	return 0
}

// vector is one of offsets.
func (f *flatbuffer) vector(field int64) flatVector { return f.vectorOf(field, 4) }

// vectorOf is one whose items have so many bytes; a field that is not there has none.
func (f *flatbuffer) vectorOf(field, each int64) flatVector {
	if field == 0 {
		return flatVector{}
	}
	at := f.follow(field)
	v := flatVector{at + 4, int64(f.uint32(at))}
	if f.size >= 0 && f.err == nil && v.n > (f.size-v.at)/each {
		f.fail(at, errEnds)
	}
	if f.err != nil {
		return flatVector{}
	}
	return v
}

// tables are those that a vector of a field leads to.
func (f *flatbuffer) tables(field int64) iter.Seq[int64] {
	v := f.vector(field)
	return func(yield func(int64) bool) {
		for i := range v.n {
			if f.err != nil || !yield(f.follow(v.at+4*i)) {
				return
			}
		}
	}
}

// text is a string of a table.
func (f *flatbuffer) text(table, number int64) string {
	field := f.field(table, number)
	if field == 0 {
		return ""
	}
	v := f.vectorOf(field, 1)
	return string(f.bytes(v.at, min(v.n, 1<<8)))
}
