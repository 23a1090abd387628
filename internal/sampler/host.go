package sampler

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/processes/here"
	"hightide/internal/system"
)

// hostReader samples what concerns the whole machine and the control group.
type hostReader struct {
	meminfo int
	cgroup  Cgroup
	ticks   uint64
	limited limited
}

// availableEvery is how many ticks pass between readings of /proc/meminfo: the kernel sums over all
// zones and processors for it, which costs as much as a process does.
const availableEvery = 4

// openFiles prepares to read; pid is of the process whose control group counts, 0: ours.
func (h *hostReader) openFiles(root string, pid int) {
	h.meminfo, _ = openFile(filepath.Join(root, "proc/meminfo"), 0)
	h.cgroup = OpenCgroup(root, pid)
	h.limited.openFiles(root, pid)
}

func (h *hostReader) close() {
	if h.meminfo >= 0 {
		closeFile(h.meminfo)
	}
	h.cgroup.Close()
	h.limited.close()
}

func (h *hostReader) sample(sink Sink, now int64, slow bool) {
	h.ticks++
	if slow || h.ticks%availableEvery == 0 {
		h.system(sink, now, slow)
	}
	if used, ok := h.cgroup.Used().Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupUsed, now, used)
	}
	h.limited.sample(sink, now, slow)
	if !slow {
		return
	}
	if file, ok := h.cgroup.File().Get(); ok {
		sink.Sample(nil, "", mem.SeriesCgroupFile, now, file)
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
	if table := here.Table(); table != nil {
		free = table.Memory().Available
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

// Host describes the machine under root; what it does not say is absent. The GPUs are those of
// the vendors given, the limit that of a process's control group; pid 0: ours.
func Host(root string, pid int, vendors []Vendor) mem.Host {
	host := mem.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), PageSize: os.Getpagesize()}
	host.Name, _ = os.Hostname()
	if host.Kernel = word(filepath.Join(root, "proc/sys/kernel/osrelease")); host.Kernel == "" { // as in gVisor
		if words := strings.Fields(word(filepath.Join(root, "proc/version"))); len(words) > 2 {
			host.Kernel = words[2]
		}
	}
	host.CPU = cpuModel(filepath.Join(root, "proc/cpuinfo"))
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		host.Memory = optional(field(text, "MemTotal"))
	}
	if table := here.Table(); table != nil {
		host.Memory = table.Memory().Total
	}
	group := OpenCgroup(root, pid)
	defer group.Close()
	host.Limit = group.Limit()
	for _, v := range vendors {
		host.GPUs = append(host.GPUs, v.Devices()...)
	}
	return host
}

func cpuModel(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ReadGit asks git about the working copy around dir. nil: there is none, or no git, or git took
// longer than the context (at most 3 s). Files that git does not track do not make it dirty. It runs
// no hook and no file-system monitor, takes no lock and asks nobody for a password.
func ReadGit(ctx context.Context, dir string) *mem.Git {
	if !insideWorkingCopy(dir) {
		return nil // cheaper than git, and no process on a machine without it
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"--no-optional-locks",
		"status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=dirty")
	c.Dir = dir
	c.SysProcAttr = system.OwnGroup() // a Ctrl-C is meant for the training
	c.WaitDelay = 100 * time.Millisecond
	for _, entry := range os.Environ() {
		// A hook that starts a training hands down the repository it belongs to, and the preloads
		// of an outer run are none of git's business.
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "LD_PRELOAD=") {
			c.Env = append(c.Env, entry)
		}
	}
	c.Env = append(c.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := c.Output()
	if err != nil {
		return nil
	}
	return parseGitStatus(out)
}

// parseGitStatus reads "git status --porcelain=v2 --branch".
func parseGitStatus(out []byte) *mem.Git {
	var git mem.Git
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		if commit, ok := strings.CutPrefix(text, "# branch.oid "); ok {
			git.Commit = commit
		} else if branch, ok := strings.CutPrefix(text, "# branch.head "); ok && branch != "(detached)" {
			git.Branch = branch
		} else if text != "" && text[0] != '#' {
			git.Dirty = true
		}
	}
	if git.Commit == "" || git.Commit == "(initial)" {
		return nil
	}
	return &git
}

func insideWorkingCopy(dir string) bool {
	for {
		if exists(filepath.Join(dir, ".git")) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
