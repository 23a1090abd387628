package sampler

import (
	"bytes"
	"path/filepath"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// Memory is not all that a program runs out of. Here is what else there is only so much of, and how much.

// rlimits are a process's own limits; absent: none, or not known. A program may change them while it runs.
type rlimits struct{ space, threads, files mem.Optional }

// limits tells what the process may have at most, where that is new.
func (p *Process) limits(sink Sink, now int64) {
	n, err := readFile(p.dir+"/limits", p.page)
	if err != nil {
		return
	}
	most := parseLimits(p.page[:n])
	if most == p.most {
		return
	}
	tell := func(name mem.Quantity, was, is mem.Optional) {
		if limit, ok := is.Get(); ok && is != was {
			sink.Sample(p, "", name, now, limit)
		}
	}
	tell(mem.SeriesVMSLimit, p.most.space, most.space)
	tell(mem.SeriesFilesLimit, p.most.files, most.files)
	if user, ok := ownerOf(p.dir); ok && user != 0 { // fork(2) does not count the superuser's
		tell(mem.SeriesThreadsLimit, p.most.threads, most.threads)
	}
	p.most = most
}

// parseLimits reads the soft limits of /proc/PID/limits.
func parseLimits(text []byte) (l rlimits) {
	const column = 26 // at which the soft limits stand, after their names: see proc_pid_limits(5)
	for line := range bytes.Lines(text) {
		if len(line) < column {
			continue
		}
		soft, _, _ := bytes.Cut(line[column:], []byte(" "))
		switch string(bytes.TrimRight(line[:column], " ")) {
		case "Max address space":
			l.space = optional(quantity(soft))
		case "Max processes":
			l.threads = optional(quantity(soft))
		case "Max open files":
			l.files = optional(quantity(soft))
		}
	}
	return l
}

// limited is what the machine and control groups have of threads and shared memory.
type limited struct {
	root string
	dirs []string // of the group of the controller "pids", and those around it
	shm  int      // the folder, open
	fs   fileSystem
}

func (l *limited) openFiles(root string, pid int) {
	l.root = root
	l.dirs, _ = cgroupDirs(root, pid, "pids", map[int]string{1: "pids.current", 2: "pids.current"})
	l.shm, _ = openFile(filepath.Join(root, "dev/shm"), system.Folder)
}

func (l *limited) close() {
	if l.shm >= 0 {
		closeFile(l.shm)
		l.shm = -1
	}
}

func (l *limited) sample(sink Sink, now int64, slow bool) {
	l.sharedMemory(sink, now)
	if !slow {
		return
	}
	l.groupThreads(sink, now)
	l.systemThreads(sink, now)
}

// sharedMemory reads the file system /dev/shm; where that is a folder of another, it has no limit of its own.
func (l *limited) sharedMemory(sink Sink, now int64) {
	if used, total := l.fs.inMemory(l.shm); total > 0 {
		sink.Sample(nil, "", mem.SeriesShmUsed, now, used)
		sink.Sample(nil, "", mem.SeriesShmTotal, now, total)
	}
}

// groupThreads reads the control group that comes nearest to its limit of threads.
func (l *limited) groupThreads(sink Sink, now int64) {
	var least, used, most int64
	for _, dir := range l.dirs {
		limit, ok1 := quantityIn(dir, "pids.max")
		current, ok2 := quantityIn(dir, "pids.current")
		if left := limit - current; ok1 && ok2 && (most == 0 || left < least) {
			least, used, most = left, current, limit
		}
	}
	if most > 0 {
		sink.Sample(nil, "", mem.SeriesCgroupThreads, now, used)
		sink.Sample(nil, "", mem.SeriesCgroupThreadsLimit, now, most)
	}
}

// systemThreads reads how many threads the machine has, the kernel's own included: of "0.20 0.18 0.12 1/80 11206" it
// is the 80.
func (l *limited) systemThreads(sink Sink, now int64) {
	var buffer [128]byte
	n, err := readFile(filepath.Join(l.root, "proc/loadavg"), buffer[:])
	if err != nil {
		return
	}
	_, rest, _ := bytes.Cut(buffer[:n], []byte("/"))
	count, _, _ := bytes.Cut(rest, []byte(" "))
	used, ok := quantity(count)
	threads, ok1 := quantityIn(l.root, "proc/sys/kernel/threads-max")
	pids, ok2 := quantityIn(l.root, "proc/sys/kernel/pid_max")
	if ok && ok1 && ok2 {
		sink.Sample(nil, "", mem.SeriesSystemThreads, now, used)
		sink.Sample(nil, "", mem.SeriesSystemThreadsLimit, now, min(threads, pids))
	}
}
