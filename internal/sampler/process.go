package sampler

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// Process is one process of the tree. PID and StartTicks together are its identity: pids are reused.
type Process struct {
	PID        int
	Parent     int      // pid of the parent at first sight
	StartTicks uint64   // since boot
	FirstSeen  int64    // ns, CLOCK_MONOTONIC
	Command    []string // as the kernel has it: mask it before it is stored
	Usage      Usage

	dir       string
	page      []byte // to read into, shared by the tree
	comm      string
	image     int64 // as in stat
	statFile  int   // kept open: a read costs a third of open, read, close
	status    int
	schedstat int
	filesDir  int
	listFiles bool  // the kernel is too old to count them for us
	listed    int64 // descriptors that were open when their kinds were told last
	most      rlimits
	real      bool  // the root is the real one: system calls about the pid make sense
	joined    bool  // it came by Sampler.Join
	ran       bool  // it was there before the first tick, see Options.Running
	highest   int64 // RSS of all readings
	statRSS   int64 // as stat had it at the last reading of status
	peaked    int64 // the kernel's mark, where it rose above all readings since the last one; else 0

	parts      parts
	partsKnown bool
	kinds      parts // of files and shared memory, as recorded last
	kindsTold  bool
	locked     int64 // bytes of locked mappings
	lockedTold int64 // as recorded last
	before     lastTick
	sharing    sharing
	lineage    *lineage // it was forked and runs its parent's program, or has such children
	kin        *family
	forks      family             // what is known of its children that run its program
	spawns     map[string]*family // and of those that run others, by the programs' names

	pssLast   int64 // when PSS was read
	pssCost   int64 // what that cost
	pssRSS    int64 // and the RSS then
	pssEvery  int64 // time between the last two readings
	pssDenied bool
}

// Usage is the latest reading; counters are since the process began.
type Usage struct {
	Time        int64
	RSS, VMS    int64
	MinorFaults int64
	MajorFaults int64
	CPU         int64 // ns
	Threads     int64
	Swap        mem.Optional // once a second, at every tick while there is some
	Files       mem.Optional // at every tick, before Linux 6.2 once a second
	SwapRead    bool         // Swap is of Time, not older
	FilesRead   bool
	PSS, USS    mem.Optional
	Queued      int64        // ns that its first thread could run and waited for a processor, once a second
	QueuedAt    int64        // when that was read; 0: this kernel does not tell
	MaxRSS      mem.Optional // the kernel's high-water mark (VmHWM)
	// what that was when the process, which ran before, was first looked at; MaxRSS is absent until it rises
	Earlier mem.Optional
}

var (
	errGone  = errors.New("process is gone")
	pageSize = int64(os.Getpagesize())
)

const clockTick = 10_000_000 // ns; USER_HZ is 100 on every Linux we build for

// openProcess looks at a pid; errGone where it ended meanwhile or is a zombie.
func openProcess(root string, pid int, page []byte) (*Process, error) {
	p := &Process{PID: pid, page: page, dir: filepath.Join(root, "proc", strconv.Itoa(pid)), statFile: -1, status: -1,
		schedstat: -1, filesDir: -1, real: root == "/"}
	file, err := openFile(p.dir+"/stat", 0)
	if err != nil {
		return nil, errGone
	}
	p.statFile = file
	s, err := p.stat()
	if err != nil {
		p.close()
		return nil, err
	}
	p.Parent, p.StartTicks, p.comm, p.image = int(s.parent), uint64(s.start), string(s.comm), s.image
	p.readCommand()
	return p, nil
}

func (p *Process) stat() (stat, error) {
	n, err := pread(p.statFile, p.page)
	if err != nil {
		return stat{}, errGone // ESRCH once it was reaped
	}
	s, err := parseStat(p.page[:n])
	if err != nil {
		return s, err
	}
	// A zombie that still has threads is a program whose first thread ended before the others.
	if s.state == 'X' || s.state == 'Z' && s.threads <= 1 {
		return s, errGone
	}
	return s, nil
}

// readFigures takes the cheap figures, and once a second the slow ones. renamed: it called exec.
func (p *Process) readFigures(now int64, slow bool) (renamed bool, err error) {
	s, err := p.stat()
	if err != nil {
		return false, err
	}
	u := &p.Usage
	rss := s.rssPages * pageSize
	moved := rss != p.statRSS || s.minorFaults != u.MinorFaults || s.majorFaults != u.MajorFaults
	u.Time, u.RSS, u.VMS, u.Threads = now, rss, s.vms, s.threads
	u.MinorFaults, u.MajorFaults = s.minorFaults, s.majorFaults
	u.CPU = max(u.CPU, p.cpu(s.cpuTicks)) // the two sources differ in the last 10 ms
	if s.image != p.image {
		if p.lineage != nil {
			p.lineage.remove(p)
		}
		u.MaxRSS, p.sharing, p.highest = mem.Optional{}, sharing{}, 0 // of the program before
		u.Earlier, p.ran = mem.Optional{}, false
	}
	if s.image != p.image || string(s.comm) != p.comm { // it called exec, or gave itself a name
		p.comm, p.image = string(s.comm), s.image
		renamed = p.readCommand()
	}
	p.peaked = 0
	u.SwapRead = slow || moved || !u.MaxRSS.Known() && !u.Earlier.Known() || u.Swap.Or(0) > 0
	if u.SwapRead {
		p.statRSS = rss
		p.readStatus()
	}
	if slow {
		p.readQueued(now)
	}
	if u.FilesRead = slow || !p.listFiles; u.FilesRead {
		p.countFiles()
	}
	return renamed, nil
}

// cpu is processor time in ns: from the process' own clock, to the tick from stat elsewhere.
func (p *Process) cpu(ticks int64) int64 {
	if p.real {
		if ns, ok := clock(clockOf(p.PID)); ok {
			return ns
		}
	}
	return ticks * clockTick
}

// readStatus reads the kinds of resident memory and the kernel's high-water mark. One that has risen above all that was
// read before belongs between this reading and the last.
func (p *Process) readStatus() {
	if p.status < 0 {
		p.status, _ = openFile(p.dir+"/status", 0)
	}
	n, err := pread(p.status, p.page)
	if err != nil {
		return
	}
	s := parseStatus(p.page[:n])
	u := &p.Usage
	if s.rss > 0 {
		u.RSS = s.rss // summed over all processors; stat has it rounded
	}
	if p.ran && s.peak > 0 && !u.Earlier.Known() {
		u.Earlier = mem.Some(s.peak)
	}
	if s.peak > u.Earlier.Or(0) {
		if s.peak > max(u.MaxRSS.Or(0), p.highest, u.RSS) {
			p.peaked = s.peak
		}
		u.MaxRSS = mem.Some(max(s.peak, u.MaxRSS.Or(0)))
	}
	if s.swapKnown {
		u.Swap = mem.Some(s.swap)
	}
	p.parts, p.locked = s.parts, s.locked
	p.partsKnown = s.partsKnown || p.partsKnown && s.rss == 0 // of one that just ended there is nothing to tell
}

// readQueued reads how long the first thread waited for a processor.
func (p *Process) readQueued(now int64) {
	if p.schedstat < 0 {
		p.schedstat, _ = openFile(p.dir+"/schedstat", 0)
	}
	n, err := pread(p.schedstat, p.page)
	if err != nil {
		return
	}
	if queued, ok := parseQueued(p.page[:n]); ok {
		p.Usage.Queued, p.Usage.QueuedAt = queued, now
	}
}

// countFiles counts open descriptors: from Linux 6.2 the folder's size says it.
func (p *Process) countFiles() {
	if p.filesDir < 0 {
		fd, err := openFile(p.dir+"/fd", system.Folder)
		if err != nil {
			return // another user's process
		}
		p.filesDir = fd
	}
	if !p.listFiles {
		if size := sizeOf(p.filesDir); size > 0 {
			p.Usage.Files = mem.Some(size)
			return
		}
	}
	p.listFiles = true
	count := int64(0)
	if eachName(p.filesDir, p.page, func([]byte) { count++ }) == nil {
		p.Usage.Files = mem.Some(count)
	}
}

// readCommand reads the argument vector; true where it is not what it was.
func (p *Process) readCommand() bool {
	n, err := readFile(p.dir+"/cmdline", p.page) // longer ones are cut
	if err != nil || n == 0 {
		return false // a kernel thread, or between fork and exec
	}
	text := bytes.TrimRight(p.page[:n], "\x00")
	if p.sameCommand(text) {
		return false
	}
	p.Command = nil
	for word := range bytes.SplitSeq(text, []byte{0}) {
		p.Command = append(p.Command, string(word))
	}
	return true
}

// asideMark begins the environment of what hightide's own package starts from within an observed program, as to ask
// for a report. It is no part of the run, and neither is what it starts.
const asideMark = "HIGHTIDE_ASIDE=1\x00"

func (p *Process) aside() bool {
	n, err := readFile(p.dir+"/environ", p.page)
	return err == nil && bytes.HasPrefix(p.page[:n], []byte(asideMark))
}

func (p *Process) sameCommand(text []byte) bool {
	for i, word := range p.Command {
		if i > 0 {
			if len(text) == 0 || text[0] != 0 {
				return false
			}
			text = text[1:]
		}
		if len(text) < len(word) || string(text[:len(word)]) != word {
			return false
		}
		text = text[len(word):]
	}
	return len(p.Command) > 0 && len(text) == 0
}

// proportional reads PSS, by kind where the kernel tells it (from Linux 5.4), and USS in bytes. It walks the process'
// page tables: tens of milliseconds for a gigabyte of small pages.
func (p *Process) proportional() (pss parts, uss int64, err error) {
	// Opened anew each time: the file belongs to one address space, and exec makes another.
	n, err := readSlowly(p.dir+"/smaps_rollup", p.page)
	if err != nil {
		return pss, 0, err
	}
	text := p.page[:n]
	sum, ok := field(text, "Pss")
	clean, ok1 := field(text, "Private_Clean")
	dirty, ok2 := field(text, "Private_Dirty")
	if !ok || !ok1 || !ok2 {
		return pss, 0, errFormat
	}
	huge, _ := field(text, "Private_Hugetlb")
	var kinds bool
	if pss.anon, kinds = field(text, "Pss_Anon"); kinds {
		pss.shared, _ = field(text, "Pss_Shmem")
	} else {
		pss.anon = min(sum, p.parts.anon)
	}
	pss.file = max(sum-pss.anon-pss.shared, 0) // with what the kernel rounded off the others
	return pss, clean + dirty + huge, nil
}

// gone says whether a file of /proc could not be read because the process ended meanwhile: its folder is not there
// any more either. A kernel without that file has the folder.
func (p *Process) gone(err error) bool {
	if errors.Is(err, syscall.ENOENT) {
		_, err = os.Stat(p.dir)
		return errors.Is(err, syscall.ENOENT)
	}
	return errors.Is(err, syscall.ESRCH)
}

func (p *Process) close() {
	for _, fd := range []*int{&p.statFile, &p.status, &p.schedstat, &p.filesDir} {
		if *fd >= 0 {
			closeFile(*fd)
			*fd = -1
		}
	}
}

// readFile reads the beginning of a file, as much as the buffer holds.
func readFile(path string, buffer []byte) (int, error) {
	fd, err := openFile(path, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(fd)
	return pread(fd, buffer)
}

// ThreadCPU is the calling thread's processor time in ns.
func ThreadCPU() int64 {
	ns, _ := clock(threadClock)
	return ns
}

// Resident is what a process has resident and the kernel's high-water mark of that, bytes; zeros where it ended.
func Resident(pid int) (rss, mark int64) {
	var buffer [4096]byte
	n, _ := readFile("/proc/"+strconv.Itoa(pid)+"/status", buffer[:])
	s := parseStatus(buffer[:max(n, 0)])
	return s.rss, s.peak
}

// ownUsage is our own processor time in ns and resident bytes.
func ownUsage() (cpu, rss int64) {
	cpu, _ = clock(processClock)
	var buffer [256]byte
	if n, err := readFile("/proc/self/statm", buffer[:]); err == nil {
		if i := bytes.IndexByte(buffer[:n], ' '); i >= 0 {
			rss = number(buffer[i+1:n]) * pageSize
		}
	}
	return cpu, rss
}
