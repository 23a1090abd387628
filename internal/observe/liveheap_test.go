package observe

import (
	"math"
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

func alloc(address, size, weight uint64) *shm.Alloc {
	return &shm.Alloc{Address: address, Size: size, Weight: weight, Origin: shm.OriginMalloc}
}

func TestLiveHeapCountsWhatLives(t *testing.T) {
	b := newLiveHeap(1)
	b.alloc(alloc(0x1000, 100, 1000), 1)
	b.alloc(alloc(0x2000, 50, 975), 2)
	b.alloc(alloc(0x3000, 8<<20, 8<<20), 1)
	b.free(&shm.Free{Address: 0x1000})
	b.free(&shm.Free{Address: 0x9999}) // never recorded

	use := b.use(5, 1, true)
	if use.Live != 975+8<<20 {
		t.Errorf("live %d", use.Live)
	}
	want := []mem.SiteUse{
		{Stack: 1, Live: 8 << 20, Count: 1, Allocated: 1000 + 8<<20},
		{Stack: 2, Live: 975, Count: 1, Allocated: 975},
	}
	if len(use.Sites) != 2 || use.Sites[0] != want[0] || use.Sites[1] != want[1] {
		t.Errorf("sites %+v, want %+v", use.Sites, want)
	}
	if want := float64(975 * (975 - 50)); use.Variance != want {
		t.Errorf("variance %g, want %g: the block of 8 MiB is always recorded", use.Variance, want)
	}
	if again := b.use(6, 1, true); len(again.Sites) != 0 {
		t.Errorf("nothing changed, but sites %+v", again.Sites)
	}
}

func TestLiveHeapPeakIsTheWholePicture(t *testing.T) {
	b := newLiveHeap(1)
	b.alloc(alloc(1, 1000, 1000), 1)
	b.alloc(alloc(2, 2000, 2000), 2) // the peak: 3000
	b.free(&shm.Free{Address: 2})
	b.alloc(alloc(3, 1500, 1500), 3) // 2500
	b.free(&shm.Free{Address: 1})

	peak, ok := b.peakUse(0)
	if !ok || !peak.Peak || peak.Live != 3000 || len(peak.Sites) != 2 {
		t.Fatalf("peak %+v", peak)
	}
	if peak.Sites[0].Stack != 2 || peak.Sites[0].Live != 2000 || peak.Sites[1].Live != 1000 {
		t.Errorf("sites at the peak %+v", peak.Sites)
	}
	if _, ok := b.peakUse(0); ok {
		t.Error("the same peak is worth writing twice")
	}
	b.alloc(alloc(4, 9000, 9000), 4)
	if peak, ok := b.peakUse(0.02); !ok || peak.Live != 10500 || len(peak.Sites) != 2 {
		t.Errorf("second peak %+v", peak)
	}
}

func TestLiveHeapPartsOfAMapping(t *testing.T) {
	const page = 4096
	b := newLiveHeap(1)
	a := alloc(10*page, 10*page, 10*page)
	a.Origin = shm.OriginMmap
	b.alloc(a, 1)
	b.free(&shm.Free{Address: 12 * page, Size: 3 * page}) // a hole in the middle
	if b.live != 7*page || len(b.regions) != 2 {
		t.Fatalf("live %d in %d regions, want 7 pages in 2", b.live, len(b.regions))
	}
	b.free(&shm.Free{Address: 5 * page, Size: 6 * page}) // over the front
	if b.live != 6*page {
		t.Errorf("live %d pages, want 6", b.live/page)
	}
	b.free(&shm.Free{Address: 0, Size: 100 * page})
	if b.live != 0 || len(b.regions) != 0 || b.sites[1].Live != 0 || b.sites[1].Count != 0 {
		t.Errorf("live %d, regions %+v, site %+v", b.live, b.regions, b.sites[1].SiteUse)
	}
}

func TestLiveHeapReusedAddress(t *testing.T) {
	b := newLiveHeap(1)
	b.alloc(alloc(1, 100, 100), 1)
	b.alloc(alloc(1, 300, 300), 2) // the free between them was dropped
	if b.live != 300 || b.sites[1].Live != 0 {
		t.Errorf("live %d, first site %d", b.live, b.sites[1].Live)
	}
	b.restart()
	if b.live != 0 || b.sites[2].Count != 0 || b.variance != 0 {
		t.Errorf("after exec: live %d, site %+v", b.live, b.sites[2].SiteUse)
	}
}

// TestLiveHeapErrorIsHonest: over many seeds, the true live bytes lie within 1.96 standard errors of
// the estimate about as often as they should.
func TestLiveHeapErrorIsHonest(t *testing.T) {
	const mean, seeds = 512 << 10, 200
	inside := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newLiveHeap(1)
		truth := 0.0
		for i := range uint64(4000) {
			size := uint64(random.ExpFloat64()*40_000) + 1
			truth += float64(size)
			if p := 1 - math.Exp(-float64(size)/mean); random.Float64() < p {
				b.alloc(alloc(i+1, size, uint64(float64(size)/p)), 1)
			}
		}
		if math.Abs(float64(b.live)-truth) <= 1.96*math.Sqrt(b.variance) {
			inside++
		}
	}
	if share := float64(inside) / seeds; share < 0.91 || share > 0.985 {
		t.Errorf("the truth lies in %.1f %% of the 95 %% intervals", 100*share)
	}
}

// TestMeanThatChanges: where blocks were sampled at several means, each site says how far off it is; else nothing is
// written for it.
func TestMeanThatChanges(t *testing.T) {
	b := newLiveHeap(1)
	b.alloc(alloc(0x1000, 1000, 500_000), 1)
	b.alloc(alloc(0x2000, 2000, 501_000), 1)
	if use := b.use(5, 1, true); use.Sites[0].Excess != 0 {
		t.Errorf("one mean: %+v", use.Sites)
	}
	b.alloc(alloc(0x3000, 1000, 16_000_000), 2)
	b.alloc(alloc(0x4000, 1000, 500_000), 2)
	use := b.use(6, 1, true)
	want := (16e6*(16e6-1000) + 500e3*(500e3-1000)) / 16.5e6
	if got := float64(use.Sites[0].Excess); use.Sites[0].Stack != 2 || math.Abs(got-want) > 1 {
		t.Errorf("%+v, want an excess of %v", use.Sites, want)
	}
	if peak, ok := b.peakUse(0); !ok || peak.Sites[0].Excess != use.Sites[0].Excess {
		t.Errorf("at the peak %+v", peak.Sites)
	}
}
