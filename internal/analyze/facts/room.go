package facts

import (
	"fmt"
	"math"

	"hightide/internal/mem"
)

// HostRoom is what was left of the host's memory, and of what: of the machine's, or of the limit of the control group.
func (in *Facts) HostRoom() (room mem.Optional, of string) {
	if s := in.Find(0, mem.SeriesSystemAvailable); s != nil {
		low := s.Values[0]
		for _, v := range s.Values {
			low = min(low, v)
		}
		room, of = mem.Some(low), "of the machine's memory"
	}
	limit, limited := in.LastOf(0, mem.SeriesCgroupLimit).Get()
	if high, used := in.groupKeeps().Get(); limited && used && limit-high < room.Or(math.MaxInt64) {
		room, of = mem.Some(max(limit-high, 0)), fmt.Sprintf("of the control group's %v", mem.Bytes(limit))
	}
	return room, of
}

// groupKeeps is the most that the control group was charged with and that the kernel cannot take back: without pages
// of files.
func (in *Facts) groupKeeps() (most mem.Optional) {
	used, file := in.Find(0, mem.SeriesCgroupUsed), in.Find(0, mem.SeriesCgroupFile)
	if used == nil {
		return most
	}
	for i, at := range used.Times {
		if file == nil {
			most.Raise(mem.Some(used.Values[i]))
		} else if pages, known := file.At(at).Get(); known {
			most.Raise(mem.Some(max(used.Values[i]-pages, 0)))
		}
	}
	return most
}
