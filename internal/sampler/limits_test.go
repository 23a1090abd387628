package sampler

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"

	"golang.org/x/sys/unix"
)

// TestLimits: a process's own limits are those that it set.
func TestLimits(t *testing.T) {
	c, _ := start(t, "python3", "-c", `
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))
print("ready", flush=True)
sys.stdin.read()`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}, sink)
	defer s.Close()
	s.Tick(monotonic())
	get := func(name mem.Quantity) int64 { return sink.last[fmt.Sprintf("%d  %s", c.Process.Pid, name)] }
	if files, space := get(mem.SeriesFilesLimit), get(mem.SeriesVMSLimit); files != 200 || space != 1<<40 {
		t.Errorf("%d files, %d bytes of address space; it set 200 and 1<<40", files, space)
	}
	if total := sink.last["0  "+string(mem.SeriesShmTotal)]; total <= 0 {
		if _, err := os.Stat("/dev/shm"); err == nil {
			t.Log("/dev/shm is no file system of its own here")
		}
	}
	if threads, most := sink.last["0  "+string(mem.SeriesSystemThreads)],
		sink.last["0  "+string(mem.SeriesSystemThreadsLimit)]; threads < 2 || most < threads {
		t.Errorf("%d threads of %d on this machine", threads, most)
	}
}

// TestDescriptorKinds: when many more are open, they are told by kind.
func TestDescriptorKinds(t *testing.T) {
	c, _ := start(t, "python3", "-c", `
import os, socket, sys, tempfile
folder = tempfile.mkdtemp(prefix="kinds")
held = [open(os.path.join(folder, "part%d.txt" % i), "w") for i in range(40)]
held += [socket.socket() for _ in range(5)]
gone = tempfile.TemporaryFile(dir=folder)
print("ready", flush=True)
sys.stdin.read()`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}, sink)
	defer s.Close()
	s.Tick(monotonic())
	kinds := sink.kinds[c.Process.Pid]
	files := int64(0)
	for kind, n := range kinds {
		if filepath.Base(kind) == "*.txt" {
			files += n
		}
	}
	if files != 40 || kinds["socket"] != 5 {
		t.Errorf("%v: 40 files of text and 5 sockets are open", kinds)
	}
	sink.kinds = nil
	if s.Tick(monotonic()); sink.kinds != nil {
		t.Error("told again, with no more of them")
	}
}

// TestGroupThreads: the control group that comes nearest to its limit counts, of whichever version.
func TestGroupThreads(t *testing.T) {
	for name, tree := range map[string]map[string]string{
		"v2": {"proc/self/cgroup": "0::/jobs/1\n", "sys/fs/cgroup/jobs/1/pids.current": "40\n",
			"sys/fs/cgroup/jobs/1/pids.max":   "max\n",
			"sys/fs/cgroup/jobs/pids.current": "90\n", "sys/fs/cgroup/jobs/pids.max": "100\n"},
		"v1": {"proc/self/cgroup": "8:pids:/jobs/1\n4:memory:/elsewhere\n",
			"sys/fs/cgroup/pids/jobs/1/pids.current": "40\n", "sys/fs/cgroup/pids/jobs/1/pids.max": "1000\n",
			"sys/fs/cgroup/pids/jobs/pids.current": "90\n", "sys/fs/cgroup/pids/jobs/pids.max": "100\n"},
	} {
		root := t.TempDir()
		for path, text := range tree {
			file := filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		sink := newSeen()
		var l limited
		l.openFiles(root, 0)
		l.sample(sink, 1, true)
		l.close()
		if used, most := sink.last["0  "+string(mem.SeriesCgroupThreads)],
			sink.last["0  "+string(mem.SeriesCgroupThreadsLimit)]; used != 90 || most != 100 {
			t.Errorf("%s: %d of %d, want 90 of 100", name, used, most)
		}
	}
}

// TestSharedLeft: a block of shared memory that nobody maps or has open is told at the end, one in use is not.
func TestSharedLeft(t *testing.T) {
	var fs unix.Statfs_t
	if unix.Statfs("/dev/shm", &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("no /dev/shm here")
	}
	c, end := start(t, "python3", "-c", `
import mmap, os, sys
def block(name):
    fd = os.open("/dev/shm/hightide-test-%s-%d" % (name, os.getppid()), os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, 1 << 20)
    at = mmap.mmap(fd, 1 << 20)
    at[:] = b"x" * (1 << 20)
    return fd, at
fd, at = block("left"); at.close(); os.close(fd)
fd, mapped = block("mapped"); os.close(fd)
opened, at = block("open"); at.close()
print("ready", flush=True)
sys.stdin.read()`)
	name := func(what string) string { return fmt.Sprintf("hightide-test-%s-%d", what, os.Getpid()) }
	defer func() {
		for _, what := range []string{"left", "mapped", "open"} {
			os.Remove("/dev/shm/" + name(what))
		}
	}()
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}, sink)
	defer s.Close()
	left := func() (names []string) {
		sink.left = nil
		s.Last(monotonic())
		for _, block := range sink.left {
			if strings.HasPrefix(block.Name, "hightide-test-") &&
				strings.HasSuffix(block.Name, fmt.Sprintf("-%d", os.Getpid())) && block.Bytes == 1<<20 {
				names = append(names, block.Name)
			}
		}
		return names
	}
	if got := left(); !slices.Equal(got, []string{name("left")}) {
		t.Errorf("%v, while it runs", got)
	}
	end()
	if got := left(); !slices.Equal(got, []string{name("left"), name("mapped"), name("open")}) {
		t.Errorf("%v, after its end", got)
	}
}
