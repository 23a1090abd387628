// Package sampler looks at processes and devices from outside, through what the kernel and the
// vendors publish, so a training that hangs or was killed is still seen.
//
//	/proc/PID/{stat,status,fd,smaps_rollup} ──▶ Tree, Process ─┐
//	/proc/meminfo, the control group        ──▶ host, Cgroup   ├─▶ Sampler.Tick ──▶ Sink (record)
//	NVML helper, sysfs, DRM fdinfo          ──▶ Vendor         ┘
//	where there is no /proc: processes.Table ──▶ Portable.Tick ──▶ Sink
//
// It holds no rules about memory: it reads numbers, gives them a name from mem/series.go and says
// what it could not read and why. Its own cost is bounded: see Budget in budget.go. The root of
// the file system is a parameter, so tests replay recorded machines. Start reading at Tick; a new
// GPU vendor is one file and one line in vendors.go.
package sampler

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/processes"
)

// Sink takes what is seen. All calls come from the goroutine that calls Tick.
type Sink interface {
	// Process tells of a process at first sight and again when its command changes (exec).
	Process(p *Process)
	// Left tells that a process at second sight is none of the run's: hightide's own package started it.
	Left(p *Process)
	// Gone tells that a process ended; its last Usage stays in it. Called once.
	Gone(p *Process, now int64)
	// Sample is one value of a series of mem/series.go; p is nil for the tree, the host or a whole
	// device; device is "" or as in "nvidia:0". Times of one series never decrease.
	Sample(p *Process, device string, name mem.Quantity, time, value int64)
	// Descriptors says what the open descriptors of a process are, each time that there are far more of them: how many
	// of each kind.
	Descriptors(p *Process, now int64, kinds map[string]int64)
	// SharedLeft says at the end which blocks of /dev/shm no process uses.
	SharedLeft(now int64, left []Left)
	// Unobserved says once what cannot be seen here and why, in words for people.
	Unobserved(what, why string)
}

// Options of a Sampler. Leader is needed, the rest has defaults.
type Options struct {
	// Leader is the process whose descendants are watched; it is not watched itself unless
	// WatchLeader is set.
	Leader      int
	WatchLeader bool
	// Running says that the leader ran before anybody looked. Its control group is read, and not ours, and what the
	// kernel counted of the processes found at the first tick before it is theirs alone: see Usage.Earlier.
	Running bool
	// Group is the control group that the leader began in; nil: ours.
	Group *Group
	// Interval is the time between ticks, for the budget. Default 100 ms.
	Interval time.Duration
	// Share of one core that sampling may take. Default 0.005.
	Share float64
	// Root is where proc and sys are found. Default "/".
	Root string
	// Vendors to ask for devices. Default: those of Vendors that are present.
	Vendors []Vendor
	// Table is where processes are looked up instead of /proc; nil: the system's, where it has no /proc. See Open.
	Table processes.Table
	// Members are the processes that the system counts to the run, whoever their parents are; nil: it counts none.
	Members func() []int
}

// Sampler reads a process tree, its host and its devices, a tick at a time. For one goroutine.
type Sampler struct {
	options Options
	sink    Sink
	tree    *Tree
	budget  *Budget
	host    hostReader
	vendors []Vendor
	told    map[string]bool // Unobserved already said
	cursor  int             // round robin where not all processes fit into a tick
	slow    int64           // when the figures that change slowly were last read
	live    []*Process      // copy of the tree's, so that the cursor stays valid within a tick
	summed  bool            // some process was seen with memory
	shared  footprint
	began   int64      // ns of the wall clock
	before  int64      // the tick before
	hurried bool       // the tree changes
	maps    []byte     // to read lists of mappings into
	rss     int64      // of the tree, at the tick before
	growing []*Process // that gained so much since the tick before
}

// growsFast is how far above all it had before a process must be for Growing. Memory is touched at some GiB a second
// at most, so a tick's worth of that is what a kill could hide.
const growsFast = 32 << 20

// slowEvery is how often figures that hardly change are read: system totals, command lines.
const slowEvery = int64(time.Second)

// New prepares a sampler; it reads nothing yet but starts the vendors' helpers.
func New(options Options, sink Sink) *Sampler {
	if options.Interval <= 0 {
		options.Interval = 100 * time.Millisecond
	}
	if options.Share <= 0 {
		options.Share = 0.005
	}
	options.Root = cmp.Or(options.Root, "/")
	s := &Sampler{
		options: options, sink: sink, told: map[string]bool{}, vendors: options.Vendors,
		tree:   NewTree(options),
		budget: NewBudget(options.Share, options.Interval),
		began:  time.Now().UnixNano(),
	}
	group := 0
	if options.Running {
		group = options.Leader
	}
	s.host.openFiles(options.Root, group)
	if options.Group != nil {
		s.host.cgroup.Close()
		s.host.cgroup = options.Group.open()
	}
	if s.vendors == nil {
		s.vendors = OpenVendors(options.Root)
	}
	return s
}

// Close gives back descriptors and ends helpers.
func (s *Sampler) Close() {
	s.tree.close()
	s.host.close()
	for _, v := range s.vendors {
		v.Close()
	}
}

// Processes are those alive at the last tick.
func (s *Sampler) Processes() []*Process { return s.tree.live }

// helperPids are processes that the sampler itself started. A leader that ran before may also be above ourselves, and
// above the process that started us to have its own place in the terminal.
func (s *Sampler) helperPids() []int {
	var pids []int
	if s.options.Running {
		pids = append(pids, os.Getpid(), os.Getppid())
	}
	for _, v := range s.vendors {
		if h, ok := v.(interface{ HelperPid() int }); ok && h.HelperPid() > 0 {
			pids = append(pids, h.HelperPid())
		}
	}
	return pids
}

// Tick looks once. now is CLOCK_MONOTONIC in ns. It never waits for a device or another process.
func (s *Sampler) Tick(now int64) {
	runtime.LockOSThread() // the cost is read from the thread's own processor clock
	defer runtime.UnlockOSThread()
	start := ThreadCPU()
	s.hurried = false
	s.growing = s.growing[:0]
	slow := s.slow == 0 || now-s.slow >= slowEvery
	if slow {
		s.slow = now
	}
	s.discover(now)
	found := ThreadCPU()
	s.readProcesses(now, slow)
	readings := ThreadCPU() - found
	s.host.sample(s.sink, now, slow)
	s.sampleDevices(now)
	cost := ThreadCPU() - start
	s.budget.Ticked(now, cost, readings)
	s.footprint(now, false)
	s.before = now
	s.hurried = s.hurried && s.budget.Rich()
	if slow {
		s.sampleSelf(now)
	}
}

// Last reads every process once more, PSS included where it matters, whatever it costs: for the end of a run or when
// someone asks for exact figures now.
func (s *Sampler) Last(now int64) {
	s.discover(now)
	for _, p := range s.live {
		s.readProcess(p, now, true)
	}
	s.sums(now)
	s.footprint(now, true)
	s.host.sample(s.sink, now, true) // did the kernel kill one of them for memory?
	if left := leftBlocks(s.options.Root, s.began); len(left) > 0 {
		s.sink.SharedLeft(now, left)
	}
}

// Hurried says that processes appear or grow so fast that the next tick should come sooner than others, and may.
func (s *Sampler) Hurried() bool { return s.hurried }

// Growing says that a process gains memory so fast that what it takes right before it is killed would be missed.
func (s *Sampler) Growing() bool { return len(s.growing) > 0 }

// SampleGrowing reads the resident set of those alone.
func (s *Sampler) SampleGrowing(now int64) {
	for _, p := range s.growing {
		if figures, err := p.stat(); err == nil && figures.vms > 0 {
			p.highest = max(p.highest, figures.rssPages*pageSize)
			s.sink.Sample(p, "", mem.SeriesRSS, now, figures.rssPages*pageSize)
		}
	}
}

func (s *Sampler) discover(now int64) {
	helpers := s.helperPids()
	born := s.tree.Scan(func(pid int) bool {
		return slices.Contains(helpers, pid)
	})
	s.hurried = s.hurried || len(born) > 0
	for _, p := range born {
		p.ran = s.options.Running && s.before == 0
		s.meet(p, now)
	}
	for _, p := range s.tree.ended {
		s.end(p, now)
	}
	s.tree.ended = s.tree.ended[:0]
	s.live = append(s.live[:0], s.tree.live...)
}

// meet reads a process that is new in the tree.
func (s *Sampler) meet(p *Process, now int64) {
	p.FirstSeen = now
	s.sink.Process(p)
	s.readProcess(p, now, true) // it may be gone when its turn comes
	if parent := s.parentOf(p); parent != nil && p.partsKnown {
		s.shared.forked(p, parent)
	}
	s.relate(p)
}

// Join looks from here on at a process that began at startTicks and whose parents may be gone or none of ours. A
// daemon is forked twice, and a shell may end before its background jobs do.
func (s *Sampler) Join(pid int, startTicks uint64, now int64) {
	if p := s.tree.joinProcess(pid, startTicks); p != nil {
		p.joined = true
		s.meet(p, now)
	}
}

// readProcesses reads as many processes as the budget allows: all of them as a rule, else the
// largest at every tick and the others in turn.
func (s *Sampler) readProcesses(now int64, slow bool) {
	n := s.budget.Processes(len(s.live), s.hurried)
	if n < len(s.live) {
		largest := s.live[0]
		for _, p := range s.live {
			if p.Usage.RSS > largest.Usage.RSS {
				largest = p
			}
		}
		s.readProcess(largest, now, slow)
		s.unobserved("every process at every interval",
			"reading all would take more than the sampling budget: the smaller ones take turns")
	}
	for i := range n {
		if p := s.live[(s.cursor+i)%len(s.live)]; p.Usage.Time != now {
			s.readProcess(p, now, slow)
		}
	}
	if s.cursor += n; s.cursor >= len(s.live) {
		s.cursor = 0
	}
	s.sums(now)
}

// readProcess takes one process' figures, or its end where it is gone.
func (s *Sampler) readProcess(p *Process, now int64, slow bool) {
	renamed, err := p.readFigures(now, slow)
	if err != nil {
		s.end(p, now)
		return
	}
	if renamed && p.aside() { // it was seen before it called exec
		s.sink.Left(p)
		s.Leave(p.PID, now)
		return
	}
	if renamed {
		s.sink.Process(p)
		s.relate(p)
	}
	u := &p.Usage
	if p.highest > 0 && u.RSS > p.highest+growsFast {
		s.growing = append(s.growing, p)
	}
	p.highest = max(p.highest, u.RSS)
	// VMS or RSS 0: the memory shows under another of its threads only, or exec is making it anew.
	if u.VMS > 0 && u.RSS > 0 && !s.forming(p, now) {
		if p.peaked > 0 {
			s.sink.Sample(p, "", mem.SeriesRSS, s.between(now), p.peaked)
		}
		s.sink.Sample(p, "", mem.SeriesRSS, now, u.RSS)
		s.sink.Sample(p, "", mem.SeriesVMS, now, u.VMS)
		s.tellKinds(p, now)
	}
	if u.MinorFaults+u.MajorFaults > 0 { // none at all: gVisor, which does not count them, or a child that just began
		s.sink.Sample(p, "", mem.SeriesMinorFaults, now, u.MinorFaults)
		s.sink.Sample(p, "", mem.SeriesMajorFaults, now, u.MajorFaults)
	}
	s.sink.Sample(p, "", mem.SeriesCPU, now, u.CPU)
	s.sink.Sample(p, "", mem.SeriesThreads, now, u.Threads)
	if swap, ok := u.Swap.Get(); ok && u.SwapRead {
		s.sink.Sample(p, "", mem.SeriesSwap, now, swap)
	}
	if files, ok := u.Files.Get(); ok && u.FilesRead {
		s.sink.Sample(p, "", mem.SeriesFiles, now, files)
		if files >= p.listed+max(leastNewFiles, p.listed/4) {
			p.listed = files
			s.sink.Descriptors(p, now, p.descriptors())
		}
	}
	if slow {
		p.limits(s.sink, now)
	}
}

// tellKinds records what of the resident memory is of files and shared, where that changed.
func (s *Sampler) tellKinds(p *Process, now int64) {
	if p.locked != p.lockedTold {
		p.lockedTold = p.locked
		s.sink.Sample(p, "", mem.SeriesLocked, now, p.locked)
	}
	kinds := parts{file: p.parts.file, shared: p.parts.shared}
	if !p.partsKnown || p.kindsTold && p.kinds == kinds {
		return
	}
	p.kinds, p.kindsTold = kinds, true
	s.sink.Sample(p, "", mem.SeriesRSSFile, now, p.parts.file)
	s.sink.Sample(p, "", mem.SeriesRSSShared, now, p.parts.shared)
}

// between is a moment after the last tick, where what is known to have been since then is put.
func (s *Sampler) between(now int64) int64 {
	if s.before <= 0 || s.before >= now {
		return now
	}
	return s.before + (now-s.before)/2
}

// end forgets p, once.
func (s *Sampler) end(p *Process, now int64) {
	if s.tree.Find(p.PID) == p {
		s.shared.ended(p, s.tree.live)
		s.tree.remove(p)
		s.sink.Gone(p, now)
	}
}

// Leave looks at a process no more, nor at those that it starts from here on.
func (s *Sampler) Leave(pid int, now int64) {
	if p := s.tree.Find(pid); p != nil {
		s.growing = slices.DeleteFunc(s.growing, func(other *Process) bool { return other == p })
		s.end(p, now)
	}
	s.tree.leave(pid)
}

// sums records what all have together. Where marks rose since the last tick, the largest rise makes a sample of its
// own: of several nobody knows whether they were at one moment.
func (s *Sampler) sums(now int64) {
	var rss, rise, threads int64
	for _, p := range s.tree.live {
		threads += p.Usage.Threads
		if !s.forming(p, now) {
			rss += p.Usage.RSS
			rise = max(rise, p.peaked-p.Usage.RSS)
		}
	}
	if s.summed = s.summed || rss > 0; !s.summed { // nothing was seen is not the same as nothing was there
		return
	}
	if rise > 0 {
		s.sink.Sample(nil, "", mem.SeriesTreeRSS, s.between(now), rss+rise)
		if sum, ok := s.shared.of(s.tree.live); ok {
			s.treePSS(s.between(now), bounds{sum.least + rise, sum.most + rise})
		}
	}
	s.sink.Sample(nil, "", mem.SeriesTreeRSS, now, rss)
	s.sink.Sample(nil, "", mem.SeriesTreeThreads, now, threads)
	s.hurried = s.hurried || len(s.tree.live) > 1 && rss > s.rss+max(s.rss/20, growsFast)
	s.rss = rss
}

// parentOf is the process that p is still a copy of; nil where it runs a program of its own. For one that
// its parents do not lead to it is any other copy.
func (s *Sampler) parentOf(p *Process) *Process {
	parent := s.tree.Find(p.Parent)
	if parent == nil && p.joined && p.image != 0 {
		for _, other := range s.tree.live {
			if other != p && other.image == p.image {
				return other
			}
		}
	}
	if parent == nil || parent == p || parent.image != p.image {
		return nil
	}
	return parent
}

// busyFaults is how many page faults a child makes that has begun to work; one that is about to become another
// program makes fewer.
const busyFaults = 2000

// forming says that p was split off its parent a moment ago and still runs its program. Most such
// are about to become another, and until then every page of theirs is the parent's. Counted, they
// would double a peak that nobody ever had, and stand as the peak of a program that never took it.
func (s *Sampler) forming(p *Process, now int64) bool {
	return !p.ran && now-p.FirstSeen <= int64(time.Second) && s.parentOf(p) != nil && p.faults() < busyFaults
}

// pss reads the PSS of a process among all.
func (s *Sampler) pss(p *Process, now int64) bool {
	pss, ok := s.proportional(p, now)
	if ok {
		p.wasRead(pss)
	}
	return ok
}

// proportional reads and records PSS and USS of a process.
func (s *Sampler) proportional(p *Process, now int64) (parts, bool) {
	start := ThreadCPU()
	p.readStatus() // the kinds of RSS of that moment
	pss, uss, err := p.proportional()
	s.budget.Paid(p, now, ThreadCPU()-start)
	if err != nil {
		p.pssDenied = true
		if !p.gone(err) {
			s.unobserved("PSS and USS of some processes", "smaps_rollup: "+plain(err))
		}
		return pss, false
	}
	p.Usage.PSS, p.Usage.USS = mem.Some(pss.sum()), mem.Some(uss)
	s.sink.Sample(p, "", mem.SeriesPSS, now, pss.sum())
	s.sink.Sample(p, "", mem.SeriesUSS, now, uss)
	if p.pssEvery > 0 {
		s.sink.Sample(p, "", mem.SeriesSampleInterval, now, p.pssEvery)
	}
	return pss, true
}

func (s *Sampler) sampleDevices(now int64) {
	for _, v := range s.vendors {
		readings, err := v.Sample(s.tree.live)
		if err != nil {
			s.unobserved(v.Name()+" devices", plain(err))
		}
		for _, r := range readings {
			at := cmp.Or(r.Time, now)
			s.sink.Sample(r.Process, r.Device, r.Name, at, r.Value)
		}
	}
}

// sampleSelf records what hightide itself takes.
func (s *Sampler) sampleSelf(now int64) {
	cpu, rss := ownUsage()
	s.sink.Sample(nil, "", mem.SeriesOwnCPU, now, cpu)
	if rss > 0 {
		s.sink.Sample(nil, "", mem.SeriesOwnRSS, now, rss)
	}
}

func (s *Sampler) unobserved(what, why string) {
	if !s.told[what] {
		s.told[what] = true
		s.sink.Unobserved(what, why)
	}
}

// plain drops the path from an error of the file system: it names a pid nobody knows.
func plain(err error) string {
	if path, ok := err.(*os.PathError); ok {
		return path.Err.Error()
	}
	return err.Error()
}
