package observe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/sampler"
)

// Allocated is not resident: zeros that nobody wrote to, or the reserve of a library, take no memory. A block is
// taken to be resident until the kernel says otherwise. Which of its pages are is asked while not all of them are,
// each time that the process' resident memory has changed. What was not resident later, and never was before, was not
// at the peak.

// leastLooked is the size of blocks that are looked at. Smaller ones share their pages with others, and are touched.
const leastLooked = 64 << 10

const (
	pagesAtOnce   = 8192    // read by one system call
	pagesInFull   = 1 << 14 // up to that many (64 MiB) all pages of a block are read, beyond a part of each stretch
	stretches     = 256
	pagesOfEach   = 64
	pagesEachLook = 1 << 17 // about 2 ms

	// A change of less than a 200th waits that long: what is touched last of all may be little.
	littleEvery = int64(time.Second)

	looksShare = 100 // looks take no more than a hundredth of one processor
)

// pagemap reads which pages of a process are resident, /proc/PID/pagemap.
type pagemap struct {
	file   *os.File
	failed bool
	rss    int64   // when the blocks were looked at last
	at     int64   // that time
	then   seen    // once all had been
	since  reading // the highest after that
	buffer []byte
	runs   []pageRun
	noScan bool // the kernel does not tell runs
}

// readResident takes in how much is resident now.
func (m *pagemap) readResident(rss, now int64) {
	if rss > m.since.value {
		m.since = reading{time: now, value: rss}
	}
}

func (m *pagemap) close() {
	if m.file != nil {
		_ = m.file.Close()
		m.file = nil
	}
}

// restart forgets what was read: the process has a new address space.
func (m *pagemap) restart() {
	m.close()
	*m = pagemap{buffer: m.buffer, runs: m.runs, noScan: m.noScan}
}

// lookAtResident asks for the blocks of every process that may not be resident, as often as its cost allows. In between the
// resident set tells what was touched since.
func (r *Recorder) lookAtResident(now int64) {
	for _, p := range r.order {
		p.confirm(now)
	}
	if now < r.nextPages {
		return
	}
	runtime.LockOSThread()
	began := sampler.ThreadCPU()
	defer func() {
		r.nextPages = now + looksShare*(sampler.ThreadCPU()-began)
		runtime.UnlockOSThread()
	}()
	for _, p := range r.order {
		if p.heap == nil || len(p.channels) == 0 || p.gone {
			continue
		}
		p.lookAtResident(now)
	}
}

func (p *process) lookAtResident(now int64) {
	b, rss := p.heap, p.rss.Or(0)
	if int64(b.live) > rss && rss > 0 { // some that was resident is no more
		b.openAll()
	} else if !p.pages.due(now, max(rss-p.pages.rss, p.pages.rss-rss, int64(b.unlooked)), rss) {
		return
	}
	if len(b.open) == 0 || !p.pages.ready(p.key.pid) {
		return
	}
	then := seenOf(p.key.pid, b.live+b.absent)
	if then.rss == 0 { // it is ending
		return
	}
	p.pages.then, p.pages.since = then, reading{}
	p.pages.rss, p.pages.at, b.unlooked = rss, now, 0
	left := pagesEachLook
	kept := b.open[:0]
	for i, address := range b.open {
		if left <= 0 { // the others have their turn next time
			kept = append(slices.Clone(b.open[i:]), kept...)
			p.pages.rss = 0
			break
		}
		if p.lookAt(address, now, &left) {
			kept = append(kept, address)
		}
	}
	b.open = kept
}

// seen is how a process stood right before a look: what is touched while the pages are read may or may not be seen.
type seen struct {
	rss, mark int64 // resident, and the kernel's high-water mark; 0: not known
	allocated mem.Bytes
	counted   int64 // touched since then, as far as it was counted
}

// until takes in what was resident before a moment, once all that was told until then was. A block that was freed right
// after the reading held its pages at the time.
func (p *process) until(moment int64) {
	since := p.pages.since
	if since.time == 0 || since.time > moment {
		return
	}
	p.pages.since.time = 0
	if p.heap == nil {
		return
	}
	p.confirm(since.time)
	then := &p.pages.then
	if len(p.heap.open) <= fewOpen || muchOf(since.value, since.value-then.rss-then.counted) {
		p.touched(since.value, since.time)
	}
}

// fewOpen is how many blocks may be gone through at each reading, however little was touched.
const fewOpen = 32

// touchedSince takes in the kernel's high-water mark: where it has risen since the last look.
func (p *process) touchedSince(mark, now int64) {
	if mark > p.pages.then.mark {
		p.touched(mark, now)
	}
}

// touched takes in that so much was resident after the last look. What that is more than then, and than was allocated
// since, was touched of what was not resident: of the newest blocks, which are being filled. Where more was freed than
// allocated, it is not known how much of that was given back: all that was allocated counts against the rise.
func (p *process) touched(rss, now int64) {
	if now >= p.pages.at { // what the look found comes first, else its blocks have no part in the rise
		p.confirm(now)
	}
	b, then := p.heap, &p.pages.then
	if b == nil || then.rss == 0 || b.absent == 0 {
		return
	}
	allocated := int64(b.live+b.absent) - int64(then.allocated)
	if allocated < 0 {
		allocated = int64(b.unlooked)
	}
	touched := rss - then.rss - allocated - then.counted
	if touched <= 0 {
		return
	}
	then.counted += touched
	slices.SortFunc(b.open, func(x, y uint64) int {
		first, _, _ := b.findBlock(x)
		second, _, _ := b.findBlock(y)
		return cmp.Compare(second.number, first.number)
	})
	for _, address := range b.open {
		if touched <= 0 {
			return
		}
		b.change(address, now, p.lastStep, func(k block) uint64 {
			left := max(int64(k.absent)-touched, 0)
			touched -= int64(k.absent) - left
			if left < looseCount {
				left = 0
			}
			return uint64(left)
		})
	}
}

// looseCount is what the kernel's counts of a process may be off by: each processor gathers pages before it adds them.
const looseCount = int64(mem.MiB)

// seenOf reads what a process has resident, and the most it had.
func seenOf(pid int, allocated mem.Bytes) seen {
	rss, mark := sampler.Resident(pid)
	return seen{rss: rss, mark: mark, allocated: allocated}
}

// due says whether so much that moved, of so much resident memory, is worth a look.
func (m *pagemap) due(now, moved, rss int64) bool {
	return muchOf(rss, moved) || moved > 0 && now-m.at >= littleEvery
}

// muchOf says whether a change of the resident set is worth going through the blocks at once.
func muchOf(rss, moved int64) bool { return moved >= max(1<<20, rss/200) }

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

// looked is how much of a block was not resident when its pages were read.
type looked struct{ address, number, absent uint64 }

// lookAt says whether the block at an address is to be looked at again: it is not resident in full. What is found
// resident counts at once, as the block may be freed by the next visit.
func (p *process) lookAt(address uint64, now int64, left *int) bool {
	k, _, ok := p.heap.findBlock(address)
	if !ok {
		return false
	}
	share, ok := p.pages.resident(address, k.size, left)
	if !ok {
		return false
	}
	if absent := uint64((1 - share) * float64(k.weight)); absent < k.absent {
		p.heap.change(address, now, p.lastStep, func(block) uint64 { return absent })
	} else {
		p.looked = append(p.looked, looked{address, k.number, absent})
	}
	return share < 1
}

// confirm counts what the last look found absent, once all that was told until then was taken in. The pages of a block
// that was freed meanwhile were gone because of that.
func (p *process) confirm(now int64) {
	for _, l := range p.looked {
		if k, _, ok := p.heap.findBlock(l.address); ok && k.number == l.number {
			p.heap.change(l.address, now, p.lastStep, func(block) uint64 { return l.absent })
		}
	}
	p.looked = p.looked[:0]
}

// findBlock returns the block at an address, and which of the mappings it is, else -1; none where it was freed.
func (b *liveHeap) findBlock(address uint64) (k block, region int, ok bool) {
	if k, ok = b.blocks[address]; ok {
		return k, -1, true
	}
	if region, ok = slices.BinarySearchFunc(b.regions, address, byStart); ok {
		return b.regions[region].block, region, true
	}
	return block{}, -1, false
}

// change says how much of the block at an address is not resident; nothing where it was freed.
func (b *liveHeap) change(address uint64, now int64, step uint64, absent func(block) uint64) {
	k, region, ok := b.findBlock(address)
	if !ok {
		return
	}
	fresh := k
	if fresh.absent = absent(k); fresh.absent != k.absent {
		b.replace(k, &fresh, now, step)
		if region < 0 {
			fresh.saved = false
			b.blocks[address] = fresh
			if b.saving {
				b.fresh = append(b.fresh, address)
			}
		} else {
			b.regions[region].block = fresh
			b.remapped = true
		}
	}
}

// replace counts a block as it is now found to be. Where it was there at the peak, and less of it is resident than was
// taken for granted then, that was so at the peak.
func (b *liveHeap) replace(old block, fresh *block, now int64, step uint64) {
	b.add(old, -1)
	b.add(*fresh, +1)
	if fresh.peakGen != b.peakGen {
		fresh.peakGen, fresh.peakAbsent = b.peakGen, old.absent
	}
	if fresh.absent > fresh.peakAbsent && old.number <= b.peakNumber {
		less := mem.Bytes(fresh.absent - fresh.peakAbsent)
		fresh.peakAbsent = fresh.absent
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
	return m.residentOf(address, size, pagesInFull, left)
}

// residentOf looks at all pages where those are no more than inFull, else at a part of each stretch.
func (m *pagemap) residentOf(address, size uint64, inFull int, left *int) (share float64, ok bool) {
	const page = 4096
	first, last := address/page, (address+size+page-1)/page
	step, run := uint64(pagesAtOnce), uint64(pagesAtOnce)
	if last-first > uint64(inFull) {
		parts := min(uint64(stretches), uint64(max(inFull/pagesOfEach, 1)))
		step, run = (last-first)/parts, pagesOfEach
	}
	here, all := 0, 0
	for from := first; from < last; from += step {
		n, there := m.count(from, min(from+run, last))
		if n == 0 {
			break
		}
		here, all = here+there, all+n
	}
	*left -= all
	if all == 0 {
		return 0, false
	}
	return float64(here) / float64(all), true
}

// count is how many pages of a range of page numbers the kernel tells of, and how many of these are resident.
func (m *pagemap) count(first, last uint64) (all, here int) {
	if here, ok := m.scan(first, last); ok {
		return int(last - first), here
	}
	const entry = 8
	if m.buffer == nil {
		m.buffer = make([]byte, pagesAtOnce*entry)
	}
	n, err := m.file.ReadAt(m.buffer[:(last-first)*entry], int64(first*entry))
	if err != nil && n%entry != 0 {
		return 0, 0
	}
	for i := 0; i < n; i += entry {
		if binary.LittleEndian.Uint64(m.buffer[i:])>>63 == 1 {
			here++
		}
	}
	return n / entry, here
}

// From Linux 6.7 the kernel tells runs of resident pages (PAGEMAP_SCAN) instead of a word for each page. That is a
// third of the price where all are there, a fourteenth where none is. It also tells the page of zeros that a program
// only read, which counts in no resident set.

// scan counts the resident pages of a range of page numbers; false where the kernel cannot.
func (m *pagemap) scan(first, last uint64) (here int, ok bool) {
	if !m.noScan {
		here, ok = scanPages(m.file, &m.runs, first, last)
		m.noScan = !ok
	}
	return here, ok
}
