package sampler

import (
	"bytes"
	"path/filepath"
	"syscall"

	"hightide/internal/mem"
)

// hostReader samples what concerns the whole machine and the control group.
type hostReader struct {
	meminfo int
	cgroup  Cgroup
	ticks   uint64
}

// availableEvery is how many ticks pass between readings of /proc/meminfo: the kernel sums over all
// zones and processors for it, which costs as much as a process does.
const availableEvery = 4

// open prepares to read; pid is of the process whose control group counts, 0: ours.
func (h *hostReader) open(root string, pid int) {
	h.meminfo, _ = openFile(filepath.Join(root, "proc/meminfo"), 0)
	h.cgroup = OpenCgroup(root, pid)
}

func (h *hostReader) close() {
	if h.meminfo >= 0 {
		syscall.Close(h.meminfo)
	}
	h.cgroup.Close()
}

func (h *hostReader) sample(sink Sink, now int64, slow bool) {
	h.ticks++
	if slow || h.ticks%availableEvery == 0 {
		h.system(sink, now, slow)
	}
	if used, ok := h.cgroup.Used().Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupUsed, now, used)
	}
	if !slow {
		return
	}
	if limit, ok := h.cgroup.Limit().Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupLimit, now, limit)
	}
	oom, kill := h.cgroup.Events()
	if value, ok := oom.Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupOOM, now, value)
	}
	if value, ok := kill.Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupOOMKill, now, value)
	}
}

func (h *hostReader) system(sink Sink, now int64, slow bool) {
	var buffer [4096]byte
	n, err := pread(h.meminfo, buffer[:])
	if err != nil {
		return
	}
	if value, ok := field(buffer[:n], "MemAvailable"); ok {
		sink.Sample(nil, "", mem.SeriesSystemAvailable, now, value)
	}
	if value, ok := field(buffer[:n], "MemTotal"); ok && slow {
		sink.Sample(nil, "", mem.SeriesSystemTotal, now, value)
	}
}

// Free is what programs can still take: of the machine's memory, and of this process's control group, whose cache of
// files gives way. Absent where neither says.
func Free(root string) mem.Optional {
	var free mem.Optional
	var buffer [4096]byte
	if n, err := readFile(filepath.Join(root, "proc/meminfo"), buffer[:]); err == nil {
		if value, ok := field(buffer[:n], "MemAvailable"); ok {
			free = mem.Some(value)
		}
	}
	group := OpenCgroup(root, 0)
	defer group.Close()
	limit, limited := group.Limit().Get()
	used, known := group.Used().Get()
	if !limited || !known || len(group.dirs) == 0 {
		return free
	}
	left := max(0, limit-used)
	if n, err := readFile(filepath.Join(group.dirs[0], "memory.stat"), buffer[:]); err == nil {
		for line := range bytes.Lines(buffer[:n]) {
			if cache, ok := bytes.CutPrefix(line, []byte("inactive_file ")); ok {
				left = min(limit, left+number(bytes.TrimSpace(cache)))
			}
		}
	}
	return mem.Some(min(left, free.Or(left)))
}
