package mem

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPairsFollowAMap: pairs are those of a plain map, taken at once or as the events come.
func TestPairsFollowAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	trace := &Trace{}
	open, want, allocations := map[uint64]int32{}, []int32{}, int32(0)
	for range 5000 {
		action := []Action{ActionAlloc, ActionFreeRequested, ActionFreeCompleted, ActionOOM}[rng.IntN(4)]
		address := rng.Uint64N(200) * 512
		of, ok := open[address]
		if !ok || action == ActionOOM {
			of = -1
		}
		switch action {
		case ActionAlloc:
			open[address] = allocations
			allocations++
		case ActionFreeCompleted:
			delete(open, address)
		}
		trace.Action, trace.Address, want = append(trace.Action, action), append(trace.Address, address), append(want, of)
	}
	trace.Pairs = &Pairs{}
	trace.Pairs.Extend(trace.Action[:1234], trace.Address[:1234], 2000)
	trace.Pairs.Extend(trace.Action, trace.Address, 2000)
	alone := &Trace{Action: trace.Action, Address: trace.Address}
	for _, p := range []*Pairs{trace.Paired(), alone.Paired()} {
		if !slices.Equal(p.Of, want) || p.Allocations != int(allocations) {
			t.Fatalf("%d allocations, want %d; the pairs differ from a map's", p.Allocations, allocations)
		}
		for address := uint64(0); address < 200*512; address += 512 {
			if _, is := open[address]; p.Open(address) != is {
				t.Errorf("address %#x open: %v, want %v", address, !is, is)
			}
		}
	}
}
