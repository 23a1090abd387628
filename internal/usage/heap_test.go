package usage

import (
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
