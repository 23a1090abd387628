package wire

import (
	"bytes"
	"hash/crc32"
	"io"
	"reflect"
	"testing"

	"hightide/internal/mem"
)

func crcOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// FuzzReader: a stranger's file gives frames or an error, never a panic, never more memory than
// the limits; and what was read can be written and read again unchanged.
func FuzzReader(f *testing.F) {
	f.Add(encode(f, false, everyKind()...))
	f.Add(encode(f, true, everyKind()...))
	f.Add(blocks(f, 4)[:100])
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			if r != nil {
				t.Fatal("both a reader and an error")
			}
			return
		}
		checkFrames(t, r)
		_, _ = Load(bytes.NewReader(data))
	})
}

// FuzzFrames looks behind the checksum, where random changes of a file never come.
func FuzzFrames(f *testing.F) {
	for _, frame := range everyKind() {
		k, payload, err := appendPayload(nil, frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint64(k), payload)
	}
	f.Fuzz(func(t *testing.T, k uint64, payload []byte) {
		if len(payload) > 1<<16 {
			return
		}
		var file bytes.Buffer
		w, _ := NewWriter(&file)
		w.raw = append(appendUints(nil, k, uint64(len(payload))), payload...)
		w.frames = 1
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		checkFrames(t, r)
	})
}

func appendUints(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		for v >= 0x80 {
			dst = append(dst, byte(v)|0x80)
			v >>= 7
		}
		dst = append(dst, byte(v))
	}
	return dst
}

func checkFrames(t *testing.T, r *Reader) {
	for frames := 0; ; frames++ {
		f, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("a source that does not fail gave %v", err)
		}
		if frames > 1000 {
			continue
		}
		again, err := readOne(t, f)
		if err != nil {
			t.Fatalf("%T was read but cannot be written: %v", f, err)
		}
		if !reflect.DeepEqual(again, f) && !hasNaN(f) {
			t.Fatalf("read, written and read again:\n%#v\n%#v", f, again)
		}
	}
}

// hasNaN: not a number is not equal to itself.
func hasNaN(f mem.Frame) bool {
	h, ok := f.(mem.HeapUse)
	return ok && h.Variance != h.Variance
}

func readOne(t *testing.T, f mem.Frame) (mem.Frame, error) {
	var file bytes.Buffer
	w, err := NewWriter(&file)
	if err != nil {
		return nil, err
	}
	if err := w.Write(f); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	r, err := NewReader(&file)
	if err != nil {
		return nil, err
	}
	return r.Next()
}
