package wire

import (
	"bytes"
	"hash/crc32"
	"io"
	"testing"

	"hightide/internal/mem"
)

func crcOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// FuzzReader: a stranger's file gives frames or an error, never a panic, never more memory than
// the limits; and what was read can be written and read again unchanged.
func FuzzReader(f *testing.F) {
	f.Add(encode(f, false, everyKind()...))
	f.Add(encode(f, false, imagined()...))
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
	for _, frame := range append(everyKind(), imagined()...) {
		k, payload, err := appendPayload(nil, frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint64(k), payload)
	}
	f.Fuzz(func(t *testing.T, k uint64, payload []byte) {
		if decoders[kind(k)] == nil {
			return
		}
		if frame, err := decodePayload(kind(k), payload); err == nil {
			checkFrame(t, frame)
		}
	})
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
		if frames < 1000 {
			checkFrame(t, f)
		}
	}
}

// checkFrame: writing, reading and writing again gives the same bytes. (Values may differ in what
// has no meaning: an empty map and none, a number that is none.)
func checkFrame(t *testing.T, f mem.Frame) {
	k, payload, err := appendPayload(nil, f)
	if err != nil {
		t.Fatalf("%T was read but cannot be written: %v", f, err)
	}
	again, err := decodePayload(k, payload)
	if err != nil {
		t.Fatalf("%T was written but cannot be read: %v", f, err)
	}
	if _, second, err := appendPayload(nil, again); err != nil || !bytes.Equal(payload, second) {
		t.Fatalf("read, written and read again (%v):\n%#v\n%#v", err, f, again)
	}
}

func decodePayload(k kind, payload []byte) (mem.Frame, error) {
	return decoders[k](&decoder{rest: payload, strings: map[string]string{}})
}
