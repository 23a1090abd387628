package observe

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// liveHeap keeps what the heap sampler saw of one process: every recorded block that is still live,
// summed by site. A block counts with its weight, the bytes its sample stands for, so Live is an
// unbiased estimate. Its variance is the Horvitz–Thompson one for Poisson sampling, the sum of
// weight·(weight − size), zero for blocks that are always recorded.
type liveHeap struct {
	process  uint32
	sites    map[uint32]*site
	blocks   map[uint64]block
	regions  []region  // blocks that came from mmap, by address: munmap can free a part
	live     mem.Bytes // allocated and, as far as was looked, resident (resident.go)
	absent   mem.Bytes // allocated and not resident
	variance float64
	written  mem.Bytes // live when it was written last
	numbered uint64    // blocks so far
	unlooked mem.Bytes // of blocks that came since all were looked at
	open     []uint64  // addresses of blocks that are not known to be resident in full

	peak        mem.Bytes // highest live so far
	peakTime    int64
	peakStep    uint64
	peakVar     float64
	peakGen     uint64 // bumped at every new peak; see touch
	peakWritten mem.Bytes
	peakNumber  uint64 // blocks up to then
	peakAbsent  mem.Bytes
	least, most uint64 // means of the sample that were seen, see seen

	recent recentFrees
	traced bool // by tracemalloc: looks at all that Python holds, and no blocks (pythonheap.go)

	changed []*site // since the last use
	ages    heapAges

	// What changed since it was last saved (saved.go), kept only where it is.
	saving          bool
	fresh, gone     []uint64 // addresses of blocks
	reset, remapped bool
}

// site is the sum of one stack.
type site struct {
	mem.SiteUse
	told      mem.Bytes // Live as last written
	toldAlloc mem.Bytes
	listed    bool    // in liveHeap.changed
	variance  float64 // of Live

	born     []mem.Bytes // Live by when it was allocated, see heapAges
	outlived mem.Bytes   // freed when it was old

	// The site as it was at the peak, saved at its first change after it.
	savedGen      uint64
	saved         mem.SiteUse
	savedBorn     []mem.Bytes
	savedOutlived mem.Bytes
}

type block struct {
	size, weight uint64
	absent       uint64 // of weight, not resident when it was last looked at
	peakAbsent   uint64 // the same at the peak peakGen, where it has changed since
	peakGen      uint64
	number       uint64 // which of all blocks it was
	site         *site
	born         tick
	saved        bool
}

type region struct {
	start, end uint64
	block
}

func newLiveHeap(process uint32) *liveHeap {
	return &liveHeap{process: process, sites: map[uint32]*site{}, blocks: map[uint64]block{}, peakGen: 1}
}

// alloc takes in a recorded allocation whose stack has the given number.
func (b *liveHeap) alloc(a *shm.Alloc, stack uint32) {
	b.forget(a.Address, a.When()) // the free was lost on the way, or is still in another thread's record
	s := b.sites[stack]
	if s == nil {
		s = b.site(stack)
		s.Phase = a.Word.Phase()
	}
	weight := max(a.Weight, a.Size)
	b.seen(a.Size, weight)
	b.numbered++
	fresh := block{size: a.Size, weight: weight, number: b.numbered, site: s, born: tickOf(a.When())}
	b.add(fresh, +1)
	if a.Size >= leastLooked {
		b.open = append(b.open, a.Address)
		b.unlooked += mem.Bytes(weight)
	}
	s.Allocated += mem.Bytes(weight)
	if a.Origin.Mapped() {
		at, _ := slices.BinarySearchFunc(b.regions, a.Address, byStart)
		b.regions = slices.Insert(b.regions, at, region{a.Address, a.Address + a.Size, fresh})
		b.remapped = true
	} else {
		b.blocks[a.Address] = fresh
		if b.saving {
			b.fresh = append(b.fresh, a.Address)
		}
	}
	if b.live > b.peak {
		b.rose(a.When(), a.Word.Step())
	}
}

// site returns the sum of a stack, opening it at first sight.
func (b *liveHeap) site(stack uint32) *site {
	s := b.sites[stack]
	if s == nil {
		s = &site{SiteUse: mem.SiteUse{Stack: stack}}
		b.sites[stack] = s
	}
	return s
}

// rose notes a new peak.
func (b *liveHeap) rose(time int64, step uint64) {
	b.peak, b.peakTime, b.peakStep, b.peakVar = b.live, time, step, b.variance
	b.peakNumber, b.peakAbsent = b.numbered, b.absent
	b.peakGen++
}

// free takes in the end of a block, or of a part of a mapping.
func (b *liveHeap) free(f *shm.Free) {
	if f.Size == 0 {
		b.forget(f.Address, f.When())
		return
	}
	b.unmap(f.Address, f.Address+f.Size, f.When())
}

func (b *liveHeap) forget(address uint64, now int64) {
	if old, ok := b.blocks[address]; ok {
		delete(b.blocks, address)
		b.add(old, -1)
		b.outlived(old, now)
		if old.saved && b.saving {
			b.gone = append(b.gone, address)
		}
		return
	}
	if at, ok := slices.BinarySearchFunc(b.regions, address, byStart); ok {
		b.add(b.regions[at].block, -1)
		b.outlived(b.regions[at].block, now)
		b.regions = slices.Delete(b.regions, at, at+1)
		b.remapped = true
	}
}

// unmap takes [from, to) out of the mappings it touches; what is left of one keeps its share.
func (b *liveHeap) unmap(from, to uint64, now int64) {
	at, _ := slices.BinarySearchFunc(b.regions, from, byStart)
	if at > 0 && b.regions[at-1].end > from {
		at--
	}
	for at < len(b.regions) && b.regions[at].start < to {
		r := b.regions[at]
		b.remapped = true
		b.add(r.block, -1)
		b.regions = slices.Delete(b.regions, at, at+1)
		gone := r.block
		for _, left := range []region{{start: r.start, end: from}, {start: to, end: r.end}} {
			if left.start < left.end && left.start >= r.start && left.end <= r.end {
				share := float64(left.end-left.start) / float64(r.end-r.start)
				left.block = block{size: left.end - left.start, weight: uint64(share * float64(r.weight)),
					absent: uint64(share * float64(r.absent)), peakAbsent: uint64(share * float64(r.peakAbsent)), peakGen: r.peakGen,
					number: r.number, site: r.site, born: r.born}
				gone.weight -= min(left.weight, gone.weight)
				gone.absent -= min(left.absent, gone.absent)
				b.add(left.block, +1)
				b.regions = slices.Insert(b.regions, at, left)
				at++
			}
		}
		b.outlived(gone, now)
	}
}

func byStart(r region, address uint64) int { return cmp.Compare(r.start, address) }

// add counts a block in (+1) or out (-1).
func (b *liveHeap) add(k block, sign int64) {
	s := k.site
	b.touch(s)
	absent := min(k.absent, k.weight)
	held, gone := mem.Bytes(sign)*mem.Bytes(k.weight-absent), mem.Bytes(sign)*mem.Bytes(absent)
	s.Live, s.Absent = s.Live+held, s.Absent+gone
	s.Count += uint64(sign)
	b.live, b.absent = b.live+held, b.absent+gone
	b.born(s, k.born, held)
	share := float64(k.weight-absent) / float64(max(k.weight, 1))
	variance := float64(sign) * share * share * float64(k.weight) * float64(k.weight-min(k.size, k.weight))
	b.variance, s.variance = b.variance+variance, s.variance+variance
}

// seen notes the mean at which a block was sampled, as its weight has it. Where that changed, sites say how far off
// they are.
func (b *liveHeap) seen(size, weight uint64) {
	if size > weight/2 {
		return // of a large block the weight says too little of it
	}
	mean := weight - size/2
	if b.least == 0 {
		b.least = mean
	}
	b.least, b.most = min(b.least, mean), max(b.most, mean)
}

// of is what a site holds.
func (b *liveHeap) of(s *site) mem.SiteUse {
	use := s.SiteUse
	if float64(b.most) > meansDiffer*float64(b.least) && use.Live > 0 {
		use.Excess = mem.Bytes(max(s.variance, 0) / float64(use.Live))
	}
	return use
}

// meansDiffer is from how much on the mean is taken to have changed: a weight tells it within a few per cent.
const meansDiffer = 1.3

// touch lists a site as changed, and saves how it stood at the last peak before it changes.
func (b *liveHeap) touch(s *site) {
	if s.savedGen != b.peakGen {
		s.savedGen, s.saved = b.peakGen, b.of(s)
		s.savedBorn, s.savedOutlived = append(s.savedBorn[:0], s.born...), s.outlived
	}
	if !s.listed {
		s.listed = true
		b.changed = append(b.changed, s)
	}
}

// restart forgets every block: the process has a new address space.
func (b *liveHeap) restart() {
	for _, s := range b.sites {
		b.touch(s)
		s.Live, s.Count, s.Absent, s.outlived, s.variance = 0, 0, 0, 0, 0
		clear(s.born)
	}
	clear(b.blocks)
	b.regions, b.open, b.live, b.absent, b.variance = nil, nil, 0, 0, 0
	b.reset, b.remapped, b.fresh, b.gone = true, true, nil, nil
}

// small is how far a site may move before it is written again: less than what any sampled block
// stands for, and 1 %. The last use of a run is written with everything.
func small(s *site) bool {
	moved := max(s.Live-s.told, s.told-s.Live)
	return moved < 32*mem.KiB || moved*100 < s.told
}

// use is the heap now: the sites that changed since the last one. With all, also those that hardly
// did.
func (b *liveHeap) use(time int64, step uint64, all bool) mem.HeapUse {
	use := b.total(time, step)
	b.written = b.live
	kept := b.changed[:0]
	for _, s := range b.changed {
		if !all && small(s) {
			kept = append(kept, s)
			continue
		}
		s.listed = false
		if s.Live == s.told && s.Allocated == s.toldAlloc {
			continue
		}
		s.told, s.toldAlloc = s.Live, s.Allocated
		use.Sites = append(use.Sites, b.of(s))
	}
	b.changed = kept
	sortSites(use.Sites)
	return use
}

func (b *liveHeap) total(time int64, step uint64) mem.HeapUse {
	return mem.HeapUse{Process: b.process, Time: time, Step: step, Live: b.live, Variance: max(b.variance, 0),
		Absent: b.absent}
}

// peakUse is the complete picture at the highest live heap, and whether it is worth writing. The
// peak has risen by more than the given share since it was written last.
func (b *liveHeap) peakUse(share float64) (mem.HeapUse, bool) {
	if changed := max(b.peak-b.peakWritten, b.peakWritten-b.peak); b.peak == 0 || float64(changed) <= share*float64(b.peakWritten) {
		return mem.HeapUse{}, false
	}
	b.peakWritten = b.peak
	use := mem.HeapUse{Process: b.process, Time: b.peakTime, Step: b.peakStep, Live: b.peak, Variance: max(b.peakVar, 0),
		Peak: true, Absent: b.peakAbsent}
	for _, s := range b.sites {
		at := b.of(s)
		if s.savedGen == b.peakGen {
			at = s.saved
		}
		if at.Live != 0 || at.Absent != 0 {
			use.Sites = append(use.Sites, at)
		}
	}
	sortSites(use.Sites)
	return use, true
}

// sortSites puts the largest first, so that the same run writes the same bytes.
func sortSites(sites []mem.SiteUse) {
	slices.SortFunc(sites, func(a, b mem.SiteUse) int {
		return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(a.Stack, b.Stack))
	})
}

// looked takes over all that is held, by stack. What is not among it is held no more.
func (b *liveHeap) looked(uses map[uint32]mem.SiteUse, at int64, step uint64) {
	for stack, s := range b.sites {
		if _, held := uses[stack]; !held && s.Live != 0 {
			uses[stack] = mem.SiteUse{}
		}
	}
	for stack, use := range uses {
		s := b.site(stack)
		if s.Live == use.Live && s.Count == use.Count {
			continue
		}
		b.touch(s)
		b.live += use.Live - s.Live
		s.Allocated += max(use.Live-s.Live, 0) // at least
		s.Live, s.Count = use.Live, use.Count
	}
	if b.live > b.peak {
		b.rose(at, step)
	}
}
