package sampler

import (
	"errors"
	"syscall"

	"hightide/internal/mem"
)

// What the processes of a tree take together, pages that several of them share counted once, is the sum of their PSS.
// The kernel finds that only by walking every page table, so between two readings it is carried by what costs nothing:
//
//	RssAnon, RssFile, RssShmem at every tick ──▶ what was taken and given back since ──┐
//	forks and samples of page maps: lineage.go ──▶ what forked processes share ────────┼──▶ least ≤ PSS ≤ most
//	smaps_rollup of all, at a high that is not known well ─────────────────────────────┘
//
// Memory that only one process can have counts as it is; what may be shared makes the bounds wide, and only wide
// bounds make a reading worth its price. A process of many gigabytes that shares nothing is never read for this.

// parts are the kinds of resident memory, in bytes: they are shared in different ways.
type parts struct{ anon, file, shared int64 }

func (p parts) sum() int64 { return p.anon + p.file + p.shared }

// bounds hold a figure that is not known exactly.
type bounds struct{ least, most int64 }

func (b bounds) width() int64            { return b.most - b.least }
func (b bounds) middle() int64           { return b.least + b.width()/2 }
func (b bounds) and(other bounds) bounds { return bounds{b.least + other.least, b.most + other.most} }

func within(least, most, limit int64) bounds {
	least, most = min(max(least, 0), limit), min(max(most, 0), limit)
	return bounds{min(least, most), most}
}

// family is what the reading of one process tells of its siblings that run the same program.
type family struct {
	probed int64   // when; 0: never
	file   float64 // PSS of mapped files, as a share of their RSS
	shared float64 // and of shared memory
}

// relate gives p the family of its siblings.
func (s *Sampler) relate(p *Process) {
	parent := s.tree.Find(p.Parent)
	switch {
	case parent == nil || parent == p:
		p.kin = nil
	case parent.image == p.image:
		p.kin = &parent.forks
	default:
		if parent.spawns == nil {
			parent.spawns = map[string]*family{}
		}
		if parent.spawns[p.comm] == nil {
			parent.spawns[p.comm] = &family{}
		}
		p.kin = parent.spawns[p.comm]
	}
}

// probe reads one process for what it tells of its siblings. Its own figure is not used: what it shares is known of it
// alone, and would count with the others once more.
func (s *Sampler) probe(p *Process, now int64) bool {
	pss, ok := s.proportional(p, now)
	if !ok {
		return false
	}
	kin := p.kin
	kin.probed = now
	kin.file, kin.shared = part(pss.file, p.parts.file), part(pss.shared, p.parts.shared)
	return true
}

func part(of, whole int64) float64 { return float64(of) / float64(max(whole, 1)) }

// toProbe is the process that tells most of others for the price of one; nil where none does.
func (s *Sampler) toProbe(now int64) *Process {
	var best *Process
	most := int64(0)
	for _, p := range s.tree.live {
		if p.kin == nil || p.kin.probed > 0 && now-p.kin.probed < probeEvery || p.sharing.read || p.pssDenied {
			continue
		}
		if open := p.parts.file + p.parts.shared; open > most {
			best, most = p, open
		}
	}
	return best
}

// wasRead notes a reading.
func (p *Process) wasRead(pss parts) {
	s := &p.sharing
	s.read, s.at, s.pss, s.stale = true, p.parts, pss, 0
}

// several bounds what pages of one kind add that any number of processes may share, files and shared memory: rss now,
// and rss and PSS when they were read.
func (s *sharing) several(now, at, pss int64) bounds {
	if !s.read {
		return bounds{0, now}
	}
	b := within(pss-max(at-now, 0), pss+max(now-at, 0), now)
	b.least /= 1 + s.stale // its children may have them too
	return b
}

// files bounds what p adds by the files that it maps, and shares by the memory that it maps with others.
func (p *Process) files() bounds {
	s := &p.sharing
	if kin := p.told(); kin != nil {
		return about(kin.file, p.parts.file)
	}
	return p.withChildren(s.several(p.parts.file, s.at.file, s.pss.file), p.parts.file, p.forks.file,
		func(c parts) int64 { return c.file })
}

func (p *Process) shares() bounds {
	s := &p.sharing
	if kin := p.told(); kin != nil {
		return about(kin.shared, p.parts.shared)
	}
	return p.withChildren(s.several(p.parts.shared, s.at.shared, s.pss.shared), p.parts.shared, p.forks.shared,
		func(c parts) int64 { return c.shared })
}

// told is what the reading of a sibling tells of p; nil: nothing.
func (p *Process) told() *family {
	if !p.sharing.read && p.kin != nil && p.kin.probed > 0 {
		return p.kin
	}
	return nil
}

// withChildren is what p adds by memory of one kind, where one of the children that it has had since it was read was
// read for all. It is, of as much as the largest of them has, the same share as of theirs, and the rest as it was.
func (p *Process) withChildren(alone bounds, rss int64, share float64, kind func(parts) int64) bounds {
	if p.sharing.stale == 0 || p.forks.probed == 0 || p.lineage == nil {
		return alone
	}
	common := int64(0)
	for _, c := range p.lineage.members {
		if c.sharing.lender == p {
			common = max(common, min(kind(c.parts), rss))
		}
	}
	if p.sharing.read { // else nothing is known of the rest
		alone.least = min(alone.least*(1+p.sharing.stale), alone.most)
	}
	rest := 1 - part(common, rss)
	own := bounds{int64(rest * float64(alone.least)), int64(rest * float64(alone.most))}
	return own.and(about(share, common))
}

func about(share float64, rss int64) bounds {
	expected := share * float64(rss)
	return within(int64(expected*0.8), int64(expected*1.2), rss)
}

// footprint is what the tree takes.
type footprint struct {
	orphaned parts // of processes that ended: their share of files and shared memory that others keep
	came     int64 // see lineage
	released parts // bytes of files and shared memory that processes had and have no more
	highest  int64 // that it is known to have taken so far
	doubtful int64 // that it may have taken since that was looked at last
	swept    int64 // when all were read last
	first    int64 // when there were several first
	torn     bool  // while that went on, some came to have more of the files that others have
	known    parts // see SeriesTreeShared and SeriesTreeSegments
}

// ringsShared is what a process may share with the engine itself: its channels.
const ringsShared = 2 << 20

// of bounds the PSS of the tree; false where the kernel does not tell the parts of RSS.
func (f *footprint) of(live []*Process) (bounds, bool) {
	var anon, file, shared bounds
	var most parts
	largest, moved, twice := int64(0), false, int64(0)
	for _, p := range live {
		switch l := p.lineage; {
		case !p.partsKnown:
			return bounds{}, false
		case l == nil:
			anon = anon.and(bounds{p.parts.anon, p.parts.anon})
		case l.members[0] == p:
			anon = anon.and(l.anonymous())
			twice += l.shared()
		}
		file = file.and(p.files())
		shared = shared.and(p.shares())
		most.file, most.shared = most.file+p.parts.file, most.shared+p.parts.shared
		largest = max(largest, p.parts.shared)
		moved = moved || p.sharing.read && 50*max(p.parts.shared-p.sharing.at.shared, 0) > p.parts.shared
	}
	if f.torn { // and those were counted with fewer users than they had in the end
		file.least = 0
	}
	if moved { // who maps more of it has it from others
		shared.least = 0
	}
	shared.least = max(shared.least, largest-ringsShared)
	file = within(file.least, file.most+f.orphaned.file, most.file)
	shared = within(shared.least, shared.most+f.orphaned.shared, most.shared)
	f.known = parts{anon: twice - f.came, file: -file.most - f.released.file, shared: -shared.most - f.released.shared}
	return anon.and(file).and(shared), len(live) > 0
}

// ended hands on what p shared with those that live.
func (f *footprint) ended(p *Process, live []*Process) {
	if p.lineage != nil {
		p.lineage.remove(p)
	}
	f.release(p.before.most)
	if s := &p.sharing; s.read && len(live) > 1 {
		f.orphaned.file += min(s.at.file-s.pss.file, s.pss.file)
		f.orphaned.shared += min(s.at.shared-s.pss.shared, s.pss.shared)
	}
}

// A figure that is known to wellKnown of itself, or to fewBytes, needs no reading.
const (
	probeEvery = int64(2e9)
	wellKnown  = 0.04
	fewBytes   = 3 << 20
)

// open says whether the bounds are wide where it matters: about as high as ever, now or since that was looked at.
func (f *footprint) open(b bounds) bool { return wide(b) && max(b.most, f.doubtful) >= f.highest }

func wide(b bounds) bool {
	return b.width() >= fewBytes && float64(b.width()) >= wellKnown*float64(b.middle())
}

// footprint records what the tree takes, after readings where those are needed and the budget has them.
func (s *Sampler) footprint(now int64, last bool) {
	f := &s.shared
	s.note(now)
	sum, ok := f.of(s.tree.live)
	if !ok {
		return
	}
	several := len(s.tree.live) > 1 // of one alone RSS says it
	s.budget.Several(several)
	if several && f.first == 0 {
		f.first = now
	}
	if wide(sum) {
		f.doubtful = max(f.doubtful, sum.most)
	} else {
		f.doubtful = sum.most
	}
	wanted := f.open(sum) && several
	if wanted && s.samplePages(now, sum.width()) {
		sum, _ = f.of(s.tree.live)
		f.doubtful = sum.most
		wanted = f.open(sum)
	}
	wanted = wanted && (last || f.swept == 0 || now-f.swept >= sweepEvery)
	enough := s.budget.Affords(s.tree.live, sweepReserve)
	switch p := s.toProbe(now); {
	case wanted && (last || enough), enough && s.spares(now, sum):
		s.sweep(now)
	case wanted && p != nil && s.budget.Affords([]*Process{p}, 1):
		s.probe(p, now)
	}
	sum, _ = f.of(s.tree.live)
	f.highest = max(f.highest, sum.least)
	s.treePSS(now, sum)
}

// spares says whether it is time to read all though nobody waits for it, ever more seldom. What one alone takes is
// known but for the files that it shares with programs outside. While it loads its libraries a reading is out of date
// at the next tick, so the first is put off until that has come to rest.
func (s *Sampler) spares(now int64, sum bounds) bool {
	f, since := &s.shared, now-s.shared.swept
	switch {
	case f.swept == 0:
		return s.budget.Full()
	case f.first > 0 && len(s.tree.live) > 1:
		return s.budget.Full() && since >= max(minPSSEvery, (now-f.first)/8)
	}
	p := s.tree.live[0]
	if since >= min(max((now-p.FirstSeen)/2, aloneAfter), aloneAtMost) {
		return s.budget.Full() || wide(sum)
	}
	return wide(sum) && since >= minPSSEvery && p.Usage.RSS > 2*p.pssRSS && now-p.before.moved >= restsAfter
}

// note keeps what processes are now, and counts the files and the shared memory that they have no more.
func (s *Sampler) note(now int64) {
	for _, p := range s.tree.live {
		if p.image == p.before.image {
			s.shared.release(parts{file: p.before.parts.file - p.parts.file, shared: p.before.parts.shared - p.parts.shared})
		} else { // another program now
			s.shared.release(p.before.most)
		}
		p.sharing.lowest = min(p.sharing.lowest, p.parts.anon)
		before := p.before
		p.before = lastTick{p.parts, p.image, parts{file: p.files().most, shared: p.shares().most}, before.moved}
		if more := p.parts.file + p.parts.shared - before.parts.file - before.parts.shared; max(more, -more) >= fewBytes/8 {
			p.before.moved = now
		}
	}
}

func (f *footprint) release(p parts) {
	f.released.file += max(p.file, 0)
	f.released.shared += max(p.shared, 0)
}

// lastTick is a process as it was at the tick before.
type lastTick struct {
	parts parts
	image int64
	most  parts // that it adds to the memory of the tree by files and shared memory
	moved int64 // when more than a few of files and shared memory came or went
}

// sweepReserve: a reading of all must leave some for a higher peak, and for samples of page maps.
const sweepReserve = 2

// samplePages samples the page maps of lineages that a good part of a width comes from; false where none was.
func (s *Sampler) samplePages(now, width int64) (done bool) {
	for _, p := range s.tree.live {
		l := p.lineage
		if l == nil || l.members[0] != p || l.denied || now-l.sampled < sampleEvery {
			continue
		}
		open, price := l.anonymous().width(), l.price*float64(len(l.members))
		if open < fewBytes || open < width/4 || !s.budget.Has(price) {
			continue
		}
		if s.maps == nil {
			s.maps = make([]byte, 1<<20)
		}
		start := ThreadCPU()
		err := l.sample(now, s.maps)
		cost := ThreadCPU() - start
		s.budget.Spend(cost)
		if l.sampled = now; err != nil {
			l.sampled -= sampleEvery - sampleAgain
			l.denied = errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
			continue
		}
		done, l.price = true, float64(cost)/float64(len(l.members))
	}
	return done
}

// The least time between two samples of the page maps, behind one that failed, and between two readings of all. A
// process alone is read where half its life has passed since it was, within limits, and when what it shares has
// rested for so long.
const (
	sampleEvery = int64(200e6)
	sampleAgain = int64(50e6)
	sweepEvery  = int64(250e6)
	aloneAfter  = int64(5e9)
	aloneAtMost = int64(10e9)
	restsAfter  = int64(250e6)
)

// The part of it that a figure carried from reading to reading may always be off by. Processes are read one after the
// other while they run, more so where several share pages.
const (
	leastError       = 200
	leastErrorShared = 50
)

func (s *Sampler) treePSS(now int64, sum bounds) {
	s.sink.Sample(nil, "", mem.SeriesTreePSS, now, sum.middle())
	s.sink.Sample(nil, "", mem.SeriesTreePSSError, now, max((sum.width()+1)/2, sum.middle()/s.leastPart()))
	s.sink.Sample(nil, "", mem.SeriesTreeShared, now, s.shared.known.anon+s.shared.known.file)
	s.sink.Sample(nil, "", mem.SeriesTreeSegments, now, s.shared.known.shared)
}

// sweep reads all processes at once: what one shares is divided among those that have it at that moment. Of the
// smallest, which together hold a hundredth, no more is known than before.
func (s *Sampler) sweep(now int64) {
	total := int64(0)
	for _, p := range s.tree.live {
		total += p.Usage.RSS
	}
	complete, uss := true, int64(0)
	for _, p := range s.tree.live {
		if p.pssDenied || p.Usage.RSS*int64(len(s.tree.live)) < total/100 {
			continue
		}
		if !s.pss(p, now) {
			complete = false
		}
		uss += p.Usage.USS.Or(0)
	}
	s.shared.orphaned = parts{}
	s.shared.swept = now
	s.shared.torn = s.tornReading()
	if complete {
		s.sink.Sample(nil, "", mem.SeriesTreeUSS, now, uss)
	}
}

// tornReading says whether processes came to map more of files while all were read one after the other. What they
// have of shared memory now is noted for the same question.
func (s *Sampler) tornReading() bool {
	var more, all int64
	for _, p := range s.tree.live {
		p.readStatus()
		more += max(p.parts.file-p.sharing.at.file, 0)
		all += p.parts.file
	}
	return more > fewBytes && 50*more > all
}

func (s *Sampler) leastPart() int64 {
	for _, p := range s.tree.live {
		if p.lineage != nil {
			return leastErrorShared
		}
	}
	return leastError
}
