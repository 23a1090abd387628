package observe

import (
	"os"
	"testing"
	"unsafe"

	"hightide/internal/mem"
	"hightide/internal/shm"

	"golang.org/x/sys/unix"
)

// TestResident: what was allocated and never touched takes no memory, at the peak neither, and what is touched later
// does.
func TestResident(t *testing.T) {
	const size = 64 << 20
	block, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(block)
	address := uint64(uintptr(unsafe.Pointer(&block[0])))
	p := &process{key: procKey{pid: os.Getpid()}, heap: newLiveHeap(1)}
	defer p.pages.close()
	b := p.heap
	touch := func(from, to int) {
		for i := from; i < to; i += 4096 {
			block[i] = 1
		}
		p.rss = mem.Some(p.rss.Or(1<<30) + int64(to-from))
	}
	near := func(what string, got, want mem.Bytes) {
		t.Helper()
		if got < want-mem.MiB || got > want+mem.MiB {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	look := func(now int64) {
		p.lookAtResident(now)
		p.confirm(now)
	}
	touch(0, size/4)
	b.alloc(&shm.Alloc{Address: address, Size: size, Weight: size, Origin: shm.OriginMalloc}, 1)
	near("before anybody looked", b.peak, size)
	look(10)
	if p.pages.failed {
		t.Skip("the kernel shows no pages here")
	}
	near("held", b.live, size/4)
	near("absent", b.absent, size*3/4)
	near("the peak", b.peak, size/4)
	use, ok := b.peakUse(0)
	if !ok || len(use.Sites) != 1 {
		t.Fatalf("%+v", use)
	}
	near("the line at the peak", use.Sites[0].Live, size/4)
	near("and what it did not touch", use.Sites[0].Absent, size*3/4)
	touch(size/4, size/2)
	look(20)
	near("touched later", b.live, size/2)
	near("the new peak", b.peak, size/2)
	touch(size/2, size/2+256<<10)
	look(30)
	if b.live != size/2 {
		t.Errorf("looked again for a 200th: %v", b.live)
	}
	look(20 + littleEvery)
	if want := mem.Bytes(size/2 + 256<<10); b.live != want {
		t.Errorf("a little touched last: %v held, want %v", b.live, want)
	}
	p.pages.then = seen{rss: 100 << 20, mark: 200 << 20, allocated: b.live + b.absent}
	p.touchedSince(150<<20, 40)
	near("the mark is older than the look", b.live, size/2)
	p.pages.then.mark = 100 << 20
	p.touchedSince(100<<20+size/8, 40)
	near("touched after the last look, by the mark", b.live, size/2+size/8)
	p.touched(100<<20+size/8+size/16, 41)
	near("touched since, by the resident set", b.live, size/2+size/8+size/16)
	p.touched(100<<20+size/8, 42)
	near("what was counted is not counted again", b.live, size/2+size/8+size/16)
	p.touchedSince(100<<20+2*size, 41)
	near("no more than all", b.live, size)
	near("and nothing is absent", b.absent, 0)
	if err := unix.Madvise(block, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	p.rss = mem.Some(1 << 20)
	look(30 + littleEvery)
	near("given back", b.live, 0)
	b.alloc(&shm.Alloc{Address: address, Size: size, Weight: size, Origin: shm.OriginMalloc}, 1)
	p.rss = mem.Some(1 << 30)
	p.lookAtResident(30 + 2*littleEvery)
	b.free(&shm.Free{Address: address})
	p.confirm(30 + 2*littleEvery)
	near("the peak of what was freed while it was looked at", b.peak, size)
	if b.live != 0 || b.absent != 0 || len(b.sites) != 1 {
		t.Errorf("after the free %v held, %v absent", b.live, b.absent)
	}
}

// TestTouchedAndFreed: a block was looked at before it was filled, and freed before anybody looked again. It held at
// the peak what a reading in between or the last look saw of it.
func TestTouchedAndFreed(t *testing.T) {
	const size, before = 32 << 20, 100 << 20
	begin := func(t *testing.T) (*process, []byte, uint64) {
		memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(memory) })
		p := &process{key: procKey{pid: os.Getpid()}, heap: newLiveHeap(1), rss: mem.Some(before)}
		t.Cleanup(p.pages.close)
		address := uint64(uintptr(unsafe.Pointer(&memory[0])))
		p.heap.alloc(&shm.Alloc{Address: address, Size: size, Weight: size, Origin: shm.OriginMalloc}, 1)
		p.lookAtResident(10)
		if p.pages.failed {
			t.Skip("the kernel shows no pages here")
		}
		if p.heap.peak != size {
			t.Fatalf("%v at the peak before the look is confirmed", p.heap.peak)
		}
		return p, memory, address
	}
	atPeak := func(t *testing.T, p *process, want mem.Bytes) {
		t.Helper()
		use, _ := p.heap.peakUse(0)
		if len(use.Sites) != 1 || use.Sites[0].Live != want || use.Live != want {
			t.Errorf("at the peak %+v, want %v", use, want)
		}
	}
	t.Run("a reading in between", func(t *testing.T) {
		p, _, address := begin(t)
		p.confirm(15)
		p.pages.readResident(p.pages.then.rss+size, 20)
		p.pages.readResident(p.pages.then.rss, 25)
		p.until(19)
		if p.heap.live != 0 {
			t.Errorf("%v held before the reading", p.heap.live)
		}
		p.until(30)
		p.heap.free(&shm.Free{Address: address})
		atPeak(t, p, size)
	})
	t.Run("a reading before the look is confirmed", func(t *testing.T) {
		p, _, address := begin(t)
		p.pages.readResident(p.pages.then.rss+size, 20)
		p.until(30)
		p.confirm(31)
		p.heap.free(&shm.Free{Address: address})
		atPeak(t, p, size)
	})
	t.Run("the mark at its end, before the look is confirmed", func(t *testing.T) {
		p, _, _ := begin(t)
		p.pages.then.mark = p.pages.then.rss
		const small = 64 << 10 // not resident for sure, and it must not take the whole rise
		p.heap.alloc(&shm.Alloc{Address: 1 << 40, Size: small, Weight: small, Origin: shm.OriginMalloc}, 1)
		p.heap.change(1<<40, 11, 0, func(block) uint64 { return small })
		p.pages.then.allocated += small
		p.touchedSince(p.pages.then.rss+size+small, 20)
		p.confirm(30)
		if p.heap.absent != 0 || p.heap.live != size+small {
			t.Errorf("%v held, %v not resident; all was touched", p.heap.live, p.heap.absent)
		}
	})
	t.Run("killed, and only the kernel tells its mark", func(t *testing.T) {
		p, _, _ := begin(t)
		p.confirm(15)
		p.gone, p.MaxRSS = true, mem.Some(p.pages.then.rss)
		sink := memorySink{t, mem.NewRun()}
		r := newRecorder(&Options{}, sink)
		r.order = []*process{p}
		r.lastHeap(p, 20)
		p.pages.close()
		r.highWater(max(p.pages.then.mark, ownMaxRSS()) + size)
		if peak := sink.run.Heap[1].Peak; peak == nil || peak.Live != size {
			t.Errorf("recorded %+v", peak)
		}
	})
	t.Run("something else was freed since", func(t *testing.T) {
		p, _, address := begin(t)
		p.confirm(15)
		p.pages.then.allocated += mem.MiB
		p.pages.readResident(p.pages.then.rss+size, 20)
		p.until(30)
		p.heap.free(&shm.Free{Address: address})
		atPeak(t, p, size)
	})
	t.Run("taken for touched after the peak, and found not to be", func(t *testing.T) {
		p, _, _ := begin(t)
		p.confirm(15)
		const other = 1 << 40
		p.heap.alloc(&shm.Alloc{Address: other, Size: size, Weight: size, Origin: shm.OriginMalloc}, 2)
		p.heap.free(&shm.Free{Address: other})
		p.pages.then.allocated = p.heap.live + p.heap.absent
		p.pages.readResident(p.pages.then.rss+size/2, 20)
		p.until(30)
		if p.heap.live != size/2 {
			t.Errorf("%v taken for touched", p.heap.live)
		}
		p.rss = mem.Some(before + size/2)
		p.lookAtResident(20 + littleEvery)
		p.confirm(30 + littleEvery)
		use, _ := p.heap.peakUse(0)
		if p.heap.live != 0 || use.Live != size || len(use.Sites) != 2 || use.Sites[0].Live != size ||
			use.Sites[1].Live != 0 {
			t.Errorf("%v held, at the peak %+v", p.heap.live, use)
		}
	})
	t.Run("a second look", func(t *testing.T) {
		p, memory, address := begin(t)
		p.confirm(15)
		for i := 0; i < size; i += 4096 {
			memory[i] = 1
		}
		p.rss = mem.Some(before + size)
		p.lookAtResident(20)
		p.heap.free(&shm.Free{Address: address})
		p.confirm(30)
		atPeak(t, p, size)
	})
}
