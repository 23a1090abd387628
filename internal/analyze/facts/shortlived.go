package facts

import (
	"cmp"
	"slices"
	"time"

	"hightide/internal/mem"
)

// The tree is read at intervals. Processes that live hardly longer than those may be gone, or not yet be at their
// highest, when it is read. What many of them took together can have been more than any reading.

const (
	ShortLife   = int64(500 * time.Millisecond)
	fewReadings = 3 // of a process in its life, as where a busy machine lets a second pass between two
	fewestShort = 4
	missedShare = 10 // a tenth of the peak
)

// readings is how often the tree was read while a process lived, as far as that matters.
func (in *Facts) readings(p *mem.Process) int {
	s := in.Find(0, mem.SeriesTreeRSS)
	if s == nil {
		return fewReadings
	}
	from, _ := slices.BinarySearch(s.Times, p.Start)
	to, _ := slices.BinarySearch(s.Times, p.End.Or(in.End))
	return to - from
}

// countShortLived says how many processes lived so shortly, or were read so seldom, that the peak may have been missed by
// what they took. Those that lived at a time can have had, by the kernel's marks, more than a tenth of it. 0: the
// readings are good enough.
func (in *Facts) countShortLived(peak int64) int {
	type change struct{ time, bytes int64 }
	var changes []change
	var known, sum int64
	var short []*mem.Process
	for _, p := range in.Run.Processes {
		if !p.End.Known() || p.End.Or(0)-p.Start >= ShortLife && in.readings(p) >= fewReadings {
			continue
		}
		short = append(short, p)
		if mark, ok := in.ProcessPeak(p).Get(); ok {
			known, sum = known+1, sum+mark
		}
	}
	for _, p := range short { // one that nobody has looked at is taken to be like the others
		mark := in.ProcessPeak(p).Or(sum / max(known, 1))
		changes = append(changes, change{p.Start, mark}, change{p.End.Or(in.End), -mark})
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.time, b.time),
			cmp.Compare(b.bytes, a.bytes))
	})
	var together, most int64
	for _, c := range changes {
		together += c.bytes
		most = max(most, together)
	}
	if len(short) < fewestShort || most < peak/missedShare {
		return 0
	}
	return len(short)
}
