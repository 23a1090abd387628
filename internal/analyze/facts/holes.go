package facts

import (
	"sort"
	"time"

	"hightide/internal/mem"
)

// countNear is how long after a moment a count may be that says what was so then.
const countNear = int64(2 * time.Second)

// HolesAt is what lay free and resident inside malloc's arenas at a moment, by the last count before it; absent
// where there was none. Blocks may have come into the holes since. So of the next count, where as much was resident,
// the smaller counts.
func (in *Facts) HolesAt(process uint32, at int64) mem.Optional {
	free := in.Find(process, mem.SeriesMallocFree)
	if free == nil {
		return mem.Optional{}
	}
	after := sort.Search(len(free.Times), func(i int) bool { return free.Times[i] > at })
	if after == 0 {
		return mem.Optional{}
	}
	least := in.freeResident(process, free.Times[after-1], free.Values[after-1])
	if after < len(free.Times) && free.Times[after]-at <= countNear {
		then, _ := in.RSSAt(process, at)
		if next, ok := in.rssAfter(process, free.Times[after]); ok && next >= then-then/holdsStill {
			least = min(least, in.freeResident(process, free.Times[after], free.Values[after]))
		}
	}
	return mem.Some(least)
}

// rssAfter is the first reading of a process' RSS that is not older.
func (in *Facts) rssAfter(process uint32, at int64) (int64, bool) {
	s := in.Find(process, mem.SeriesRSS)
	if s == nil {
		return 0, false
	}
	i := sort.Search(len(s.Times), func(i int) bool { return s.Times[i] >= at })
	if i == len(s.Times) {
		return 0, false
	}
	return s.Values[i], true
}

// holdsStill is the part of the resident set by which it may fall and be as it was.
const holdsStill = 50

// freeResident is how much of the free bytes of a count was resident.
func (in *Facts) freeResident(process uint32, t, free int64) int64 {
	resident := in.Find(process, mem.SeriesMallocResident)
	if resident == nil {
		return free
	}
	return min(free, resident.At(t).Or(free))
}

// againstHoles is what was tried, on bench/truth/figures/holes_torch.py: the peaks are in bench/README.md. There the
// main arena has the holes, between blocks of 1 MiB.
const againstHoles = "Set MALLOC_MMAP_THRESHOLD_=131072 in the environment, or call " +
	"ctypes.CDLL(None).malloc_trim(0) where much was freed. " +
	"On a PyTorch program with such holes each lowered a peak of 1.54 GiB to 1.21 GiB; jemalloc, preloaded, to 1.38 " +
	"GiB; MALLOC_ARENA_MAX=1 changed nothing there."

// againstThreads is what helps where threads have arenas of their own, each with its holes. What it saves is in
// bench/README.md.
const againstThreads = "Set MALLOC_ARENA_MAX=1 in the environment: all threads then use one arena, and fill each " +
	"other's holes, at some cost where " +
	"many allocate at once. ctypes.CDLL(None).malloc_trim(0) gives back what is free at that moment."

// AgainstHoles is what helps, by whose arenas had the holes at a moment.
func (in *Facts) AgainstHoles(process uint32, at int64) string {
	threads, free := in.Find(process, mem.SeriesMallocThreads), in.Find(process, mem.SeriesMallocFree)
	if threads != nil && free != nil && threads.At(at).Or(0) > free.At(at).Or(0)/2 {
		return againstThreads
	}
	return againstHoles
}
