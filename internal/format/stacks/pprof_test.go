package stacks

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"runtime/pprof"
	"testing"

	"hightide/internal/mem"
)

// TestGoHeap reads profiles of this very process: what is held is shown first, not what was ever allocated, and it is
// sampled.
func TestGoHeap(t *testing.T) {
	kept := make([]byte, 64*mem.MiB)
	for range 4 {
		again := make([]byte, 64*mem.MiB)
		runtime.KeepAlive(again)
	}
	runtime.GC()
	runtime.GC()
	for _, name := range []string{"heap", "allocs"} {
		var file bytes.Buffer
		if err := pprof.Lookup(name).WriteTo(&file, 0); err != nil {
			t.Fatal(err)
		}
		in, err := gzip.NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil || !IsPprof(data[:min(len(data), 64)]) {
			t.Fatalf("%s: not told: %v", name, err)
		}
		p, err := ReadPprof(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		held := int64(0)
		for _, s := range p.Samples {
			held += s.Values[p.Default]
		}
		if kind := p.Kinds[p.Default].Name; kind != "inuse_space" || p.Label != mem.Sampled || held < int64(64*mem.MiB) ||
			held > int64(160*mem.MiB) {
			t.Errorf("%s: %s, %s, %v", name, kind, p.Label, mem.Bytes(held))
		}
	}
	runtime.KeepAlive(kept)
}

// TestMemrayFormat: the version behind the magic, in a capture as memray 1.20 writes it (LZ4) and in one that is not
// compressed.
func TestMemrayFormat(t *testing.T) {
	for head, want := range map[string]uint32{
		"\x04\"M\x18@@\xc0p\x08\x00\x00\xf1\x01memray\x00\r\x00\x00\x00\xf0\x0f": 13,
		"memray\x00\x0c\x00\x00\x00\x00":                                         12,
		"memray\x00\x0c":                                                         0,
		"":                                                                       0,
	} {
		if got := MemrayFormat([]byte(head)); got != want {
			t.Errorf("%q: %d, want %d", head, got, want)
		}
	}
}
