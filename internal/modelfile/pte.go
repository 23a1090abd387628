package modelfile

import (
	"errors"
	"fmt"
	"io"

	"hightide/internal/mem"
)

// The fields of ExecuTorch's tables that tell of memory, by their numbers. Source: program.fbs of ExecuTorch.
const (
	ptePlans       = 1 // of Program: one for each method
	pteConstants   = 2 // kept among the tables
	pteInline      = 3
	pteSegments    = 4
	pteSegment     = 5 // of constants that stand behind the tables
	pteNamed       = 7 // data that backends ask for by its name
	pteValues      = 2 // of ExecutionPlan
	pteDelegates   = 7
	ptePlanned     = 8
	pteValueType   = 0 // of EValue
	pteValue       = 1
	pteTensor      = 5 // a value's type
	pteScalar      = 0 // of Tensor
	pteSizes       = 2
	pteBuffer      = 5
	pteAllocation  = 6
	pteDelegateID  = 0 // of BackendDelegate
	pteProcessed   = 1
	pteLocation    = 0 // of BackendDelegateDataReference
	pteIndex       = 1
	pteSegmentSize = 1 // of DataSegment
)

// pteTypes are those of ScalarType.
var pteTypes = map[byte]Type{0: {"U8", 1, 1}, 1: {"I8", 1, 1}, 2: {"I16", 1, 2}, 3: {"I32", 1, 4}, 4: {"I64", 1, 8},
	5: F16, 6: F32, 7: {"F64", 1, 8}, 11: {"BOOL", 1, 1}, 15: BF16, 23: {"F8_E5M2", 1, 1}, 24: {"F8_E4M3", 1, 1},
	27: {"U16", 1, 2}, 28: {"U32", 1, 4}, 29: {"U64", 1, 8}}

// planned is what the planner of ExecuTorch set aside for what is computed: of its methods the largest.
func (f *flatbuffer) planned(program int64) (most mem.Bytes) {
	for plan := range f.tables(f.field(program, ptePlans)) {
		most = max(most, f.setAside(plan))
	}
	return most
}

// setAside is what the planner set aside for a method.
func (f *flatbuffer) setAside(plan int64) mem.Bytes {
	sizes, sum := f.vectorOf(f.field(plan, ptePlanned), 8), uint64(0)
	for i := int64(1); i < sizes.n && f.err == nil; i++ { // the first is by convention of constants
		sum += min(f.uint64(sizes.at+8*i), 1<<50)
	}
	return mem.Bytes(min(sum, 1<<60))
}

func openPTE(r io.ReaderAt, size int64) (f *flatbuffer, program int64, err error) {
	f = &flatbuffer{r: r, size: size}
	if magic := f.bytes(4, 4); f.err != nil || string(magic[:2]) != "ET" {
		return nil, 0, &Error{Offset: 4, Err: errors.New("no program of ExecuTorch: it does not say ET")}
	}
	program = f.follow(0)
	return f, program, f.err
}

// offsets is how many constants stand behind the tables.
func (f *flatbuffer) offsets(program int64) int64 {
	field := f.field(program, pteSegment)
	if field == 0 {
		return 0
	}
	return f.vectorOf(f.field(f.follow(field), 1), 8).n
}

// constant reads a tensor that the file holds; without bytes: it is computed, or kept elsewhere.
func (f *flatbuffer) constant(at, held int64) (t Tensor) {
	field := f.field(at, pteBuffer)
	if field == 0 || f.field(at, pteAllocation) > 0 {
		return t
	}
	n := int64(f.uint32(field))
	if n == 0 { // by convention none
		return t
	}
	if n >= held {
		f.fail(field, fmt.Errorf("a tensor has constant %d, of %d", n, held))
	}
	kind := byte(0) // is not written
	if field := f.field(at, pteScalar); field > 0 {
		kind = f.bytes(field, 1)[0]
	}
	known := false
	if t.Type, known = pteTypes[kind]; !known {
		f.fail(at, fmt.Errorf("a tensor of the unknown type %d", kind))
	}
	shape := f.vectorOf(f.field(at, pteSizes), 4)
	if shape.n > 16 {
		f.fail(at, fmt.Errorf("constant %d has %d dimensions", n, shape.n))
	}
	for i := int64(0); i < shape.n && f.err == nil; i++ {
		t.Shape = append(t.Shape, int64(int32(f.uint32(shape.at+4*i))))
	}
	if f.err != nil {
		return Tensor{}
	}
	t.Name = fmt.Sprintf("constant %d", n)
	bytes, err := t.Type.size(t.Shape)
	f.fail(at, err)
	t.Bytes = bytes
	return t
}

// delegate is what a backend gets: weights in a form of its own, and its program. Methods may share it, which its key
// tells.
func (f *flatbuffer) delegate(program, at int64, number int) (t Tensor, key string) {
	processed := f.field(at, pteProcessed)
	if processed == 0 {
		return t, ""
	}
	reference, index, inline := f.follow(processed), int64(0), true
	if field := f.field(reference, pteIndex); field > 0 {
		index = int64(f.uint32(field))
	}
	if field := f.field(reference, pteLocation); field > 0 {
		inline = f.bytes(field, 1)[0] == 0
	}
	name, key := fmt.Sprintf("%s %d", f.text(at, pteDelegateID), number), fmt.Sprintf("%v %d", inline, index)
	if inline {
		return f.blob(name, f.field(program, pteInline), index, func(piece int64) int64 {
			return f.vectorOf(f.field(piece, 0), 1).n
		}), key
	}
	return f.segment(name, program, index), key
}

// named is what backends share, or ask for by its name: their weights, since ExecuTorch 0.7.
func (f *flatbuffer) named(program, at int64) Tensor {
	index := int64(0)
	if field := f.field(at, 1); field > 0 {
		index = int64(f.uint32(field))
	}
	return f.segment(f.text(at, 0), program, index)
}

// segment is one of those that stand behind the tables.
func (f *flatbuffer) segment(name string, program, index int64) Tensor {
	return f.blob(name, f.field(program, pteSegments), index, func(piece int64) int64 {
		if field := f.field(piece, pteSegmentSize); field > 0 {
			return int64(min(f.uint64(field), 1<<60))
		}
		return 0
	})
}

// blob is an item of a vector that has bytes whose form is not known here.
func (f *flatbuffer) blob(name string, field, index int64, size func(int64) int64) (t Tensor) {
	all := f.vector(field)
	if index >= all.n {
		f.fail(field, fmt.Errorf("%s has piece %d, of %d", short(name), index, all.n))
		return t
	}
	bytes := size(f.follow(all.at + 4*index))
	if f.size >= 0 && bytes > f.size {
		f.fail(f.size, errEnds)
	}
	return Tensor{Name: name, Type: Type{"U8", 1, 1}, Shape: []int64{bytes}, Bytes: mem.Bytes(bytes)}
}
