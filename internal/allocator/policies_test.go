package allocator

import (
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
)

// churn asks for and gives back memory at random, and checks what must hold for every Policy. What is
// in use is conserved, reserved covers it, and a limit is kept.
func churn(t *testing.T, name string, setup Setup, seed uint64) Policy {
	t.Helper()
	p := newPolicy(name, setup)
	r := rand.New(rand.NewPCG(seed, 1))
	type live struct {
		h    Handle
		size mem.Bytes
	}
	var blocks, waiting []live
	var requested mem.Bytes
	for range 4000 {
		switch k := r.IntN(20); {
		case k < 9:
			size := mem.Bytes(1 + r.IntN([]int{2000, 300_000, 5 << 20, 60 << 20}[r.IntN(4)]))
			if h := p.Malloc(Request{Size: size, Stream: uint64(r.IntN(3))}); h != 0 {
				blocks = append(blocks, live{h, size})
				requested += size
			}
		case k < 18 && len(blocks) > 0:
			i := r.IntN(len(blocks))
			p.FreeRequested(blocks[i].h)
			waiting = append(waiting, blocks[i])
			blocks = append(blocks[:i], blocks[i+1:]...)
		case k == 19 && r.IntN(20) == 0:
			p.EmptyCache()
		}
		for len(waiting) > r.IntN(4) {
			p.FreeCompleted(waiting[0].h)
			requested -= waiting[0].size
			waiting = waiting[1:]
		}
		u := p.Usage()
		// Retries wait for the device, so blocks may complete before FreeCompleted says so.
		if u.Requested > requested || len(waiting) == 0 && u.Requested != requested {
			t.Fatalf("%s: %d bytes are requested, it counts %d", name, requested, u.Requested)
		}
		if u.Allocated > u.Active || u.Requested > u.Active || u.Active > u.Reserved {
			t.Fatalf("%s: %+v", name, u)
		}
		if c := setup.Capacity; c > 0 && u.Reserved > c {
			t.Fatalf("%s: %d reserved of %d", name, u.Reserved, c)
		}
		if n, ok := p.(*Native); ok {
			checkNative(t, n)
		}
	}
	for _, b := range append(blocks, waiting...) {
		if len(waiting) > 0 && b == waiting[0] {
			waiting = waiting[1:]
		} else {
			p.FreeRequested(b.h)
		}
		p.FreeCompleted(b.h)
	}
	return p
}

// checkNative: blocks of a segment follow each other without gap or overlap, no two free ones touch, and
// the bytes add up.
func checkNative(t *testing.T, n *Native) {
	t.Helper()
	var total mem.Bytes
	end := uint64(0)
	for _, s := range n.State() {
		if s.Address < end {
			t.Fatalf("segment %#x overlaps the one before it", s.Address)
		}
		at := s.Address
		for i, b := range s.Blocks {
			if b.Address != at || b.Size <= 0 || b.Size < b.Requested {
				t.Fatalf("block %#x of %d bytes, expected at %#x", b.Address, b.Size, at)
			}
			if i > 0 && b.State == mem.BlockInactive && s.Blocks[i-1].State == mem.BlockInactive {
				t.Fatalf("block %#x is not joined with the free one before it", b.Address)
			}
			at += uint64(b.Size)
		}
		if end = s.Address + uint64(s.Size); at != end {
			t.Fatalf("the blocks of segment %#x end at %#x, not %#x", s.Address, at, end)
		}
		total += s.Size
	}
	if total != n.total || total != n.Usage().Reserved {
		t.Fatalf("segments of %d bytes, counted %d", total, n.total)
	}
}

func TestPoliciesConserve(t *testing.T) {
	for _, p := range Policies {
		for seed := range uint64(4) {
			for _, setup := range []Setup{
				{},
				{Capacity: 600 * mem.MiB, Memory: 600 * mem.MiB},
				{Capacity: 600 * mem.MiB, Memory: 800 * mem.MiB, Settings: Settings{Expandable: true}, Rules: RulesOf(minor(15))},
				{Memory: 1000 * mem.MiB, Settings: Settings{Fraction: 0.5, GCThreshold: 0.6, MaxSplit: 32 * mem.MiB}, Down: true},
			} {
				u := churn(t, p.Name, setup, seed).Usage()
				if u.Requested != 0 || u.Allocated != 0 || u.Active != 0 {
					t.Errorf("%s: all is freed, it counts %+v", p.Name, u)
				}
			}
		}
	}
}

// TestIdealIsLowest: nothing reserves less than the ideal.
func TestIdealIsLowest(t *testing.T) {
	ideal := churn(t, "ideal", Setup{}, 7).Usage().PeakReserved
	for _, p := range Policies {
		if got := churn(t, p.Name, Setup{}, 7).Usage().PeakReserved; got < ideal && p.Name != "bfc" { // which rounds to 256
			t.Errorf("%s reserves %d, the ideal %d", p.Name, got, ideal)
		}
	}
}
