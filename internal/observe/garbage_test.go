package observe

import (
	"testing"

	"hightide/internal/mem"
)

// TestGarbage: what the heap freed while the collector worked is what it freed, by stack, in whichever order the
// rings are read.
func TestGarbage(t *testing.T) {
	heap := newLiveHeap(1)
	site := func(stack uint32) *site { return heap.site(stack) }
	var g garbage
	g.collected(&message{Began: 100, Ended: 200, Count: 7})
	for _, f := range []struct {
		at    int64
		stack uint32
		bytes uint64
	}{{90, 1, 1 << 30}, {100, 1, 30 << 20}, {150, 2, 50 << 20}, {200, 2, 5 << 20}, {201, 2, 1 << 30}} {
		heap.recent.add(block{weight: f.bytes, site: site(f.stack)}, f.at)
	}
	g.takeCollection(heap, g.pending[0])
	if mostOf(g.heap) != 85*mem.MiB || g.stack != 2 || g.most != 55*mem.MiB || g.objects != 7 || g.longest != 100 {
		t.Errorf("%+v", g)
	}
	for _, freed := range []mem.Bytes{10, 22, 85, 40} {
		g.heap = kept(g.heap, freed*mem.MiB)
	}
	if n := often(g.heap); n != 4 { // 85, 22, 85, 40
		t.Errorf("%d times a quarter of the largest", n)
	}
	for i := range 3 * mostRecent {
		heap.recent.add(block{weight: 1, site: site(1)}, int64(i))
	}
	if n := len(heap.recent.all); n > mostRecent || heap.recent.all[n-1].time != 3*mostRecent-1 {
		t.Errorf("%d frees are kept", n)
	}
}
