package sampler

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

// How much anonymous memory a lineage counts more than once is known without a walk of all its pages. The kernel's
// page map says of each page whether one process alone maps it. A page that two have in common has the same address
// in both, and a sample of addresses is enough. Where nothing is shared there is nothing to see again, until the next
// fork.

const (
	runsOfAll     = 12000 // of neighbouring pages, in all members together
	runsAtLeast   = 500   // of one member
	runsAtMost    = 4000
	pagesOfRun    = 8
	entryBytes    = 8
	pagePresent   = 1 << 63
	pageOfFile    = 1 << 61 // or shared memory
	pageExclusive = 1 << 56 // from Linux 4.2
	firstSample   = 2e6     // ns a member, before one has told it
)

// errTorn says that a process gave memory back while it was looked at.
var errTorn = errors.New("memory is given back meanwhile")

// sample looks at the pages of all members. maps is a buffer.
func (l *lineage) sample(now int64, maps []byte) error {
	if l.places == nil {
		l.list(maps)
	}
	n := len(l.places) * pagesOfRun
	if cap(l.counts) < n {
		l.counts = make([]uint8, n)
	}
	l.counts = l.counts[:n]
	clear(l.counts)
	pages := make(map[*Process]pageSet, len(l.members))
	torn := int64(0) // bytes that came or went while their process was looked at
	for _, p := range l.members {
		p.readStatus()
		anon := p.parts.anon
		shared, err := p.countShared(l.places, l.counts)
		if err != nil {
			return err
		}
		p.readStatus()
		if anon-p.parts.anon > fewBytes { // what is being unmapped is out of the map before it is out of the sum
			return errTorn
		}
		torn += max(anon-p.parts.anon, p.parts.anon-anon)
		pages[p] = shared
	}
	unit := float64(l.stride) / pagesOfRun * float64(pageSize) // bytes that a page stands for
	twice, off, doubtful := l.counted()
	l.twice = bounds{max(int64(unit*(twice-off-doubtful))-torn, 0), int64(unit*(twice+off)) + torn}
	for _, p := range l.members {
		common := min(int64(unit*float64(pages[p].count(nil))), p.parts.anon)
		lent := int64(0)
		if lender := p.sharing.lender; lender != nil {
			lent = min(int64(unit*float64(pages[p].count(pages[lender]))), common)
		}
		p.wasSampled(now, common, lent)
	}
	return nil
}

// counted sums up the pages of the sample that are counted more than once, and how far that may be off: neighbouring
// runs differ by chance. Where children have children, four processes that share pages of one address may be two
// pairs.
func (l *lineage) counted() (twice, off, doubtful float64) {
	before, squares, kept := 0.0, 0.0, 0
	for i := range l.places {
		run, shared := 0.0, false
		counts := l.counts[i*pagesOfRun : (i+1)*pagesOfRun]
		for _, c := range counts {
			shared = shared || c > 0
			run += float64(max(c, 1) - 1)
			if l.deep && c >= 4 {
				doubtful += float64(c/2 - 1)
			}
		}
		twice += run
		if i > 0 {
			squares += (run - before) * (run - before)
		}
		before = run
		if shared { // else it is not looked at again
			l.places[kept] = l.places[i]
			kept++
		}
	}
	l.places = l.places[:kept]
	return twice, 2 * math.Sqrt(squares/2), doubtful
}

// pageSet is a bit for each page of a sample.
type pageSet []uint64

// count says how many pages are in s and, where that is given, in another.
func (s pageSet) count(other pageSet) (n int) {
	for i, word := range s {
		if other != nil {
			word &= other[i]
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// countShared counts at each place the pages that p does not map alone, and says which these are.
func (p *Process) countShared(places []uint64, counts []uint8) (pageSet, error) {
	file, err := openFile(p.dir+"/pagemap", 0)
	if err != nil {
		return nil, err
	}
	defer closeFile(file)
	shared := make(pageSet, (len(counts)+63)/64)
	var run [pagesOfRun * entryBytes]byte
	for i, page := range places {
		n, err := preadAt(file, run[:], int64(page*entryBytes))
		if err != nil {
			return nil, err
		}
		for k := 0; (k+1)*entryBytes <= n; k++ {
			entry := binary.LittleEndian.Uint64(run[k*entryBytes:])
			if entry&pagePresent == 0 || entry&(pageOfFile|pageExclusive) != 0 {
				continue
			}
			at := i*pagesOfRun + k
			shared[at/64] |= 1 << (at % 64)
			if c := &counts[at]; *c < math.MaxUint8 {
				*c++
			}
		}
	}
	return shared, nil
}

// list chooses the places: in what the first of the members map, and the newest, which still has all that was there
// when it was forked.
func (l *lineage) list(maps []byte) {
	var all []pageRange
	for _, p := range slices.Compact([]*Process{l.members[0], l.members[min(1, len(l.members)-1)],
		l.members[len(l.members)-1]}) {
		if n, err := readWhole(p.dir+"/maps", maps); err == nil {
			eachPrivate(maps[:n], func(from, to uint64) {
				all = append(all,
					pageRange{from / uint64(pageSize), to / uint64(pageSize)})
			})
		}
	}
	all = merged(all)
	total := uint64(0)
	for _, r := range all {
		total += r.to - r.from
	}
	runs := uint64(min(max(runsOfAll/len(l.members), runsAtLeast), runsAtMost))
	l.stride = max((total+runs-1)/runs, pagesOfRun)
	l.places = make([]uint64, 0, total/l.stride+1)
	next := (l.stride - pagesOfRun) / 2
	for _, r := range all {
		for ; next < r.to-r.from; next += l.stride {
			l.places = append(l.places, r.from+next)
		}
		next -= r.to - r.from
	}
}

// pageRange is numbers of pages.
type pageRange struct{ from, to uint64 }

// merged are the ranges in order, each page once.
func merged(all []pageRange) []pageRange {
	slices.SortFunc(all, func(a, b pageRange) int { return cmp.Compare(a.from, b.from) })
	kept := all[:0]
	for _, r := range all {
		if n := len(kept); n > 0 && r.from <= kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, r.to)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// eachPrivate visits the private mappings of a process that may have pages of its own, in bytes: "7f1c…-7f1d… rw-p
// …". Those that are only read may have been written to when a library was loaded.
func eachPrivate(text []byte, visit func(from, to uint64)) {
	for {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			return // the last line is cut
		}
		text = rest
		dash, space := bytes.IndexByte(line, '-'), bytes.IndexByte(line, ' ')
		if dash < 0 || space < dash || len(line) < space+5 || line[space+4] != 'p' || line[space+1] != 'r' ||
			line[space+2] != 'w' && line[space+3] == 'x' {
			continue
		}
		from, to := hexadecimal(line[:dash]), hexadecimal(line[dash+1:space])
		if to > from {
			visit(from, to)
		}
	}
}

func hexadecimal(text []byte) (value uint64) {
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			value = value<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			value = value<<4 | uint64(c-'a'+10)
		default:
			return value
		}
	}
	return value
}

// readWhole reads a file up to the size of the buffer; the kernel gives it a page at a time.
func readWhole(path string, buffer []byte) (int, error) {
	file, err := openFile(path, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(file)
	size := 0
	for size < len(buffer) {
		n, err := preadAt(file, buffer[size:], int64(size))
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		size += n
	}
	return size, nil
}
