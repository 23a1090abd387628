package observe

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// What the program has freed, the C library's malloc may keep: holes between blocks that are in use. The library counts
// them itself, and the heap library asks it at our request. Which of the free bytes are resident, the count does not
// tell: malloc_trim gives pages back that stay free. So the arenas' pages are looked at, as far as the bytes matter.

// mallocCounts is at which resident set the C library was asked to count, and what was seen of its arenas last.
type mallocCounts struct {
	asked    int64
	rss      int64
	resident float64 // share of the free bytes
	looked   bool
}

const (
	countMoved  = 100        // part of the resident set that must have come or gone
	countSeldom = int64(2e9) // time between counts below the highest so far
	lookPause   = 500        // times what the last look took, until the next of any process
	leastMoved  = 1 << 20
	leastHoles  = 16 << 20 // free bytes of which the residency is looked at
	arenaAlign  = 64 << 20 // glibc's HEAP_MAX_SIZE: where the heaps of other arenas begin, and how far they may reach
	arenaPages  = 1 << 15  // looked at for one count: about 0.5 ms
	arenasAtAll = 4096
)

// askForCount asks for a count where the resident set has changed since the last one: at once about its highest.
func (p *process) askForCount(now int64) {
	rss, c := p.rss.Or(0), &p.counts
	moved := max(rss-c.rss, c.rss-rss)
	if moved < leastMoved || moved < rss/countMoved {
		return
	}
	if rss < p.highest-p.highest/50 && now-c.asked < countSeldom {
		return
	}
	c.asked, c.rss = now, rss
	for _, channel := range p.channels {
		if channel.role == shm.RoleHeap {
			channel.reader.CountMalloc()
		}
	}
}

// mallocCounted takes in a count.
func (r *Recorder) mallocCounted(p *process, m *shm.Malloc) {
	put := func(name mem.Quantity, label mem.Label, value int64) {
		r.columns.putSample(seriesKey{process: p.ID, name: name}, mem.UnitBytes, label, m.When(), value)
	}
	put(mem.SeriesMallocUsed, mem.Measured, m.Used)
	put(mem.SeriesMallocFree, mem.Measured, m.Free)
	put(mem.SeriesMallocTop, mem.Measured, m.Top)
	put(mem.SeriesMallocMapped, mem.Measured, m.Mapped)
	if m.Free < leastHoles || r.recovering {
		return
	}
	if began := r.now(); began >= r.nextLook {
		resident, threads, ok := p.arenasResident()
		if !ok {
			return
		}
		put(mem.SeriesMallocThreads, mem.Estimated, threads)
		p.counts.resident = float64(min(max(resident-m.Used, 0), m.Free)) / float64(m.Free)
		ended := r.now()
		p.counts.looked, r.nextLook = true, ended+lookPause*(ended-began)
	}
	if !p.counts.looked {
		return
	}
	put(mem.SeriesMallocResident, mem.Estimated, int64(p.counts.resident*float64(m.Free)))
}

// arenasResident estimates how much of malloc's arenas is resident, by a sample of their pages, and how much of that is
// of arenas beside the main one. Not ok where the kernel does not tell.
func (p *process) arenasResident() (all, threads int64, ok bool) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", p.key.pid))
	if err != nil {
		return 0, 0, false
	}
	defer file.Close()
	arenas := findArenas(file)
	if len(arenas) == 0 || !p.pages.ready(p.key.pid) {
		return 0, 0, false
	}
	var reserved, resident, beside float64
	for _, a := range arenas {
		reserved += float64(a.end - a.start)
	}
	for _, a := range arenas {
		size := a.end - a.start
		left := 0
		share, ok := p.pages.residentOf(a.start, size, max(pagesOfEach, int(arenaPages*float64(size)/reserved)), &left)
		if !ok {
			return 0, 0, false
		}
		resident += share * float64(size)
		if !a.main {
			beside += share * float64(size)
		}
	}
	return int64(resident), int64(beside), true
}

// arena is a range of addresses that malloc cuts blocks from.
type arena struct {
	start, end uint64
	main       bool // the program's heap, that of its first thread
}

// findArenas finds malloc's arenas in /proc/PID/maps. They are the program's heap, and others. These begin where
// glibc lets the heaps of other arenas begin, and end there or with the reserve that they can still grow into.
func findArenas(maps io.Reader) []arena {
	var found []arena
	var last arena
	lines := bufio.NewScanner(maps)
	for lines.Scan() && len(found) < arenasAtAll {
		// 7f1c…-7f1d… rw-p 00000000 00:00 0   [heap]
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || end <= start {
			continue
		}
		at := arena{start: start, end: end, main: len(fields) > 5 && fields[5] == "[heap]"}
		anonymous := len(fields) == 5 && fields[4] == "0"
		reserve := anonymous && fields[1] == "---p" && at.start == last.end && at.end%arenaAlign == 0
		if last.end > 0 && (reserve || last.end%arenaAlign == 0) {
			found = append(found, last)
		}
		last = arena{}
		switch {
		case at.main:
			found = append(found, at)
		case anonymous && fields[1] == "rw-p" && at.start%arenaAlign == 0:
			last = at
		}
	}
	return found
}
