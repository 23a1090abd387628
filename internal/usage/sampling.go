package usage

import (
	"math"
	"strconv"

	"hightide/internal/mem"
)

// DefaultMean is the heap library's mean distance between samples, in bytes.
const DefaultMean = float64(512 * mem.KiB)

// Sampling says how a process's heap was sampled, and so how far its figures can be off.
//
// A block of size s is recorded with probability 1-exp(-s/mean) and then stands for
// w = s/(1-exp(-s/mean)) bytes; its share of the variance is w(w-s). A site's blocks are taken to be
// of like size, so its average weight gives s, and s the variance.
type Sampling struct{ Mean float64 }

// SamplingOf is how a process's heap was sampled.
func SamplingOf(run *mem.Run, process uint32) Sampling {
	mean := DefaultMean
	if p := run.Process(process); p != nil {
		if v, err := strconv.ParseFloat(p.Facts["heap_mean_bytes"], 64); err == nil && v > 0 {
			mean = v
		}
	}
	return Sampling{calibrate(run.Heap[process], mean)}
}

// calibrate raises the mean where the recorder's own variance at the peak says that it was larger:
// it adapts to the load, and the fact holds only its last value.
func calibrate(heap *mem.Heap, mean float64) float64 {
	if heap == nil || heap.Peak == nil || heap.Peak.Variance <= 0 {
		return mean
	}
	for range 8 {
		var sum float64
		for _, u := range heap.Peak.Sites[:min(len(heap.Peak.Sites), 2000)] {
			sum += Sampling{mean}.Variance(u.Live, u.Count)
		}
		if sum >= 0.7*heap.Peak.Variance {
			break
		}
		mean *= 1.5
	}
	return mean
}

// excess is w-s for a site whose blocks stand for w bytes each: the variance a byte of it carries.
func (s Sampling) excess(w float64) float64 {
	if w <= s.Mean*1.0005 {
		return w // blocks much smaller than the mean: each stands for the mean alone
	}
	if w > 12*s.Mean {
		return 0
	}
	size := w
	for range 24 {
		size = w * -math.Expm1(-size/s.Mean)
	}
	return w - size
}

// Variance of what a site holds, in bytes².
func (s Sampling) Variance(live mem.Bytes, count uint64) float64 {
	if live <= 0 || count == 0 {
		return 0
	}
	return float64(live) * s.excess(float64(live)/float64(count))
}

// Half95 is the half width of the 95 % interval around what an estimate says. The variance is estimated with it, too small
// where the estimate is. So both ends of the score interval are inside, that of the counts for which the estimate would
// be within 1.96 of their own standard deviations. Of a few samples only, it is no wider than the estimate.
func Half95(variance float64, estimate mem.Bytes) mem.Bytes {
	if variance <= 0 {
		return 0
	}
	plain, grain := 1.96*math.Sqrt(variance), 0.0
	if estimate > 0 {
		grain = variance / float64(estimate) // what one sample stands for
	}
	score := 1.96*math.Sqrt(variance+square(0.98*grain)) + 1.92*grain
	return mem.Bytes(math.Round(max(plain, min(score, float64(estimate)))))
}
