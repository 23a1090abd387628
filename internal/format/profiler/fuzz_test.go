package profiler

import (
	"bytes"
	"testing"
)

// FuzzXSpace: a value or an error, never both.
func FuzzXSpace(f *testing.F) {
	names := "\x22\x14\x08\x01\x12\x10\x12\x10MemoryAllocation" // of event 1
	stats := "\x2a\x16\x08\x01\x12\x12\x12\x10allocation_bytes" + "\x2a\x0a\x08\x02\x12\x06\x12\x04addr"
	line := "\x1a\x16\x08\x07\x18\x05\x22\x10\x08\x01\x10\x09\x22\x04\x08\x01\x18\x10\x22\x04\x08\x02\x18\x40"
	plane := "\x12\x09/host:CPU" + line + names + stats
	f.Add([]byte("\x0a" + string(rune(len(plane))) + plane))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadXSpace(bytes.NewReader(data))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if s != nil {
			s.Totals(-1)
		}
	})
}
