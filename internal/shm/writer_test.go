package shm

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// writer is the C protocol in Go: reserve by compare-and-swap, stamp busy, fill, commit. Several
// goroutines may write at once.
type writer struct {
	mapping []byte
	ring    []byte
}

func newWriter(role Role, ring int) *writer {
	// A slice of words, so that the mapping is aligned as a real one is.
	words := make([]uint64, (HeaderBytes+ring)/8)
	mapping := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	return initWriter(mapping, role, ring)
}

func initWriter(mapping []byte, role Role, ring int) *writer {
	put := binary.LittleEndian
	put.PutUint32(mapping[offABI:], ABI)
	put.PutUint32(mapping[offRole:], uint32(role))
	put.PutUint32(mapping[offPID:], 4242)
	put.PutUint32(mapping[offHeaderBytes:], HeaderBytes)
	put.PutUint64(mapping[offProcessStart:], 77)
	put.PutUint64(mapping[offRingBytes:], uint64(ring))
	put.PutUint64(mapping[offCreatedMono:], 1000)
	put.PutUint64(mapping[offCreatedWall:], 2000)
	store64(mapping, offMagic, Magic)
	return &writer{mapping, mapping[HeaderBytes : HeaderBytes+ring]}
}

// reserve claims n bytes that do not wrap, padding as needed, and returns their place; -1: full.
func (w *writer) reserve(n int) int {
	for {
		head := load64(w.mapping, offHead)
		tail := load64(w.mapping, offTail)
		at := int(head) & (len(w.ring) - 1)
		pad := 0
		if at+n > len(w.ring) {
			pad = len(w.ring) - at
		}
		if head-tail+uint64(pad+n) > uint64(len(w.ring)) {
			atomic.AddUint64(at64(w.mapping, offDroppedRecords), 1)
			atomic.AddUint64(at64(w.mapping, offDroppedBytes), uint64(n))
			return -1
		}
		if !atomic.CompareAndSwapUint64(at64(w.mapping, offHead), head, head+uint64(pad+n)) {
			continue
		}
		if pad > 0 {
			store64(w.ring, at, uint64(pad))
			at = 0
		}
		store64(w.ring, at, uint64(n)|busy)
		return at
	}
}

func (w *writer) write(kind Kind, aux uint16, time uint64, payload []byte) bool {
	n := (recordBytes + len(payload) + 7) &^ 7
	at := w.reserve(n)
	if at < 0 {
		return false
	}
	binary.LittleEndian.PutUint64(w.ring[at+8:], time)
	copy(w.ring[at+recordBytes:], payload)
	store64(w.ring, at, uint64(n)|uint64(kind)<<32|uint64(aux)<<48)
	return true
}

func words(values ...uint64) []byte {
	var p []byte
	for _, v := range values {
		p = binary.LittleEndian.AppendUint64(p, v)
	}
	return p
}

func half(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }
