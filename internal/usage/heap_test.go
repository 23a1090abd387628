package usage

import (
	"math"
	"testing"

	"hightide/internal/mem"
)

// TestMeanThatExplainsNothing: a variance that no mean comes to, as of sites whose blocks were sampled at several
// means, leaves the mean as the recorder said it.
func TestMeanThatExplainsNothing(t *testing.T) {
	mean := float64(mem.GiB)
	heap := &mem.Heap{Peak: &mem.HeapUse{Live: 64 * mem.MiB, Variance: 1e18,
		Sites: []mem.SiteUse{{Stack: 1, Live: 64 * mem.MiB, Count: 64}}}}
	if got := calibrate(heap, mean); got != mean {
		t.Errorf("a mean of %v became %v", mem.Bytes(mean), mem.Bytes(got))
	}
}

// TestBurst: a site whose first blocks were sampled in a burst holds as much as it is said to only within their error. What
// it gained later was sampled as usual, so its growth is told.
func TestBurst(t *testing.T) {
	const burst, usual = 32 * mem.MiB, mem.MiB / 2
	at := func(time int64, fresh mem.Bytes) mem.SitePoint {
		live := 3*burst + fresh
		return mem.SitePoint{Time: time, SiteUse: mem.SiteUse{Stack: 1, Live: live, Allocated: live,
			Count: 3 + uint64(fresh/usual), Excess: (3*burst*burst + fresh*usual) / live}}
	}
	points := []mem.SitePoint{at(1, 0), at(2, 100*mem.MiB), at(3, 200*mem.MiB)}
	h := &History{errs: &sampled{Sampling{DefaultMean}, map[uint32][]mem.SitePoint{1: points}, []int64{1, 2, 3}, nil}}
	whole, _, _ := h.noise(1, 0, 1, 2)
	if got, want := math.Sqrt(whole), math.Sqrt(200*0.5)*float64(mem.MiB); math.Abs(got-want) > 0.01*want {
		t.Errorf("the rise is off by %v, not %v", mem.Bytes(got), mem.Bytes(want))
	}
	if got := math.Sqrt(h.errs.Variance(points[2].SiteUse, points[2].Live)); got < 55*float64(mem.MiB) {
		t.Errorf("what it holds is off by %v", mem.Bytes(got))
	}
}
