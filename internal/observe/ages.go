package observe

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// When what a heap holds was allocated, by site. A site's bytes may rise since it keeps ever more, or since each
// block that replaces another is larger. The first holds blocks of every age, the second only young ones. The time
// since the heap's first record is cut into at most ageBins bins of equal width, which doubles when they are full.
type heapAges struct {
	first tick
	shift uint8 // a bin is 1<<shift ticks
}

// tick is a moment of the monotonic clock in units of 1<<tickBits ns, 67 ms.
type tick uint32

const (
	tickBits = 26
	ageBins  = 32

	leastAged = 512 * mem.KiB // held by a site whose ages are written
	mostAged  = 64            // sites
	old       = 8             // of this part of the process's life up to then, a block is old when it is freed
)

func tickOf(time int64) tick { return tick(time >> tickBits) }

func (a *heapAges) bin(born tick) int { return int((max(born, a.first) - a.first) >> a.shift) }

// born counts a block of a site in (+) or out (-), by when it was allocated.
func (b *liveHeap) born(s *site, at tick, weight mem.Bytes) {
	b.ages.first = cmp.Or(b.ages.first, at)
	for b.ages.bin(at) >= ageBins {
		b.widen()
	}
	bin := b.ages.bin(at)
	if bin >= len(s.born) {
		s.born = append(s.born, make([]mem.Bytes, bin+1-len(s.born))...)
	}
	s.born[bin] += weight
}

// widen makes the bins twice as wide.
func (b *liveHeap) widen() {
	b.ages.shift++
	for _, s := range b.sites {
		s.born = halved(s.born)
		s.savedBorn = halved(s.savedBorn)
	}
}

func halved(born []mem.Bytes) []mem.Bytes {
	for k := range born {
		if k%2 == 0 {
			born[k/2] = born[k]
		} else {
			born[k/2] += born[k]
		}
	}
	return born[:(len(born)+1)/2]
}

// outlived notes a block that is freed, if it is old.
func (b *liveHeap) outlived(k block, now int64) {
	b.recent.add(k, now)
	if life := tickOf(now) - b.ages.first; tickOf(now)-k.born > max(life/old, 1) {
		k.site.outlived += mem.Bytes(k.weight)
	}
}

// ageUse is what the sites that hold most were made of: now, or at the peak.
func (b *liveHeap) ageUse(time int64, peak bool) (use mem.HeapAges, ok bool) {
	use = mem.HeapAges{Process: b.process, Time: time, From: int64(b.ages.first) << tickBits,
		Width: 1 << (tickBits + int(b.ages.shift)), Peak: peak}
	for _, s := range b.sites {
		live, born, outlived := s.Live, s.born, s.outlived
		if peak && s.savedGen == b.peakGen {
			live, born, outlived = s.saved.Live, s.savedBorn, s.savedOutlived
		}
		if live >= leastAged {
			use.Sites = append(use.Sites, mem.SiteAges{Stack: s.Stack, Born: slices.Clone(born), Outlived: outlived})
		}
	}
	if len(use.Sites) == 0 {
		return use, false
	}
	slices.SortFunc(use.Sites, mem.MoreAged)
	use.Sites = use.Sites[:min(len(use.Sites), mostAged)]
	return use, true
}
