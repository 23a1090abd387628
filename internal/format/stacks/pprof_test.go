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

// TestGoHeap reads profiles of this very process: what is held is shown first, not what was ever allocated, and it is sampled.
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
		if kind := p.Kinds[p.Default].Name; kind != "inuse_space" || p.Label != mem.Sampled || held < int64(64*mem.MiB) || held > int64(160*mem.MiB) {
			t.Errorf("%s: %s, %s, %v", name, kind, p.Label, mem.Bytes(held))
		}
	}
	runtime.KeepAlive(kept)
}
