package sampler

// A lineage is processes that were forked one from the other and still run the same program. They have the same
// anonymous pages until one of them writes to its own copy, gives it back or ends. So their resident sets count some
// bytes more than once:
//
//	a fork ──▶ all that the child has of its parent is counted once more
//	a sample of the page maps, at the same addresses of all (pagemap.go) ──▶ how much is
//	page faults, and what was given back since ──▶ how much less it may be by now
//
// But for forks it only becomes less. What is shared at the end was so all the time: a later sample tells of earlier
// moments, too (shared, and analyze/facts/footprint.go).
type lineage struct {
	members []*Process
	twice   bounds // bytes that are counted more than once, but for what members lost since they were looked at
	came    *int64 // of the tree: by how much forks raised that at most, less by how much ends lowered it at least
	deep    bool   // a child has children of its own
	denied  bool   // the page maps are not ours to read

	places  []uint64 // numbers of the first pages of the runs to look at; nil: not known yet
	stride  uint64   // pages from one run to the next
	counts  []uint8  // of processes that share a page, by pages of places
	sampled int64    // when they were looked at; 0: never
	price   float64  // of that, ns a member
}

// sharing is what is known of the pages that a process has in common with others.
type sharing struct {
	read  bool  // PSS was read
	at    parts // RSS then
	pss   parts
	stale int64 // children that were forked since

	lender *Process // that it was forked from and that lives
	// Anonymous memory, when its page map was sampled, or where it was not yet, at a fork:
	common  int64 // that others have, too, at most
	lent    int64 // and of that its lender, at least
	time    int64 // of the sample; 0: there was none
	anon    int64 // all of it
	faults  int64 // page faults then
	lowest  int64 // of anon since the sample before
	routine routine
	ebb     int64 // the lowest of anon before that sample: what is given back down to there is its own
}

// routine is how a process' page faults were between two samples.
type routine struct {
	known  bool
	rate   float64 // faults a ns
	copied float64 // the share of them that copied a shared page
}

// How much more often than lately a fault may copy a page, and how much faster faults may come, before all of them may.
const (
	oftener      = 4
	atLeastOften = 0.01
	faster       = 2
	fewFaults    = 500
	routineAfter = int64(150e6) // ns between two samples that tell of a routine
)

// forked notes that p began as a copy of its parent and still is one.
func (f *footprint) forked(p, parent *Process) {
	parent.readStatus() // it may have grown since the last tick
	had := max(parent.parts.anon, parent.before.parts.anon)
	borrowed := min(p.parts.anon, had)
	l := parent.lineage
	if l == nil {
		l = &lineage{members: []*Process{parent}, came: &f.came, price: firstSample}
		parent.lineage = l
	}
	of := &parent.sharing
	l.twice.least = max(l.twice.least-parent.lost(), 0) + borrowed
	l.twice.most += borrowed
	*l.came += borrowed
	l.deep = l.deep || of.lender != nil
	l.members, l.places = append(l.members, p), nil
	p.lineage = l
	p.sharing = sharing{lender: parent, common: borrowed, lent: borrowed, anon: p.parts.anon, lowest: p.parts.anon}
	of.lent = max(of.lent-parent.lost(), 0)
	of.common, of.anon, of.faults, of.time, of.routine.known = had, had, parent.faults(), 0, false
	of.stale++
}

func (p *Process) faults() int64 { return p.Usage.MinorFaults + p.Usage.MajorFaults }

// lost bounds what p shares no more of what it did: copied by writing to it, which takes a page fault each, or given
// back. How many of its faults copied a page nothing tells. It is taken to be as many as lately, and some more, as
// long as they come about as fast; of all others each may have.
func (p *Process) lost() int64 {
	s := &p.sharing
	faults := float64(max(p.faults()-s.faults, 0))
	back := max(s.anon-p.parts.anon, 0)
	if s.routine.known {
		usual := min(faults, faster*s.routine.rate*float64(p.Usage.Time-s.time)+fewFaults)
		faults += usual * (min(oftener*s.routine.copied+atLeastOften, 1) - 1)
		back = max(s.ebb-p.parts.anon, 0)
	}
	return min(int64(faults)*pageSize+back, s.common)
}

// wasSampled notes how much of its anonymous memory p has in common with others, and of that with its lender.
func (p *Process) wasSampled(now, common, lent int64) {
	s := &p.sharing
	faults, passed := p.faults()-s.faults, now-s.time
	s.routine.known = s.time > 0 && passed >= routineAfter
	if s.routine.known {
		s.routine.rate = float64(faults) / float64(passed)
		s.routine.copied = float64(max(s.common-common, 0)) / float64(max(faults, 1)*pageSize)
	}
	s.ebb = min(s.lowest, p.parts.anon)
	s.common, s.lent, s.time = common, lent, now
	s.anon, s.faults, s.lowest = p.parts.anon, p.faults(), p.parts.anon
}

// anonymous bounds what the members have together.
func (l *lineage) anonymous() bounds {
	var all, largest, lost int64
	for _, p := range l.members {
		all += p.parts.anon
		largest = max(largest, p.parts.anon)
		lost += p.lost()
	}
	b := within(all-l.twice.most, all-max(l.twice.least-lost, 0), all)
	return bounds{max(b.least, largest), max(b.most, largest)}
}

// shared is the least that is counted more than once, had no process come or gone. As that only becomes less, the
// highest later value of it holds for a moment, too.
func (l *lineage) shared() int64 {
	lost := int64(0)
	for _, p := range l.members {
		lost += p.lost()
	}
	return max(l.twice.least-lost, 0)
}

// remove takes out p, which ended or became another program: what it shared is counted once less.
func (l *lineage) remove(p *Process) {
	s := &p.sharing
	surely := int64(0) // with one who has it still
	if s.lender != nil {
		surely = max(s.lent-s.lender.lost(), 0)
	}
	for i := len(l.members) - 1; i >= 0; i-- {
		m := l.members[i]
		if m == p {
			l.members = append(l.members[:i], l.members[i+1:]...)
		} else if m.sharing.lender == p {
			surely = max(surely, m.sharing.lent-m.lost())
			m.sharing.lender = nil
		}
	}
	*l.came -= max(surely-p.lost(), 0)
	l.twice.least = max(l.twice.least-s.common, 0)
	l.twice.most = max(l.twice.most-surely, l.twice.least)
	p.lineage = nil
	if len(l.members) == 1 {
		last := l.members[0]
		last.lineage, last.sharing.common, last.sharing.lent, last.sharing.time = nil, 0, 0, 0
		l.members = nil
	}
}
