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
