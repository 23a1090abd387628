package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"hightide/internal/mem"
)

// The fields of TFLite's tables that tell of weights, by their numbers. Source: schema.fbs of LiteRT.
const (
	tfliteSubgraphs = 2 // of Model
	tfliteBuffers   = 4
	tfliteTensors   = 0 // of SubGraph
	tfliteShape     = 0 // of Tensor
	tfliteType      = 1
	tfliteBuffer    = 2
	tfliteName      = 3
	tfliteData      = 0 // of Buffer; of large models it stands behind the tables, at an offset
	tfliteOffset    = 1
	tfliteSize      = 2
)

// tfliteTypes are those of TensorType.
var tfliteTypes = map[byte]Type{0: F32, 1: F16, 2: {"I32", 1, 4}, 3: {"U8", 1, 1}, 4: {"I64", 1, 8}, 5: {"STRING", 1, 1},
	6: {"BOOL", 1, 1}, 7: {"I16", 1, 2}, 8: {"C64", 1, 8}, 9: {"I8", 1, 1}, 10: {"F64", 1, 8}, 11: {"C128", 1, 16},
	12: {"U64", 1, 8}, 13: {"RESOURCE", 1, 1}, 14: {"VARIANT", 1, 1}, 15: {"U32", 1, 4}, 16: {"U16", 1, 2}, 17: {"INT4", 2, 1},
	18: BF16, 19: {"INT2", 4, 1}}

// readTFLite reads the weights of a TFLite or LiteRT file, a flatbuffer: the tensors whose buffers hold data. Several
// may share one, which counts once.
func readTFLite(r io.ReaderAt, size int64, keep *budget) ([]Tensor, error) {
	f := &flatbuffer{r: r, size: size}
	if magic := f.bytes(4, 4); f.err != nil || string(magic) != "TFL3" {
		return nil, &Error{Offset: 4, Err: errors.New("no TFLite: it does not say TFL3")}
	}
	model := f.follow(0)
	buffers := f.vector(f.field(model, tfliteBuffers))
	seen := map[int64]bool{}
	var tensors []Tensor
	for graph := range f.tables(f.field(model, tfliteSubgraphs)) {
		for at := range f.tables(f.field(graph, tfliteTensors)) {
			n := int64(0)
			if field := f.field(at, tfliteBuffer); field > 0 {
				n = int64(f.uint32(field))
			}
			if n == 0 || seen[n] { // 0: by convention none
				continue
			}
			seen[n] = true
			bytes := f.held(buffers, n)
			if bytes == 0 {
				continue
			}
			t := f.tensor(at, bytes)
			if f.err == nil {
				f.fail(at, keep.tensor(&t))
			}
			tensors = append(tensors, t)
			if f.err != nil {
				return nil, f.err
			}
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return tensors, nil
}

// held is what a buffer holds: nothing, where a tensor is computed as the graph runs.
func (f *flatbuffer) held(buffers flatVector, n int64) mem.Bytes {
	if n >= buffers.n {
		f.fail(buffers.at, fmt.Errorf("a tensor has buffer %d, of %d", n, buffers.n))
		return 0
	}
	buffer := f.follow(buffers.at + 4*n)
	if data := f.field(buffer, tfliteData); data > 0 {
		if v := f.vectorOf(data, 1); v.n > 0 {
			return mem.Bytes(v.n)
		}
	}
	at, size := f.field(buffer, tfliteOffset), f.field(buffer, tfliteSize)
	if at == 0 || size == 0 {
		return 0
	}
	from, long := f.uint64(at), f.uint64(size)
	if from <= 1 { // as a converter has it while it writes
		return 0
	}
	if f.size >= 0 && (from > uint64(f.size) || long > uint64(f.size)-from) {
		f.fail(f.size, errEnds)
		return 0
	}
	return mem.Bytes(min(long, 1<<60))
}

// tensor reads what is said of one that has so many bytes.
func (f *flatbuffer) tensor(at int64, bytes mem.Bytes) (t Tensor) {
	t.Bytes, t.Type = bytes, F32 // 0 is not written
	if field := f.field(at, tfliteType); field > 0 {
		kind := f.bytes(field, 1)
		if f.err != nil {
			return t
		}
		known := false
		if t.Type, known = tfliteTypes[kind[0]]; !known {
			f.fail(field, fmt.Errorf("a tensor of the unknown type %d", kind[0]))
		}
	}
	if field := f.field(at, tfliteName); field > 0 {
		v := f.vectorOf(field, 1)
		t.Name = string(f.bytes(v.at, min(v.n, 1<<10)))
	}
	shape := f.vectorOf(f.field(at, tfliteShape), 4)
	if shape.n > 16 {
		f.fail(at, fmt.Errorf("tensor %q has %d dimensions", short(t.Name), shape.n))
	}
	for i := int64(0); i < shape.n && f.err == nil; i++ {
		t.Shape = append(t.Shape, int64(int32(f.uint32(shape.at+4*i))))
	}
	if f.err == nil {
		if _, err := (Type{Block: 1, Bytes: t.Type.Bytes}).size(t.Shape); err != nil { // packed ones may end within a byte
			f.fail(at, fmt.Errorf("tensor %q: %w", short(t.Name), err))
		}
	}
	return t
}

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
