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
	faults int64 // page faults then, or when it began or first had a child
	stale  int64 // children that were forked since
	// What it had alone, and with others, by its page map; that is newer than PSS.
	sampled     bool
	own, common int64

	// Of a forked child: pages that another process of the tree counts as its own.
	lender   *Process
	borrowed int64
	// Of a process with such children: the most that one of them borrowed, and what it had itself then.
	lent, lentAt int64
}

// forked notes that p began as a copy of its parent and still is one.
func (p *Process) forked(parent *Process) {
	parent.readStatus() // it may have grown since the last tick
	p.sharing = sharing{lender: parent, borrowed: min(p.parts.anon, parent.parts.anon)}
	of := &parent.sharing
	if of.lent == 0 && !of.read {
		of.faults = parent.faults()
	}
	of.lent, of.lentAt = max(of.lent, p.sharing.borrowed), max(of.lentAt, parent.parts.anon)
	of.stale++
}

func (p *Process) faults() int64 { return p.Usage.MinorFaults + p.Usage.MajorFaults }

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
		open := p.anonymous()
		if width := open.width() + p.parts.file + p.parts.shared; width > most {
			best, most = p, width
		}
	}
	return best
}

// copied bounds what p can have made its own of shared pages since: each page costs it a fault. How many faults copied a page,
// and how many were for fresh memory, nothing tells: what they did before says nothing of what they do now.
func (p *Process) copied() bounds {
	return bounds{0, max(p.faults()-p.sharing.faults, 0) * int64(pageSize)}
}

// atMost is the bounds where no more than a limit can be.
func (b bounds) atMost(limit int64) bounds { return bounds{min(b.least, limit), min(b.most, limit)} }

// wasRead notes a reading.
func (p *Process) wasRead(pss parts) {
	s := &p.sharing
	if s.lender == nil && s.lent == 0 { // it cannot share any: some came or went while they were counted
		pss.anon = p.parts.anon
	}
	p.sharing = sharing{read: true, at: p.parts, pss: pss, faults: p.faults(), lender: s.lender, borrowed: min(s.borrowed, p.parts.anon)}
}

// wasSampled notes which share of its anonymous pages p has alone.
func (p *Process) wasSampled(alone float64) {
	s, now := &p.sharing, p.parts.anon
	own := int64(alone * float64(now))
	s.sampled, s.own, s.common, s.at.anon, s.faults = true, own, now-own, now, p.faults()
}

// anonymous bounds what p adds to the tree's memory by its anonymous pages.
func (p *Process) anonymous() bounds {
	s, now := &p.sharing, p.parts.anon
	if s.sampled {
		grown := now - s.at.anon
		counted := s.own + grown
		if s.lender == nil || s.lent > 0 { // else all that it has in common is its parent's
			counted += max(s.common-s.borrowed, 0)
		}
		copied := p.copied().atMost(s.common).most
		// What a parent copies stays with its children as it was.
		return within(counted, counted+max(-grown, 0)+copied, now).and(bounds{0, min(copied, s.lent)})
	}
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
	if kin := p.told(); kin != nil {
		return about(kin.file, p.parts.file)
	}
	return p.sharing.several(p.parts.file, p.sharing.at.file, p.sharing.pss.file)
}

func (p *Process) shares() bounds {
	if kin := p.told(); kin != nil {
		return about(kin.shared, p.parts.shared)
	}
	return p.sharing.several(p.parts.shared, p.sharing.at.shared, p.sharing.pss.shared)
}

// told is what the reading of a sibling, or of a child that was forked since p was read, tells of p; nil: nothing.
func (p *Process) told() *family {
	switch {
	case !p.sharing.read && p.kin != nil && p.kin.probed > 0:
		return p.kin
	case p.sharing.stale > 0 && p.forks.probed > 0:
		return &p.forks
	}
	return nil
}

func about(share float64, rss int64) bounds {
	expected := share * float64(rss)
	return within(int64(expected*0.8), int64(expected*1.2), rss)
}

// footprint is what the tree takes.
type footprint struct {
	orphaned parts // of processes that ended: their share of pages that others keep
	highest  int64 // that it is known to have taken so far
	swept    int64 // when all were read last
}

// ringsShared is what a process may share with the engine itself: its channels.
const ringsShared = 2 << 20

// of bounds the PSS of the tree; false where the kernel does not tell the parts of RSS.
func (f *footprint) of(live []*Process) (bounds, bool) {
	var anon, file, shared bounds
	var most parts
	largest, moved := int64(0), false
	for _, p := range live {
		if !p.partsKnown {
			return bounds{}, false
		}
		anon = anon.and(p.anonymous())
		file = file.and(p.files())
		shared = shared.and(p.shares())
		most.anon, most.file, most.shared = most.anon+p.parts.anon, most.file+p.parts.file, most.shared+p.parts.shared
		largest = max(largest, p.parts.shared)
		moved = moved || p.sharing.read && 50*max(p.parts.shared-p.sharing.at.shared, 0) > p.parts.shared
	}
	anon = anon.and(kept(live))
	if moved { // who maps more of it has it from others
		shared.least = 0
	}
	shared.least = max(shared.least, largest-ringsShared)
	sum := within(anon.least+f.orphaned.anon*3/4, anon.most+f.orphaned.anon, most.anon)
	sum = sum.and(within(file.least, file.most+f.orphaned.file, most.file))
	sum = sum.and(within(shared.least, shared.most+f.orphaned.shared, most.shared))
	return sum, len(live) > 0
}

// kept is what children share among themselves of what their parent has no more, by their page maps: of each parent
// the most that one of them has.
func kept(live []*Process) bounds {
	most := map[*Process]int64{}
	for _, c := range live {
		if s := &c.sharing; s.sampled && s.lender != nil && s.lender.sharing.sampled {
			most[s.lender] = max(most[s.lender], min(s.common, s.borrowed)-s.lender.sharing.common)
		}
	}
	sum := int64(0)
	for _, bytes := range most {
		sum += bytes
	}
	return bounds{sum, sum}
}

// ended hands on what p shared with those that live.
func (f *footprint) ended(p *Process, live []*Process) {
	var heir *Process
	sharers := int64(0)
	for _, c := range live {
		if c == p {
			continue
		}
		if c.sharing.read && !c.sharing.sampled && c.sharing.at.anon > c.sharing.pss.anon {
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
		if heir.sharing.sampled && p.sharing.sampled && len(live) == 2 {
			heir.sharing.own, heir.sharing.common = heir.sharing.own+heir.sharing.common, 0
		}
		heir.sharing.lender, heir.sharing.borrowed = nil, 0
	}
	if s := &p.sharing; s.read && len(live) > 1 {
		if !s.sampled {
			f.orphaned.anon += min((s.at.anon-s.pss.anon)/max(sharers, 1), s.pss.anon)
		}
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

// open says whether the bounds are wide where it matters: about as high as ever, or higher.
func (f *footprint) open(b bounds) bool {
	return b.width() >= fewBytes && float64(b.width()) >= wellKnown*float64(b.middle()) && b.most >= f.highest
}

// footprint records what the tree takes, after readings where those are needed and the budget has them.
func (s *Sampler) footprint(now int64, last bool) {
	sum, ok := s.shared.of(s.tree.live)
	if !ok {
		return
	}
	wanted := s.shared.open(sum) && len(s.tree.live) > 1 // of one alone RSS says it
	if wanted && s.samplePages(now, sum.width()) {
		sum, _ = s.shared.of(s.tree.live)
		wanted = s.shared.open(sum)
	}
	wanted = wanted && (last || s.shared.swept == 0 || now-s.shared.swept >= sweepEvery)
	enough := s.budget.Affords(s.tree.live, sweepReserve)
	switch p := s.toProbe(now); {
	case wanted && (last || enough), enough && s.budget.Full() && now-s.shared.swept >= minPSSEvery:
		s.sweep(now)
	case wanted && p != nil && s.budget.Affords([]*Process{p}, 1):
		s.probe(p, now)
	}
	sum, _ = s.shared.of(s.tree.live)
	s.shared.highest = max(s.shared.highest, sum.least)
	s.treePSS(now, sum)
}

// sweepReserve: a reading of all must leave some for a higher peak.
const sweepReserve = 1.3

// samplePages samples the page maps of all that were forked, or have forked; false where nothing was. It is done where it is what
// the bounds are wide by.
func (s *Sampler) samplePages(now, width int64) bool {
	var open int64
	var family []*Process
	for _, p := range s.tree.live {
		if p.sharing.lender != nil || p.sharing.lent > 0 {
			family = append(family, p)
			b := p.anonymous()
			open += b.width()
		}
	}
	if open < fewBytes || open < width/2 || now-s.sampledAt < sampleEvery || !s.budget.Has(s.samplePrice*float64(len(family))) {
		return false
	}
	s.sampledAt = now
	if s.maps == nil {
		s.maps = make([]byte, 1<<20)
	}
	start, done := threadCPU(), 0
	for _, p := range family {
		p.readStatus()
		if alone, ok := p.exclusive(s.maps); ok {
			p.wasSampled(alone)
			done++
		}
	}
	cost := threadCPU() - start
	s.budget.Spend(cost)
	s.samplePrice = float64(cost) / float64(max(len(family), 1))
	if done > 0 {
		s.shared.orphaned.anon = 0
	}
	return done > 0
}

// The least time between two samples of the page maps, and two readings of all.
const (
	sampleEvery = int64(200e6)
	sweepEvery  = int64(250e6)
)

// The part of it that a figure carried from reading to reading may always be off by: processes are read one after the
// other while they run, more so where several share pages.
const (
	leastError       = 200
	leastErrorShared = 50
)

func (s *Sampler) treePSS(now int64, sum bounds) {
	s.sink.Sample(nil, "", mem.SeriesTreePSS, now, sum.middle())
	s.sink.Sample(nil, "", mem.SeriesTreePSSError, now, max((sum.width()+1)/2, sum.middle()/s.leastPart()))
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
	if complete {
		s.sink.Sample(nil, "", mem.SeriesTreeUSS, now, uss)
	}
}

func (s *Sampler) leastPart() int64 {
	for _, p := range s.tree.live {
		if p.sharing.lender != nil {
			return leastErrorShared
		}
	}
	return leastError
}
