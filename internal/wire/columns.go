package wire

import (
	"encoding/binary"
	"errors"
	"math"

	"hightide/internal/mem"
)

// Numbers are varints; signed ones zigzag. A column holds the differences of neighbours. Optional
// fields have a bit in a mask and are there only where it is set.

var errShort = errors.New("payload ends too early")

// decoder reads a payload; the first failure sticks. It also interns strings over the whole
// recording, since names repeat in every frame.
type decoder struct {
	rest    []byte
	err     error
	strings map[string]string
	scratch *scratch // where columns go that the next frame may overwrite; nil: each frame has its own
}

// scratch is the memory of frames that are copied as soon as they are read.
type scratch struct {
	numbers []int64
	spans   mem.Spans
	steps   mem.Steps
}

// own is the scratch for a frame: that of the decoder, or a fresh one that the frame keeps.
func (d *decoder) own() *scratch {
	if d.scratch != nil {
		return d.scratch
	}
	return &scratch{}
}

// again returns n items of a scratch that is made larger where it must be.
func again[S ~[]T, T any](s *S, n int) S {
	if *s == nil || cap(*s) < n {
		*s = make(S, n)
	}
	clear((*s)[:n])
	return (*s)[:n:n]
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.rest = nil
}

func (d *decoder) uint() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		value := uint64(d.rest[0])
		d.rest = d.rest[1:]
		return value
	}
	value, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return value
}

func (d *decoder) uint32() uint32 {
	value := d.uint()
	if value > math.MaxUint32 {
		d.fail()
		return 0
	}
	return uint32(value)
}

func (d *decoder) int() int64 {
	value := d.uint()
	return int64(value>>1) ^ -int64(value&1)
}

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	value := d.rest[:n]
	d.rest = d.rest[n:]
	return value
}

// maxInterned bounds the table of strings; beyond it they are still read, only not shared.
const maxInterned = 1 << 16

func (d *decoder) string() string {
	text := d.bytes()
	if known, ok := d.strings[string(text)]; ok {
		return known
	}
	value := string(text)
	if len(d.strings) < maxInterned && len(value) < 1024 {
		d.strings[value] = value
	}
	return value
}

// count reads a number of items, each of which takes at least size bytes of what is left. A
// count that lies cannot ask for more memory than a small multiple of the payload.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.rest)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) float() float64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	value := math.Float64frombits(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return value
}

func appendInt(dst []byte, value int64) []byte {
	return binary.AppendUvarint(dst, uint64(value<<1)^uint64(value>>63))
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendOptionals appends a mask and the differences of the known values from base.
func appendOptionals(dst []byte, base int64, values ...mem.Optional) []byte {
	var mask uint64
	for i, v := range values {
		if v.Known() {
			mask |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, mask)
	for _, v := range values {
		if value, ok := v.Get(); ok {
			dst = appendInt(dst, value-base)
			base = value
		}
	}
	return dst
}

// optionals reads what appendOptionals wrote and returns the last known value.
func (d *decoder) optionals(base int64, values ...*mem.Optional) int64 {
	mask := d.uint()
	if mask>>len(values) != 0 {
		d.fail()
		return base
	}
	for i, v := range values {
		if mask&(1<<i) != 0 {
			base += d.int()
			*v = mem.Some(base)
		}
	}
	return base
}

func appendSamples(dst []byte, f mem.Samples) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Series))
	dst = binary.AppendUvarint(dst, uint64(len(f.Times)))
	var before, gap int64
	for _, t := range f.Times { // regular intervals: the difference of differences is small
		dst = appendInt(dst, t-before-gap)
		gap, before = t-before, t
	}
	before = 0
	for _, v := range f.Values {
		dst = appendInt(dst, v-before)
		before = v
	}
	return dst
}

func decodeSamples(d *decoder) (mem.Frame, error) {
	f := mem.Samples{Series: d.uint32()}
	n := d.count(2)
	column := again(&d.own().numbers, 2*n)
	f.Times, f.Values = column[:n:n], column[n:]
	var before, gap int64
	for i := range f.Times {
		gap += d.int()
		before += gap
		f.Times[i] = before
	}
	before = 0
	for i := range f.Values {
		before += d.int()
		f.Values[i] = before
	}
	return f, d.err
}

func appendStackDef(dst []byte, f mem.StackDef) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.ID))
	dst = binary.AppendUvarint(dst, uint64(len(f.Locations)))
	for _, l := range f.Locations {
		dst = appendLocation(dst, l)
	}
	return dst
}

func appendLocation(dst []byte, l mem.Location) []byte {
	dst = appendString(dst, l.File)
	dst = appendString(dst, l.Function)
	dst = appendInt(dst, int64(l.Line))
	native := byte(0)
	if l.Native {
		native = 1
	}
	return append(dst, native)
}

func decodeStackDef(d *decoder) (mem.Frame, error) {
	f := mem.StackDef{ID: d.uint32()}
	f.Locations = make([]mem.Location, d.count(4))
	for i := range f.Locations {
		f.Locations[i] = mem.Location{File: d.string(), Function: d.string(), Line: int(d.int()), Native: d.uint() == 1}
	}
	return f, d.err
}

func appendHeapUse(dst []byte, f mem.HeapUse) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Process))
	dst = appendInt(dst, f.Time)
	dst = binary.AppendUvarint(dst, f.Step)
	dst = appendInt(dst, int64(f.Live))
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f.Variance))
	peak := byte(0)
	if f.Peak {
		peak = 1
	}
	dst = append(dst, peak)
	dst = binary.AppendUvarint(dst, uint64(len(f.Sites)))
	var before int64
	for _, s := range f.Sites {
		dst = appendInt(dst, int64(s.Stack)-before)
		before = int64(s.Stack)
		dst = appendString(dst, string(s.Phase))
		dst = appendInt(dst, int64(s.Live))
		dst = binary.AppendUvarint(dst, s.Count)
		dst = appendInt(dst, int64(s.Allocated))
	}
	return appendRest(dst, f)
}

// appendRest adds what is not resident, and how much the samples are off, where there is any: readers before it end with
// the sites.
func appendRest(dst []byte, f mem.HeapUse) []byte {
	absent, excess := f.Absent != 0, false
	for _, s := range f.Sites {
		absent, excess = absent || s.Absent != 0, excess || s.Excess != 0
	}
	if !absent && !excess {
		return dst
	}
	dst = appendInt(dst, int64(f.Absent))
	for _, s := range f.Sites {
		dst = appendInt(dst, int64(s.Absent))
	}
	for _, s := range f.Sites {
		if excess {
			dst = binary.AppendUvarint(dst, uint64(s.Excess))
		}
	}
	return dst
}

func decodeHeapUse(d *decoder) (mem.Frame, error) {
	f := mem.HeapUse{Process: d.uint32(), Time: d.int(), Step: d.uint(), Live: mem.Bytes(d.int()), Variance: d.float(),
		Peak: d.uint() == 1}
	f.Sites = make([]mem.SiteUse, d.count(5))
	var stack int64
	for i := range f.Sites {
		stack += d.int()
		f.Sites[i] = mem.SiteUse{Stack: uint32(stack), Phase: mem.Phase(d.string()), Live: mem.Bytes(d.int()),
			Count: d.uint(), Allocated: mem.Bytes(d.int())}
	}
	if d.err == nil && len(d.rest) > 0 {
		f.Absent = mem.Bytes(d.int())
		for i := range f.Sites {
			f.Sites[i].Absent = mem.Bytes(d.int())
		}
	}
	if d.err == nil && len(d.rest) > 0 {
		for i := range f.Sites {
			f.Sites[i].Excess = mem.Bytes(d.uint())
		}
	}
	return f, d.err
}

func appendSnapshot(dst []byte, f mem.Snapshot) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Process))
	dst = appendInt(dst, f.Time)
	dst = appendString(dst, f.Name)
	dst = appendString(dst, f.Format)
	last := byte(0)
	if f.Last {
		last = 1
	}
	dst = append(dst, last)
	return append(binary.AppendUvarint(dst, uint64(len(f.Piece))), f.Piece...)
}

func decodeSnapshot(d *decoder) (mem.Frame, error) {
	f := mem.Snapshot{Process: d.uint32(), Time: d.int(), Name: d.string(), Format: d.string(), Last: d.uint() == 1}
	f.Piece = append([]byte(nil), d.bytes()...) // the block's buffer is used again
	return f, d.err
}
