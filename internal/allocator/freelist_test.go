package allocator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFreeList compares the set with a sorted slice: few and many entries of one size, small and large.
func TestFreeList(t *testing.T) {
	order := func(a, b entry) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.tie, b.tie)) }
	for seed, sizes := range [][]uint64{{512}, {512, 1024, 2 << 20}, {0}, {3 << 20}, {512, 3 << 20}} {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		var list freeList
		var want []entry
		for i := range 6000 {
			size := sizes[r.IntN(len(sizes))]
			if size == 0 {
				size = uint64(1+r.IntN(8000)) * 512
			}
			growing := i/1500%2 == 0
			if e := (entry{key{size, r.Uint64() % (1 << 40)}, int32(i + 1)}); growing == (r.IntN(5) > 0) {
				at, _ := slices.BinarySearchFunc(want, e, order)
				want = slices.Insert(want, at, e)
				list.insert(e.key, e.block)
			} else if len(want) > 0 {
				at := r.IntN(len(want))
				list.remove(want[at].key)
				want = slices.Delete(want, at, at+1)
			}
			if i%50 == 0 {
				compareFree(t, &list, want)
			}
			probe := key{size + uint64(r.IntN(1025)), r.Uint64() % (1 << 40)}
			at, _ := slices.BinarySearchFunc(want, entry{key: probe}, order)
			p, ok := list.lowerBound(probe)
			if ok != (at < len(want)) || ok && *list.at(p) != want[at] {
				t.Fatalf("sizes %v, step %d: finds %v for %v", sizes, i, ok, probe)
			}
		}
	}
}

func compareFree(t *testing.T, list *freeList, want []entry) {
	t.Helper()
	if list.count != len(want) {
		t.Fatalf("%d entries, want %d", list.count, len(want))
	}
	i := 0
	p, ok := list.first()
	for ; ok; p, ok = list.next(p) {
		if *list.at(p) != want[i] {
			t.Fatalf("forwards, entry %d is %v, want %v", i, *list.at(p), want[i])
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("forwards ends after %d of %d", i, len(want))
	}
	for p, ok = list.last(); ok; p, ok = list.previous(p) {
		i--
		if *list.at(p) != want[i] {
			t.Fatalf("backwards, entry %d is %v, want %v", i, *list.at(p), want[i])
		}
	}
	if i != 0 {
		t.Fatalf("backwards ends %d entries early", i)
	}
}
