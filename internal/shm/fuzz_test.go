package shm

import (
	"errors"
	"testing"
)

// FuzzNext: whatever a ring and its header say, reading ends, stays inside the ring, and gives
// records or ErrCorrupt; a dead writer's ring is always emptied.
func FuzzNext(f *testing.F) {
	w := newWriter(RoleHeap, minRing)
	w.write(kindAlloc, 0, 6, words(0xdead, 100, 200, 5, uint64(33)|1<<32, 1, 16))
	w.write(kindCode, 0, 5, append(words(half(1, 20), half(0x030b|4<<16, 2), half(4, 0)), "a.pyff\x80\x01\x02\x03"...))
	w.reserve(48)
	w.write(kindCounters, 1, 3, words(5, 50))
	f.Add(append([]byte(nil), w.ring[:256]...), false, uint64(0), uint64(216), true)
	f.Add([]byte{8, 0, 0, 0, 0, 0, 0, 0}, true, uint64(minRing-8), uint64(minRing), false)
	f.Fuzz(func(t *testing.T, content []byte, agent bool, tail, head uint64, final bool) {
		role := RoleHeap
		if agent {
			role = RoleAgent
		}
		w := newWriter(role, minRing)
		for i, b := range content {
			w.ring[(tail+uint64(i))%minRing] = b
		}
		store64(w.mapping, offTail, tail)
		store64(w.mapping, offHead, head)
		c, err := Open(w.mapping)
		if err != nil {
			return
		}
		err = read(c, final, func(r Record) {
			switch r := r.(type) {
			case *Alloc:
				if len(r.Frames) > MaxFrames {
					t.Fatalf("%d frames", len(r.Frames))
				}
			case *Code:
				Line(r.Python, r.Table, r.FirstLine, 2)
			}
		})
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if err == nil && final && c.Pending() != 0 {
			t.Fatalf("%d bytes left behind a dead writer", c.Pending())
		}
	})
}
