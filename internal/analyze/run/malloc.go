package run

import (
	"fmt"
	"math"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// What a program has freed is not always given back: between blocks that are in use the C library's malloc keeps the
// holes. They are resident and no line holds them.

// Holes are a finding where they are so much of the peak.
const (
	leastHoles = 128 * mem.MiB
	holesShare = 5 // a fifth
)

// highestBefore is where a series is highest, up to a time: what an interpreter frees as it ends are not holes of the
// program's.
func highestBefore(s *mem.Series, end int64) (top int, ok bool) {
	for i, t := range s.Times {
		if t <= end && (!ok || s.Values[i] > s.Values[top]) {
			top, ok = i, true
		}
	}
	return top, ok
}

// holes: a large part of a process' peak is free memory that the C library's malloc keeps.
func holes(in *Input) (r report.Part) {
	for _, p := range in.Run.Processes {
		free, peak, at, ok := in.manyHoles(p)
		if !ok {
			continue
		}
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindFragmentation, Severity: report.Warning, Process: p.ID, Bytes: mem.Some(free), Label: mem.Estimated,
			Title: fmt.Sprintf("%v of the peak are holes in malloc's arenas", mem.Bytes(free)),
			Text: fmt.Sprintf("When %s had %v resident, %v of it (%d %%, estimated) lay free inside the arenas of the C "+
				"library's malloc, between blocks in use. No line holds that memory, and the kernel does not get it back.",
				in.ProcessName(p.ID), mem.Bytes(peak), mem.Bytes(free), free*100/peak),
			Advice: in.AgainstHoles(p.ID, at),
		})
	}
	return r
}

// manyHoles is what of a process's highest memory are holes, and when that was; false: not worth telling.
func (in *Input) manyHoles(p *mem.Process) (free, peak, at int64, ok bool) {
	rss := in.Find(p.ID, mem.SeriesRSS)
	if rss == nil {
		return 0, 0, 0, false
	}
	top, ok := highestBefore(rss, p.Bye.Or(math.MaxInt64))
	if !ok {
		return 0, 0, 0, false
	}
	peak, at = rss.Values[top], rss.Times[top]
	free = in.HolesAt(p.ID, at).Or(0)
	// the two are counted at different moments: as the table of the peak has it
	if heap, ok := in.HeapAt(p.ID, at, peak); ok {
		free = min(free, max(peak-int64(heap.Live), 0))
	}
	return free, peak, at, mem.Bytes(free) >= leastHoles && free >= peak/holesShare
}
