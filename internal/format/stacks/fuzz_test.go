package stacks

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzProfile: a value or an error, never both.
func FuzzProfile(f *testing.F) {
	f.Add([]byte("\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05\x22\x04\x08\x01\x22\x00\x32\x00\x32\x05space\x32\x05bytes"))
	var big []byte
	big = binary.AppendUvarint(append(big, 0x12), 1<<40)
	f.Add(big)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPprof(bytes.NewReader(data))
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
	})
}
