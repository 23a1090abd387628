package modelfile

import (
	"fmt"

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

// weights reads the tensors whose buffers hold data. Several may share one, which counts once.
func (f *flatbuffer) weights(model int64, keep *budget) (tensors []Tensor) {
	buffers := f.vector(f.field(model, tfliteBuffers))
	seen := map[int64]bool{}
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
				return tensors
			}
		}
	}
	return tensors
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
