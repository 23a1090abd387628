package allocator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hightide/internal/mem"
)

func (s *poolSet) order() (numbers []uint64) {
	for _, slot := range s.slots {
		if slot.pool != nil {
			numbers = append(numbers, slot.pool.id[1])
		}
	}
	return numbers
}

// TestPoolSetOrder has the orders that PyTorch 2.9's own table gave.
func TestPoolSetOrder(t *testing.T) {
	var s poolSet
	pools := map[uint64]*privatePool{}
	for number, want := range [][]uint64{{1}, {2, 1}, {2, 1, 3}, {2, 4, 1, 3}, {5, 2, 4, 1, 3}} {
		n := uint64(number + 1)
		pools[n] = &privatePool{id: mem.PoolID{0, n}}
		s.add(pools[n])
		s.add(pools[n])
		if got := s.order(); !slices.Equal(got, want) {
			t.Errorf("after %d pools %v, want %v", n, got, want)
		}
	}
	s.remove(pools[4])
	if got, want := s.order(), []uint64{5, 2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("without the fourth %v, want %v", got, want)
	}
}

// TestPoolSetHolds adds and removes many at random: all are found, each once and not before its own bucket.
func TestPoolSetHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s poolSet
	in := map[*privatePool]bool{}
	var all []*privatePool
	for n := range uint64(300) {
		all = append(all, &privatePool{id: mem.PoolID{n % 3 * 1000 * n, n}})
	}
	for range 20_000 {
		p := all[r.IntN(len(all))]
		if r.IntN(2) == 0 {
			s.add(p)
			in[p] = true
		} else {
			s.remove(p)
			delete(in, p)
		}
	}
	if s.count != len(in) || len(s.order()) != len(in) {
		t.Fatalf("%d counted, %d found, want %d", s.count, len(s.order()), len(in))
	}
	for at, slot := range s.slots {
		if slot.pool != nil && (!in[slot.pool] || at-slot.off != s.bucket(slot.pool)) {
			t.Errorf("slot %d holds pool %v, %d off its bucket %d", at, slot.pool.id, slot.off, s.bucket(slot.pool))
		}
	}
}

// TestPoolForOutOfMemory: a MemPool with use_on_oom serves the default pool; from 2.15 on not out of an expandable segment.
// PyTorch 2.9 and 2.15 did so on an A10.
func TestPoolForOutOfMemory(t *testing.T) {
	const memory = 22 * mem.GiB
	for _, test := range []struct {
		minor              int
		expandable, served bool
	}{{9, true, true}, {9, false, true}, {15, true, false}, {15, false, true}} {
		n := NewNative(Settings{Expandable: test.expandable}, RulesOf(2, test.minor), memory, &Device{Capacity: memory})
		mine := mem.PoolID{0, 1}
		n.KeepPool(mine, PoolOptions{UseOnOOM: true})
		n.Free(n.Malloc(Request{Size: mem.GiB, Pool: mine}))
		if n.Malloc(Request{Size: 20*mem.GiB + 512*mem.MiB}) == 0 {
			t.Fatalf("2.%d has no room for the first request", test.minor)
		}
		if served := n.Malloc(Request{Size: mem.GiB}) != 0; served != test.served {
			t.Errorf("2.%d, expandable %v: served %v, want %v", test.minor, test.expandable, served, test.served)
		}
	}
}
