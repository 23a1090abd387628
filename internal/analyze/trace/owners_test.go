package trace

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

// The parameters of testdata/imagined/owned-a10.py by hand, each tensor in blocks of 512 bytes.
const (
	ownedWeights = mem.Bytes(256*512*4 + 3*512*4 + 512*64*4 + 512)
	ownedBuffers = mem.Bytes(2*512*4 + 512)
)

func TestOwnersComeBeforeRules(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/owned-a10.pickle")
	without := byCategory(t, s)
	if without.Accuracy != nil {
		t.Error("there is an accuracy where nobody named owners")
	}
	a := byCategory(t, testkit.Owned(t, "imagined/owned-a10.pickle"))
	got := map[string]mem.Bytes{}
	var sum mem.Bytes
	for _, g := range a.Blame {
		got[g.Name] += g.Bytes
		sum += g.Bytes
	}
	if got["parameters"] != ownedWeights || got["optimizer state"] != 2*ownedWeights || got["buffers"] != ownedBuffers {
		t.Errorf("%v", got)
	}
	if sum != a.Peak.Allocated || sum != without.Peak.Allocated {
		t.Errorf("%d in categories, the peak is %d", sum, a.Peak.Allocated)
	}
	c := a.Accuracy
	if c == nil || c.Owned < 3*ownedWeights || c.Agreed <= 0 || c.Agreed > c.Owned || c.OwnedBlocks < 18 {
		t.Fatalf("%+v", c)
	}
	t.Logf("rules agree on %d of %d bytes, %d of %d blocks", c.Agreed, c.Owned, c.AgreedBlocks, c.OwnedBlocks)
}

func byCategory(t *testing.T, s *mem.AllocatorSnapshot) *report.Allocator {
	t.Helper()
	a, err := OfDevice(s, 0, "owned", Options{By: "category"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
