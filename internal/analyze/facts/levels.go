package facts

import (
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// The least rise of a whole process or device that is worth a word, where lines are not known.
const (
	LeastTotal = float64(16 * mem.MiB)
	LeastShare = 0.01 // of the peak
)

// Levels are bytes at moments.
type Levels struct{ Times, Values []int64 }

// NotTakenBack is what the kernel cannot take back of the resident memory of a process, whose RSS is given: what is
// its own, what it shares with others, and with it what was swapped out. A page of a mapped file is read again when
// it is needed, and one that was written is written to the file first, so a file that is read through mmap is no
// growth. A page of a private mapping that was written is the process's own, and files of /dev/shm are shared memory:
// the kernel counts them so. Of locked pages it says only how many there are: those beyond all other memory must be
// of files.
func (in *Facts) NotTakenBack(process uint32, rss Levels) []int64 {
	kept, swap := slices.Clone(rss.Values), in.Find(process, mem.SeriesSwap)
	for i, at := range rss.Times {
		kept[i] += ValueAt(swap, at) - in.takenBack(process, at, rss.Values[i])
	}
	return kept
}

// takenBack are the resident bytes of mapped files that the kernel can take back, of a process that has so much
// resident.
func (in *Facts) takenBack(process uint32, at, rss int64) int64 {
	files, locked := in.Find(process, mem.SeriesRSSFile), in.Find(process, mem.SeriesLocked)
	return max(min(in.between(files, process, at), rss-ValueAt(locked, at), rss), 0)
}

// between is a series at a moment between two readings of its process: it is recorded where it changed, and read with
// the RSS.
func (in *Facts) between(s *mem.Series, process uint32, at int64) int64 {
	read := in.Find(process, mem.SeriesRSS)
	before := ValueAt(s, at)
	if s == nil || read == nil {
		return before
	}
	next, exact := slices.BinarySearch(read.Times, at)
	if exact || next == 0 || next == len(read.Times) {
		return before
	}
	from, to := read.Times[next-1], read.Times[next]
	first := ValueAt(s, from)
	return first + int64(float64(ValueAt(s, to)-first)*float64(at-from)/float64(to-from))
}

// FilesRose is by how much the resident pages of mapped files of a process rose to the end, after warm-up; ok where
// that is worth a word.
func (in *Facts) FilesRose(process uint32) (rise, end mem.Bytes, ok bool) {
	rss := in.Find(process, mem.SeriesRSS)
	if rss == nil {
		return 0, 0, false
	}
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	from += int64(usage.WarmUpPart * float64(to-from))
	first, last := in.takenBack(process, from, ValueAt(rss, from)), in.takenBack(process, to, ValueAt(rss, to))
	return mem.Bytes(last - first), mem.Bytes(last), float64(last-first) >= max(LeastTotal,
		LeastShare*float64(rss.Values[rss.Peak()]))
}

// ValueAt is the last value of a series, 0 where there is none.
func ValueAt(s *mem.Series, at int64) int64 {
	if s == nil {
		return 0
	}
	return s.At(at).Or(0)
}
