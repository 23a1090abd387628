package mem

import (
	"math/rand/v2"
	"testing"
)

// TestPeakAgainstMap plays random traces with a plain map and compares level and blocks at the peak.
func TestPeakAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		s := &AllocatorSnapshot{}
		trace := Trace{Device: 3}
		live, begin := map[uint64]Bytes{}, map[uint64]Bytes{}
		for a := range uint64(rng.IntN(5)) { // in use before
			begin[a*512] = Bytes(rng.IntN(500))
			live[a*512] = begin[a*512]
		}
		level := func() (sum Bytes) {
			for _, size := range live {
				sum += size
			}
			return sum
		}
		top, at := level(), -1
		for i := range 300 {
			address := uint64(rng.IntN(40)) * 512
			action := ActionAlloc
			size, ok := live[address]
			if ok {
				action = ActionFreeRequested
				delete(live, address)
			} else {
				size = Bytes(rng.IntN(500) + 1)
				live[address] = size
			}
			trace.Action, trace.Address, trace.Size = append(trace.Action, action), append(trace.Address, address), append(trace.Size, size)
			trace.Stream, trace.Stack = append(trace.Stream, 0), append(trace.Stack, 0)
			if sum := level(); sum > top {
				top, at = sum, i
			}
		}
		segment := Segment{Device: 3, Size: 40 * 512}
		for address, size := range live {
			segment.Blocks = append(segment.Blocks, Block{Address: address, Size: 512, Requested: size, State: BlockAllocated})
		}
		s.Segments, s.Traces = []Segment{segment}, []Trace{trace}
		p := s.Peak(3)
		var sum Bytes
		for _, b := range p.Blocks {
			sum += b.Size
		}
		if p.Bytes != top || p.Event != at || sum != top {
			t.Fatalf("round %d: peak %v at %d of blocks of %v, want %v at %d", round, p.Bytes, p.Event, sum, top, at)
		}
	}
}
