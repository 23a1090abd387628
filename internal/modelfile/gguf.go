package modelfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"hightide/internal/mem"
)

// The types of GGUF's values.
const (
	ggufString = 8
	ggufArray  = 9
)

// ggufSizes are the bytes of the other types of values, by their number.
var ggufSizes = map[uint32]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// gguf is a file's header.
type gguf struct {
	values  map[string]any // numbers as int64 or float64, texts, and short arrays of numbers; others are passed over
	tensors []Tensor
}

// ggufReader walks through a header. Its first error stays.
type ggufReader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	at    int64
	kept  int   // bytes of values
	end   int64 // of what may be read
	word  [8]byte
	err   error
}

// readGGUF reads the header of a GGUF file, of version 2 or 3 and of either byte order.
func readGGUF(r io.ReaderAt, size int64, keep *budget) (*gguf, error) {
	end := int64(maxGGUF)
	if size >= 0 {
		end = min(end, size)
	}
	g := &ggufReader{in: bufio.NewReaderSize(io.NewSectionReader(r, 0, end), 1<<16), order: binary.LittleEndian, end: end}
	file := &gguf{values: map[string]any{}}
	tensors, values := g.begin()
	for i := uint64(0); i < values && g.err == nil; i++ {
		g.pair(file.values)
	}
	type placed struct {
		offset uint64
		bytes  mem.Bytes
	}
	var places []placed
	for i := uint64(0); i < tensors && g.err == nil; i++ {
		t, offset := g.tensor()
		if g.err == nil {
			g.fail(keep.tensor(&t))
		}
		file.tensors, places = append(file.tensors, t), append(places, placed{offset, t.Bytes})
	}
	if g.err != nil {
		return nil, &Error{Offset: g.at, Err: g.cause(size)}
	}
	align := int64(32)
	if n, ok := file.values["general.alignment"].(int64); ok {
		if align = n; n <= 0 || n > 1<<20 || n&(n-1) != 0 {
			return nil, &Error{Offset: g.at, Err: fmt.Errorf("an alignment of %d", n)}
		}
	}
	data := (g.at + align - 1) / align * align
	slices.SortFunc(places, func(a, b placed) int { return int(min(max(int64(a.offset)-int64(b.offset), -1), 1)) })
	before := int64(0)
	for _, p := range places {
		if p.offset > math.MaxInt64/4 || int64(p.offset)%align != 0 || int64(p.offset) < before {
			return nil, &Error{Offset: data, Err: fmt.Errorf("tensors overlap: one begins at %d of the data", p.offset)}
		}
		before = int64(p.offset) + int64(p.bytes)
	}
	if size >= 0 && data+before > size && len(places) > 0 {
		return nil, &Error{Offset: size, Err: errEnds}
	}
	return file, nil
}

// begin reads what a file begins with: how many tensors and values it has.
func (g *ggufReader) begin() (tensors, values uint64) {
	if magic := g.bytes(4); g.err == nil && string(magic) != "GGUF" {
		g.at = 0
		g.fail(errors.New("no GGUF: it does not begin with GGUF"))
		return 0, 0
	}
	raw := g.bytes(4)
	if g.err != nil {
		return 0, 0
	}
	version := g.order.Uint32(raw)
	if version&0xffff == 0 {
		g.order = binary.BigEndian
		version = g.order.Uint32(raw)
	}
	if version != 2 && version != 3 {
		g.fail(fmt.Errorf("GGUF of version %d; hightide reads 2 and 3", version))
		return 0, 0
	}
	tensors, values = g.uint64(), g.uint64()
	if tensors > maxTensors || values > 1<<20 {
		g.fail(fmt.Errorf("%d tensors and %d values in a header", tensors, values))
	}
	return tensors, values
}

// pair reads a key with its value, and keeps what may matter.
func (g *ggufReader) pair(into map[string]any) {
	key := g.text(1 << 12)
	value := g.value(g.uint32(), 0)
	g.kept += len(key) + 64
	switch v := value.(type) {
	case string:
		g.kept += len(v)
	case []any:
		g.kept += 32 * len(v)
	}
	if value != nil && g.kept < maxValues {
		into[key] = value
	}
}

// value reads one; nil: it is passed over.
func (g *ggufReader) value(kind uint32, depth int) any {
	switch kind {
	case ggufString:
		return g.text(1 << 10)
	case ggufArray:
		return g.array(depth + 1)
	}
	n, known := ggufSizes[kind]
	if !known {
		g.fail(fmt.Errorf("a value of the unknown type %d", kind))
		return nil
	}
	raw := g.fixed(n)
	if g.err != nil {
		return nil
	}
	return g.number(kind, raw)
}

// number is a value of fixed size.
func (g *ggufReader) number(kind uint32, raw []byte) any {
	switch kind {
	case 0, 7:
		return int64(raw[0])
	case 1:
		return int64(int8(raw[0]))
	case 2:
		return int64(g.order.Uint16(raw))
	case 3:
		return int64(int16(g.order.Uint16(raw)))
	case 4:
		return int64(g.order.Uint32(raw))
	case 5:
		return int64(int32(g.order.Uint32(raw)))
	case 6:
		return float64(math.Float32frombits(g.order.Uint32(raw)))
	case 12:
		return math.Float64frombits(g.order.Uint64(raw))
	}
	return int64(g.order.Uint64(raw)) // of a uint64 beyond that: a negative number, which nobody takes
}

// array reads one of numbers that is short, as of layers; longer ones and those of texts, as a vocabulary, are counted.
func (g *ggufReader) array(depth int) any {
	kind, n := g.uint32(), g.uint64()
	if n > uint64(g.end) {
		g.fail(fmt.Errorf("an array of %d values", n))
	}
	if depth > 3 {
		g.fail(errors.New("arrays of arrays of arrays"))
	}
	width, fixed := ggufSizes[kind]
	if g.err != nil {
		return nil
	}
	if fixed && (n > 4096 || g.kept >= maxValues) {
		g.skip(int64(n) * int64(width))
		return nil
	}
	var all []any
	for i := uint64(0); i < n && g.err == nil; i++ {
		if kind == ggufString {
			g.skip(int64(min(g.uint64(), math.MaxInt64)))
			continue
		}
		if v := g.value(kind, depth); fixed {
			all = append(all, v)
		}
	}
	if kind == ggufString {
		return counted(n)
	}
	return all
}

// counted is how many texts an array has.
type counted int64

// tensor reads one, and where it begins.
func (g *ggufReader) tensor() (t Tensor, offset uint64) {
	t.Name = g.text(1 << 10)
	dims := g.uint32()
	if dims > 4 {
		g.fail(fmt.Errorf("tensor %q has %d dimensions", short(t.Name), dims))
		return t, 0
	}
	for range dims {
		n := g.uint64()
		t.Shape = append(t.Shape, int64(min(n, math.MaxInt64)))
	}
	kind := g.uint32()
	offset = g.uint64()
	if g.err != nil {
		return t, 0
	}
	known := false
	if t.Type, known = ggmlTypes[kind]; !known {
		g.fail(fmt.Errorf("tensor %q is of the unknown type %d", short(t.Name), kind))
		return t, 0
	}
	if dims > 0 && t.Shape[0]%t.Type.Block != 0 {
		g.fail(fmt.Errorf("tensor %q has rows of %d numbers, and %s comes in blocks of %d", short(t.Name), t.Shape[0],
			t.Type.Name, t.Type.Block))
		return t, 0
	}
	slices.Reverse(t.Shape)
	var err error
	if t.Bytes, err = t.Type.size(t.Shape); err != nil {
		g.fail(fmt.Errorf("tensor %q: %w", short(t.Name), err))
	}
	return t, offset
}

func (g *ggufReader) uint32() uint32 {
	if raw := g.fixed(4); g.err == nil {
		return g.order.Uint32(raw)
	}
	return 0
}

func (g *ggufReader) uint64() uint64 {
	if raw := g.fixed(8); g.err == nil {
		return g.order.Uint64(raw)
	}
	return 0
}

// text reads one of no more than most bytes; a longer value is passed over.
func (g *ggufReader) text(most uint64) string {
	n := g.uint64()
	if g.err == nil && n > uint64(g.end-g.at) {
		g.fail(io.ErrUnexpectedEOF)
	}
	if g.err == nil && n > most {
		g.skip(int64(n))
		return ""
	}
	return string(g.bytes(int(n)))
}

// fixed reads a number of up to 8 bytes, which are good until the next is read.
func (g *ggufReader) fixed(n int) []byte { return g.into(g.word[:n]) }

// bytes reads a few.
func (g *ggufReader) bytes(n int) []byte {
	if g.err != nil {
		return nil
	}
	return g.into(make([]byte, n))
}

func (g *ggufReader) into(raw []byte) []byte {
	if g.err != nil {
		return nil
	}
	if _, err := io.ReadFull(g.in, raw); err != nil {
		g.fail(err)
		return nil
	}
	g.at += int64(len(raw))
	return raw
}

func (g *ggufReader) skip(n int64) {
	if g.err != nil {
		return
	}
	if n < 0 || n > g.end-g.at {
		g.fail(io.ErrUnexpectedEOF)
		return
	}
	for n > 0 && g.err == nil {
		step, err := g.in.Discard(int(min(n, 1<<30)))
		g.at, n = g.at+int64(step), n-int64(step)
		g.fail(err)
	}
}

func (g *ggufReader) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

// cause says why a header ends: it, or the file, or our patience with it.
func (g *ggufReader) cause(size int64) error {
	if !errors.Is(g.err, io.EOF) && !errors.Is(g.err, io.ErrUnexpectedEOF) {
		return g.err
	}
	if size < 0 || size > g.end {
		return fmt.Errorf("a header of more than %d bytes", g.end)
	}
	return errEnds
}
