package observe

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"hightide/internal/mem"
)

// Allocated is not resident: zeros that nobody wrote to, or the reserve of a library, take no memory. A block is taken to
// be resident until the kernel says otherwise. Which of its pages are is asked while not all of them are, each time
// that the process' resident memory has changed. What was not resident later, and never was before, was not at the peak.

// leastLooked is the size of blocks that are looked at. Smaller ones share their pages with others, and are touched.
const leastLooked = 64 << 10

const (
	pagesAtOnce   = 8192    // read by one system call
	pagesInFull   = 1 << 16 // up to that many (256 MiB) all pages of a block are read, beyond a part of each stretch
	stretches     = 256
	pagesOfEach   = 64
	pagesEachLook = 1 << 17 // about 2 ms
)

// pagemap reads which pages of a process are resident, /proc/PID/pagemap.
type pagemap struct {
	file   *os.File
	failed bool
	rss    int64 // when the blocks were looked at last
	buffer []byte
}

func (m *pagemap) close() {
	if m.file != nil {
		_ = m.file.Close()
	}
	*m = pagemap{buffer: m.buffer}
}

// look asks for the blocks of every process that may not be resident.
func (r *Recorder) look(now int64) {
	for _, p := range r.order {
		if p.heap == nil || len(p.channels) == 0 || p.gone {
			continue
		}
		p.look(now)
	}
}

func (p *process) look(now int64) {
	b, rss := p.heap, p.rss.Or(0)
	if int64(b.live) > rss && rss > 0 { // some that was resident is no more
		b.openAll()
	} else if moved := max(rss-p.pages.rss, p.pages.rss-rss); b.unlooked < 1<<20 && moved < max(1<<20, rss/200) {
		return
	}
	if len(b.open) == 0 || !p.pages.ready(p.key.pid) {
		return
	}
	p.pages.rss, b.unlooked = rss, 0
	left := pagesEachLook
	kept := b.open[:0]
	for i, address := range b.open {
		if left <= 0 { // the others have their turn next time
			kept = append(slices.Clone(b.open[i:]), kept...)
			p.pages.rss = 0
			break
		}
		if b.lookAt(address, &p.pages, &left, now, p.lastStep) {
			kept = append(kept, address)
		}
	}
	b.open = kept
}

func (m *pagemap) ready(pid int) bool {
	if m.file == nil && !m.failed {
		file, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
		m.file, m.failed = file, err != nil
	}
	return m.file != nil
}

// openAll looks at all blocks anew.
func (b *liveHeap) openAll() {
	b.open = b.open[:0]
	for address, k := range b.blocks {
		if k.size >= leastLooked {
			b.open = append(b.open, address)
		}
	}
	for _, g := range b.regions {
		if g.size >= leastLooked {
			b.open = append(b.open, g.start)
		}
	}
	slices.Sort(b.open)
}

// lookAt says whether the block at an address is to be looked at again: it is not resident in full.
func (b *liveHeap) lookAt(address uint64, m *pagemap, left *int, now int64, step uint64) bool {
	k, isBlock := b.blocks[address]
	at, isRegion := slices.BinarySearchFunc(b.regions, address, byStart)
	switch {
	case isBlock:
	case isRegion:
		k = b.regions[at].block
	default:
		return false // freed
	}
	share, ok := m.resident(address, k.size, left)
	if !ok {
		return false
	}
	fresh := k
	fresh.absent = uint64((1 - share) * float64(k.weight))
	if fresh.absent != k.absent {
		b.replace(k, fresh, now, step)
		if isBlock {
			fresh.saved = false
			b.blocks[address] = fresh
			if b.saving {
				b.fresh = append(b.fresh, address)
			}
		} else {
			b.regions[at].block = fresh
			b.remapped = true
		}
	}
	return share < 1
}

// replace counts a block as it is now found to be. Where it was there at the peak, and less of it is resident than was
// taken for granted, that was so at the peak.
func (b *liveHeap) replace(old, fresh block, now int64, step uint64) {
	b.add(old, -1)
	b.add(fresh, +1)
	if fresh.absent > old.absent && old.number <= b.peakNumber {
		less := mem.Bytes(fresh.absent - old.absent)
		s := old.site // add has saved how it stood
		s.saved.Live, s.saved.Absent = s.saved.Live-less, s.saved.Absent+less
		if bin := b.ages.bin(old.born); bin < len(s.savedBorn) {
			s.savedBorn[bin] -= less
		}
		b.peak, b.peakAbsent = b.peak-less, b.peakAbsent+less
	}
	if b.live > b.peak {
		b.rose(now, step)
	}
}

// resident is the share of a range that is resident.
func (m *pagemap) resident(address, size uint64, left *int) (share float64, ok bool) {
	const page, entry = 4096, 8
	first, last := address/page, (address+size+page-1)/page
	step, run := uint64(pagesAtOnce), uint64(pagesAtOnce)
	if last-first > pagesInFull {
		step, run = (last-first)/stretches, pagesOfEach
	}
	if m.buffer == nil {
		m.buffer = make([]byte, pagesAtOnce*entry)
	}
	here, all := 0, 0
	for from := first; from < last; from += step {
		n, err := m.file.ReadAt(m.buffer[:min(run, last-from)*entry], int64(from*entry))
		if n == 0 || err != nil && n%entry != 0 {
			break
		}
		for i := 0; i < n; i += entry {
			all++
			if binary.LittleEndian.Uint64(m.buffer[i:])>>63 == 1 {
				here++
			}
		}
	}
	*left -= all
	if all == 0 {
		return 0, false
	}
	return float64(here) / float64(all), true
}
