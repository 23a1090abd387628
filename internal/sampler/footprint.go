package sampler

import "hightide/internal/mem"

// What the processes of a tree take together, pages that several of them share counted once, is the sum of their PSS.
// The kernel finds that only by walking every page table, so between two readings it is carried by what costs nothing:
//
//	RssAnon, RssFile, RssShmem at every tick ──▶ what was taken and given back since ──┐
//	page faults ──▶ how much of what it inherited a forked child can have made its own ├──▶ least ≤ PSS ≤ most
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

// sharing is what is known of the pages that a process has in common with others.
type sharing struct {
	read   bool  // PSS was read
	at     parts // RSS then
	pss    parts
	faults int64   // page faults then, or when it began or first had a child
	rate   float64 // the most of its faults that copied a shared page, as readings have told; 0: none has

	// Of a forked child that was not read since: pages that another process of the tree counts as its own.
	lender   *Process
	borrowed int64
	// Of a process with such children: the most that one of them borrowed, and what it had itself then.
	lent, lentAt int64
}

// forked notes that p began as a copy of its parent and still is one.
func (p *Process) forked(parent *Process) {
	p.sharing = sharing{lender: parent, borrowed: min(p.parts.anon, parent.parts.anon)}
	of := &parent.sharing
	if of.lent == 0 && !of.read {
		of.faults = parent.faults()
	}
	of.lent, of.lentAt = max(of.lent, p.sharing.borrowed), max(of.lentAt, parent.parts.anon)
}

func (p *Process) faults() int64 { return p.Usage.MinorFaults + p.Usage.MajorFaults }

// family is what the reading of one process tells of its siblings that run the same program.
type family struct {
	probed int64   // when; 0: never
	rate   float64 // as in sharing
	file   float64 // PSS of mapped files, as a share of their RSS
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
	sharers := int64(1)
	for _, other := range s.tree.live {
		if other.sharing.lender == p.sharing.lender || other == p.sharing.lender {
			sharers++
		}
	}
	pss, ok := s.proportional(p, now)
	if !ok {
		return false
	}
	kin := p.kin
	kin.probed, kin.rate = now, 1
	if rss := p.parts.file; rss > 0 {
		kin.file = float64(pss.file) / float64(rss)
	}
	common := (p.parts.anon - pss.anon) / max(sharers-1, 1) * sharers
	if faulted := float64(p.faults()-p.sharing.faults) * float64(pageSize); faulted > 0 {
		kin.rate = min(1, max(float64(p.sharing.borrowed-common)/faulted, 0))
	}
	return true
}

// toProbe is the process that tells most of others for the price of one; nil where none does.
func (s *Sampler) toProbe(now int64) *Process {
	var best *Process
	most := int64(0)
	for _, p := range s.tree.live {
		if p.kin == nil || p.kin.probed > 0 && now-p.kin.probed < probeEvery || p.sharing.read || p.pssDenied {
			continue
		}
		open := p.anonymous()
		if width := open.width() + p.parts.file; width > most {
			best, most = p, width
		}
	}
	return best
}

// copied bounds what p can have made its own of shared pages since: each page costs it a fault. Most faults are for
// fresh memory; readings of it, or of one of its siblings, have told how many were not.
func (p *Process) copied() bounds {
	bytes := float64(max(p.faults()-p.sharing.faults, 0) * pageSize)
	switch rate := p.sharing.rate; {
	case rate > 0:
		return bounds{0, int64(min(1, max(1.5*rate, leastRate)) * bytes)}
	case p.kin != nil && p.kin.probed > 0 && !p.sharing.read:
		return bounds{int64(p.kin.rate / 2 * bytes), int64(min(1, max(1.3*p.kin.rate, leastRate)) * bytes)}
	}
	return bounds{0, int64(bytes)}
}

// atMost is the bounds where no more than a limit can be.
func (b bounds) atMost(limit int64) bounds { return bounds{min(b.least, limit), min(b.most, limit)} }

// leastRate is the share of faults that always may have copied a page.
const leastRate = 0.02

// wasRead notes a reading, and what it tells of the faults before it.
func (p *Process) wasRead(pss parts) {
	s, expected := &p.sharing, p.parts.anon-p.sharing.borrowed
	if s.read {
		expected = s.pss.anon + p.parts.anon - s.at.anon
	}
	rate := s.rate
	if faulted := float64(max(p.faults()-s.faults, 0) * pageSize); faulted > 0 {
		found := float64(max(pss.anon-expected, 0)) / faulted
		rate = min(1, max(found, leastRate, rate/2))
	}
	p.sharing = sharing{read: true, at: p.parts, pss: pss, faults: p.faults(), rate: rate}
}

// anonymous bounds what p adds to the tree's memory by its anonymous pages.
func (p *Process) anonymous() bounds {
	s, now := &p.sharing, p.parts.anon
	if s.read {
		common := min(2*(s.at.anon-s.pss.anon), s.at.anon) // with one other at least
		grown := now - s.at.anon
		least, most := s.pss.anon+grown, s.pss.anon+grown
		if grown < 0 {
			most = s.pss.anon - max(-grown-common, 0) // it may have given back pages that others keep
		}
		return within(least, most+p.copied().atMost(common).most, now).and(p.left())
	}
	own, copied := max(now-s.borrowed, 0), p.copied().atMost(s.borrowed)
	return within(own+copied.least, own+copied.most, now).and(p.left())
}

// left bounds what p's children keep of what it has no more: given back, or written to since and so copied.
func (p *Process) left() bounds {
	s := &p.sharing
	return bounds{0, min(max(s.lentAt-p.parts.anon, 0)+p.copied().most, s.lent)}
}

// common bounds what pages of one kind add that any number of processes may share, files and shared memory: rss now,
// and rss and PSS when they were read.
func (s *sharing) common(now, at, pss int64) bounds {
	if !s.read {
		return bounds{0, now}
	}
	return within(pss-max(at-now, 0), pss+max(now-at, 0), now)
}

// files bounds what p adds by the files that it maps.
func (p *Process) files() bounds {
	s := &p.sharing
	if !s.read && p.kin != nil && p.kin.probed > 0 {
		share := p.kin.file * float64(p.parts.file)
		return within(int64(share*2/3), int64(share*4/3), p.parts.file)
	}
	return s.common(p.parts.file, s.at.file, s.pss.file)
}

// footprint is what the tree takes.
type footprint struct {
	orphaned parts // of processes that ended: their share of pages that others keep
	highest  int64 // middle of the bounds so far
	swept    int64 // when all were read last
	sum      int64 // and what they took then
}

// ringsShared is what a process may share with the engine itself: its channels.
const ringsShared = 2 << 20

// of bounds the PSS of the tree; false where the kernel does not tell the parts of RSS.
func (f *footprint) of(live []*Process) (bounds, bool) {
	var anon, file, shared bounds
	var most parts
	largest := int64(0)
	for _, p := range live {
		if !p.partsKnown {
			return bounds{}, false
		}
		s := &p.sharing
		anon = anon.and(p.anonymous())
		file = file.and(p.files())
		shared = shared.and(s.common(p.parts.shared, s.at.shared, s.pss.shared))
		most.anon, most.file, most.shared = most.anon+p.parts.anon, most.file+p.parts.file, most.shared+p.parts.shared
		largest = max(largest, p.parts.shared)
	}
	shared.least = max(shared.least, largest-ringsShared)
	sum := within(anon.least+f.orphaned.anon*3/4, anon.most+f.orphaned.anon, most.anon)
	sum = sum.and(within(file.least, file.most+f.orphaned.file, most.file))
	sum = sum.and(within(shared.least, shared.most+f.orphaned.shared, most.shared))
	return sum, len(live) > 0
}

// ended hands on what p shared with those that live.
func (f *footprint) ended(p *Process, live []*Process) {
	var heir *Process
	sharers := int64(0)
	for _, c := range live {
		if c == p {
			continue
		}
		if c.sharing.read && c.sharing.at.anon > c.sharing.pss.anon {
			sharers++
		}
		if c.sharing.lender == p && (heir == nil || c.sharing.borrowed > heir.sharing.borrowed) {
			heir = c
		}
	}
	for _, c := range live {
		if c.sharing.lender == p && c != heir {
			c.sharing.lender, heir.sharing.lent, heir.sharing.lentAt = heir, max(heir.sharing.lent, c.sharing.borrowed), heir.parts.anon
		}
	}
	if heir != nil { // what it had from p, it alone counts now
		heir.sharing.lender, heir.sharing.borrowed = nil, 0
	}
	if s := &p.sharing; s.read && len(live) > 1 {
		f.orphaned.anon += min((s.at.anon-s.pss.anon)/max(sharers, 1), s.pss.anon)
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

// worthReading says whether the bounds are wide where it matters: about as high as ever, or higher.
func (f *footprint) worthReading(b bounds, now int64) bool {
	if b.width() < fewBytes || float64(b.width()) < wellKnown*float64(b.middle()) || b.most < f.highest {
		return false
	}
	changed := max(b.middle()-f.sum, f.sum-b.middle())
	return f.swept == 0 || now-f.swept >= minPSSEvery || float64(changed) > wellKnown*float64(f.sum)
}

// footprint records what the tree takes, after readings where those are needed and the budget has them.
func (s *Sampler) footprint(now int64, last bool) {
	sum, ok := s.shared.of(s.tree.live)
	if !ok {
		return
	}
	wanted := s.shared.worthReading(sum, now) && len(s.tree.live) > 1 // of one alone RSS says it
	enough := s.budget.Affords(s.tree.live, 2)                        // half is kept for a higher peak
	switch p := s.toProbe(now); {
	case wanted && (last || enough), enough && s.budget.Full() && now-s.shared.swept >= minPSSEvery:
		s.sweep(now)
	case wanted && p != nil && s.budget.Affords([]*Process{p}, 1):
		s.probe(p, now)
	}
	sum, _ = s.shared.of(s.tree.live)
	s.shared.highest = max(s.shared.highest, sum.middle())
	s.treePSS(now, sum)
}

// leastError is the part of it that a figure carried from reading to reading may always be off by: processes are read
// one after the other while they run.
const leastError = 200

func (s *Sampler) treePSS(now int64, sum bounds) {
	s.sink.Sample(nil, "", mem.SeriesTreePSS, now, sum.middle())
	s.sink.Sample(nil, "", mem.SeriesTreePSSError, now, max((sum.width()+1)/2, sum.middle()/leastError))
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
	sum, _ := s.shared.of(s.tree.live)
	s.shared.swept, s.shared.sum = now, sum.middle()
	if complete {
		s.sink.Sample(nil, "", mem.SeriesTreeUSS, now, uss)
	}
}
