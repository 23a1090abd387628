package analyze

import (
	"testing"

	"hightide/internal/mem"
)

func TestPinsAreTheBlocksOfMostlyEmptySegments(t *testing.T) {
	s := &mem.AllocatorSnapshot{}
	segment := func(address uint64, expandable bool, sizes ...mem.Bytes) { // in use, cached, in use, …
		of := mem.Segment{Address: address, Expandable: expandable}
		for i, size := range sizes {
			block := mem.Block{Address: address + uint64(of.Size), Size: size}
			if i%2 == 0 {
				block.State = mem.BlockAllocated
			}
			of.Blocks = append(of.Blocks, block)
			of.Size += size
		}
		s.Segments = append(s.Segments, of)
	}
	segment(1<<30, false, mem.MiB, 19*mem.MiB)                       // pinned
	segment(2<<30, false, mem.MiB, 5*mem.MiB, 2*mem.MiB, 12*mem.MiB) // pinned, by the larger
	segment(3<<30, false, 10*mem.MiB, 10*mem.MiB)                    // half in use
	segment(4<<30, true, mem.MiB, 19*mem.MiB)                        // gives back its pages
	segment(5<<30, false, 0, 20*mem.MiB)                             // empty: empty_cache returns it
	a, err := ExplainDevice(s, 0, "", ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := a.Pins
	if len(got) != 1 || got[0].Blocks != 2 || got[0].Bytes != 3*mem.MiB || got[0].Pinned != 36*mem.MiB {
		t.Errorf("%+v", got)
	}
}
