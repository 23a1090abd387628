package sampler

import (
	"cmp"
	"os"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/processes"
)

// Portable follows a process tree through a table of processes: on macOS and Windows. What Linux's /proc tells beyond
// that is absent here: shared pages, control groups, swap, kinds of descriptors. It says so once.
//
//	Table.List ─▶ discover: whose parent is of the tree (or who is in the job) ─▶ Table.Figures ─▶ Sink
type Portable struct {
	options Options
	sink    Sink
	table   processes.Table
	live    []*Process
	parents map[int]uint64 // of the tree, ended ones too, by pid: when it began
	left    map[int]uint64 // none of ours, whoever their parents are
	joined  map[int]uint64
	vendors []Vendor
	told    map[string]bool

	next    int64 // before it there is no tick
	members []int // of the run, as the system counted them last
	hurried bool
	rss     int64      // of the tree, at the tick before
	growing []*Process // that gained so much since the tick before
	slow    int64      // when the figures that change slowly were last read
}

// portableShare: looking takes at most this part of the time of one core.
const portableShare = 20

// NewPortable prepares a Portable; options.Table is needed.
func NewPortable(options Options, sink Sink) *Portable {
	if options.Interval <= 0 {
		options.Interval = 100 * time.Millisecond
	}
	return &Portable{options: options, sink: sink, table: options.Table, vendors: options.Vendors,
		parents: map[int]uint64{}, left: map[int]uint64{}, joined: map[int]uint64{}, told: map[string]bool{}}
}

// Close ends the vendors' helpers.
func (s *Portable) Close() {
	for _, v := range s.vendors {
		v.Close()
	}
}

// Processes are those alive at the last tick.
func (s *Portable) Processes() []*Process { return s.live }

// Tick implements Watch. Where all that takes is much of the time, as on a machine with thousands of processes, ticks
// are left out.
func (s *Portable) Tick(now int64) {
	s.hurried, s.growing = false, s.growing[:0]
	if now < s.next {
		return
	}
	start := time.Now()
	slow := s.slow == 0 || now-s.slow >= slowEvery
	if slow {
		s.slow = now
	}
	s.discover(now)
	s.read(now)
	s.host(now, slow)
	s.sampleDevices(now)
	s.tellAbsent()
	s.next = now + int64(time.Since(start))*portableShare
}

// Last implements Watch.
func (s *Portable) Last(now int64) {
	s.discover(now)
	s.read(now)
	s.host(now, true)
}

// absent is what nobody is asked for here.
const absent = "shared pages (PSS, USS), swap, control groups and the kinds of open files"

func (s *Portable) tellAbsent() {
	if !s.told[absent] {
		s.told[absent] = true
		s.sink.Unobserved(absent, "hightide reads them on Linux alone; what shared pages count more than once is in the sums")
	}
}

// discover takes in who is new in the tree and lets go of who ended.
func (s *Portable) discover(now int64) {
	all, err := s.table.List()
	if err != nil {
		return // nobody is taken for ended because nobody could be listed
	}
	if s.options.Members != nil {
		s.members = s.options.Members()
	}
	listed := make(map[int]processes.Process, len(all))
	for _, p := range all {
		listed[p.PID] = p
	}
	for _, p := range slices.Clone(s.live) {
		if is, ok := listed[p.PID]; !ok || is.Start != p.StartTicks {
			s.end(p, now)
		}
	}
	for again := true; again; { // a child may be listed before its parent
		again = false
		for _, p := range all {
			if s.belongs(p, listed) && s.meet(p, now) {
				again = true
			}
		}
	}
}

// belongs says whether a process that is not followed yet is one of the tree. A parent is older than its child: else
// its number was given again.
func (s *Portable) belongs(p processes.Process, listed map[int]processes.Process) bool {
	if s.find(p.PID) != nil || s.apart(s.left, p) || p.PID == os.Getpid() {
		return false
	}
	if began, was := s.parents[p.PID]; was && began == p.Start {
		return false // it ended: what is still listed is a zombie
	}
	if p.PID == s.options.Leader {
		return s.options.WatchLeader
	}
	if s.apart(s.joined, p) || slices.Contains(s.members, p.PID) {
		return true
	}
	if leader, ok := listed[s.options.Leader]; p.Parent == s.options.Leader && ok {
		return leader.Start <= p.Start
	}
	began, ok := s.parents[p.Parent]
	return ok && began <= p.Start
}

// apart says whether a process is in a list of such; one of which the start is not known is there by its number.
func (s *Portable) apart(list map[int]uint64, p processes.Process) bool {
	began, ok := list[p.PID]
	return ok && (began == p.Start || began == 0)
}

func (s *Portable) find(pid int) *Process {
	for _, p := range s.live {
		if p.PID == pid {
			return p
		}
	}
	return nil
}

// meet begins to follow a process; false: it has ended already.
func (s *Portable) meet(of processes.Process, now int64) bool {
	s.parents[of.PID] = of.Start
	figures, ok := s.table.Figures(of.PID)
	if !ok && of.PID != s.options.Leader {
		return false
	}
	p := &Process{PID: of.PID, Parent: of.Parent, StartTicks: of.Start, FirstSeen: now, Command: s.table.Command(of.PID),
		statFile: -1, status: -1, schedstat: -1, filesDir: -1, ran: s.options.Running && !s.told[absent]}
	if len(p.Command) > 0 {
		p.comm = p.Command[0]
	}
	s.live = append(s.live, p)
	s.hurried = true
	s.sink.Process(p)
	if ok {
		s.take(p, figures, now)
	}
	return true
}

// read takes the figures of all.
func (s *Portable) read(now int64) {
	var rss, threads int64
	for _, p := range slices.Clone(s.live) {
		if p.Usage.Time != now {
			figures, ok := s.table.Figures(p.PID)
			if !ok {
				if p.Usage.Time > 0 { // else it may not be looked at, and is listed
					s.end(p, now)
				}
				continue
			}
			s.take(p, figures, now)
		}
		rss += p.Usage.RSS
		threads += p.Usage.Threads
	}
	if rss == 0 { // nothing was seen is not the same as nothing was there
		return
	}
	s.sink.Sample(nil, "", mem.SeriesTreeRSS, now, rss)
	if threads > 0 {
		s.sink.Sample(nil, "", mem.SeriesTreeThreads, now, threads)
	}
	s.hurried = s.hurried || len(s.live) > 1 && rss > s.rss+max(s.rss/20, growsFast)
	s.rss = rss
}

// take tells what a process has. What the system does not say stays absent.
func (s *Portable) take(p *Process, f processes.Figures, now int64) {
	u := &p.Usage
	if p.highest > 0 && f.RSS > p.highest+growsFast {
		s.growing = append(s.growing, p)
	}
	p.highest = max(p.highest, f.RSS)
	u.Time, u.RSS, u.VMS, u.Threads = now, f.RSS, f.VMS.Or(0), f.Threads.Or(0)
	u.MinorFaults, u.MajorFaults, u.CPU = f.MinorFaults.Or(0), f.MajorFaults.Or(0), max(u.CPU, f.CPU.Or(0))
	s.mark(p, f.MaxRSS)
	s.sink.Sample(p, "", mem.SeriesRSS, now, f.RSS)
	for _, one := range []struct {
		name  mem.Quantity
		value mem.Optional
	}{
		{mem.SeriesVMS, f.VMS}, {mem.SeriesPrivate, f.Private}, {mem.SeriesMinorFaults, f.MinorFaults},
		{mem.SeriesMajorFaults, f.MajorFaults}, {mem.SeriesCPU, f.CPU}, {mem.SeriesThreads, f.Threads},
		{mem.SeriesFiles, f.Files},
	} {
		if value, ok := one.value.Get(); ok {
			s.sink.Sample(p, "", one.name, now, value)
		}
	}
}

// mark keeps the system's high-water mark. Of a process that ran before, one that has not risen since is of before.
func (s *Portable) mark(p *Process, mark mem.Optional) {
	value, ok := mark.Get()
	if !ok {
		return
	}
	if p.ran && !p.Usage.Earlier.Known() {
		p.Usage.Earlier = mem.Some(value)
	}
	if value > p.Usage.Earlier.Or(0) {
		p.Usage.MaxRSS = mem.Some(max(value, p.Usage.MaxRSS.Or(0)))
	}
}

func (s *Portable) host(now int64, slow bool) {
	if !slow {
		return
	}
	m := s.table.Memory()
	if value, ok := m.Available.Get(); ok {
		s.sink.Sample(nil, "", mem.SeriesSystemAvailable, now, value)
	}
	if value, ok := m.Total.Get(); ok {
		s.sink.Sample(nil, "", mem.SeriesSystemTotal, now, value)
	}
	if own, ok := s.table.Figures(os.Getpid()); ok {
		s.sink.Sample(nil, "", mem.SeriesOwnRSS, now, own.RSS)
		if cpu, ok := own.CPU.Get(); ok {
			s.sink.Sample(nil, "", mem.SeriesOwnCPU, now, cpu)
		}
	}
}

func (s *Portable) sampleDevices(now int64) {
	for _, v := range s.vendors {
		readings, err := v.Sample(s.live)
		if what := v.Name() + " devices"; err != nil && !s.told[what] {
			s.told[what] = true
			s.sink.Unobserved(what, plain(err))
		}
		for _, r := range readings {
			s.sink.Sample(r.Process, r.Device, r.Name, cmp.Or(r.Time, now), r.Value)
		}
	}
}

// end forgets p, once.
func (s *Portable) end(p *Process, now int64) {
	if i := slices.Index(s.live, p); i >= 0 {
		s.live = slices.Delete(s.live, i, i+1)
		s.sink.Gone(p, now)
	}
}

// Hurried implements Watch.
func (s *Portable) Hurried() bool { return s.hurried }

// Growing implements Watch.
func (s *Portable) Growing() bool { return len(s.growing) > 0 }

// SampleGrowing implements Watch.
func (s *Portable) SampleGrowing(now int64) {
	if _, err := s.table.List(); err != nil {
		return
	}
	for _, p := range s.growing {
		if f, ok := s.table.Figures(p.PID); ok {
			p.highest = max(p.highest, f.RSS)
			s.sink.Sample(p, "", mem.SeriesRSS, now, f.RSS)
		}
	}
}

// Join implements Watch. start is 0 where the process does not know its own.
func (s *Portable) Join(pid int, start uint64, now int64) {
	if s.find(pid) == nil {
		s.joined[pid] = start
		s.discover(now)
	}
}

// Leave implements Watch.
func (s *Portable) Leave(pid int, now int64) {
	if p := s.find(pid); p != nil {
		s.left[pid] = p.StartTicks
		s.growing = slices.DeleteFunc(s.growing, func(other *Process) bool { return other == p })
		s.end(p, now)
	}
}

// Keeps implements Watch: kinds of memory are not known, so all that is resident counts.
func (s *Portable) Keeps() (bytes, most int64) {
	for _, p := range s.live {
		bytes, most = bytes+p.Usage.RSS, max(most, p.Usage.RSS)
	}
	return bytes, most
}

// KeepsTogether implements Watch.
func (s *Portable) KeepsTogether() int64 {
	bytes, _ := s.Keeps()
	return bytes
}
