package smaps

import (
	"bytes"
	"testing"
)

// FuzzSmaps: a value or an error, never both.
func FuzzSmaps(f *testing.F) {
	f.Add([]byte("1000-2000 r--p 00000000 00:00 0 [heap]\nRss: 4 kB\nVmFlags: rd\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data))
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
	})
}
