package sampler

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hightide/internal/mem"
)

// seen is a Sink that remembers.
type seen struct {
	processes  map[int]*Process
	gone       map[int]int
	last       map[string]int64 // "pid device name"
	unobserved map[string]string
	samples    int
	kinds      map[int]map[string]int64
	left       []Left
}

func newSeen() *seen {
	return &seen{processes: map[int]*Process{}, gone: map[int]int{}, last: map[string]int64{},
		unobserved: map[string]string{}}
}

func key(p *Process, device string, name mem.Quantity) string {
	pid := 0
	if p != nil {
		pid = p.PID
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", pid, device, name))
}

func (s *seen) Process(p *Process)       { s.processes[p.PID] = p }
func (s *seen) Left(p *Process)          { delete(s.processes, p.PID) }
func (s *seen) Gone(p *Process, _ int64) { s.gone[p.PID]++ }
func (s *seen) Descriptors(p *Process, _ int64, kinds map[string]int64) {
	if s.kinds == nil {
		s.kinds = map[int]map[string]int64{}
	}
	s.kinds[p.PID] = kinds
}
func (s *seen) SharedLeft(_ int64, left []Left) { s.left = left }
func (s *seen) Unobserved(what, why string)     { s.unobserved[what] = why }
func (s *seen) Sample(p *Process, device string, name mem.Quantity, _, value int64) {
	s.last[key(p, device, name)] = value
	s.samples++
}

func monotonic() int64 {
	ns, _ := clock(1)
	return ns
}

// start runs a shell or Python program that prints a line when it is ready and ends when its
// standard input is closed.
func start(t testing.TB, name string, args ...string) (*exec.Cmd, func()) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s here to observe", name)
	}
	c := exec.Command(name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	end := func() {
		stdin.Close()
		c.Wait()
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what is left of its group
	}
	t.Cleanup(end)
	return c, end
}

// until waits for what must come; how soon is the machine's affair.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute in vain: %s", what)
		}
	}
}

// hold is a Python program that touches some MiB and waits.
const hold = `
import sys
block = bytearray(%d << 20)
files = [open("/dev/null") for _ in range(7)]
print("ready", flush=True)
sys.stdin.read()
`

// TestProcess compares every figure with what the kernel says elsewhere.
func TestProcess(t *testing.T) {
	c, end := start(t, "python3", "-c", fmt.Sprintf(hold, 64))
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	for range 4 {
		s.Tick(monotonic())
	}
	pid := c.Process.Pid
	get := func(name mem.Quantity) int64 {
		value, ok := sink.last[fmt.Sprintf("%d  %s", pid, name)]
		if !ok {
			t.Errorf("no sample of %s", name)
		}
		return value
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kernel := func(key string) int64 { value, _ := field(status, key); return value }
	near := func(name string, got, want, slack int64) {
		if got < want-slack || got > want+slack {
			t.Errorf("%s: %d, the kernel says %d", name, got, want)
		}
	}
	near("RSS", get(mem.SeriesRSS), kernel("VmRSS"), 1<<20)
	near("VMS", get(mem.SeriesVMS), kernel("VmSize"), 0)
	near("threads", get(mem.SeriesThreads), kernel("Threads"), 0)
	// it may touch pages in between, as for RSS
	near("high-water mark", s.tree.Find(pid).Usage.MaxRSS.Or(0), kernel("VmHWM"), 1<<20)
	if u := s.tree.Find(pid).Usage; u.QueuedAt == 0 || u.Queued < 0 || u.Queued > monotonic() {
		t.Errorf("it waited %d ns for a processor, as read at %d", u.Queued, u.QueuedAt)
	}
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	near("files", get(mem.SeriesFiles), int64(len(files)), 0)
	if get(mem.SeriesFiles) < 10 { // standard ones and seven
		t.Errorf("%d open files", get(mem.SeriesFiles))
	}
	if cpu := get(mem.SeriesCPU); cpu < 1e6 || cpu > 10e9 {
		t.Errorf("cpu %d ns", cpu)
	}
	if get(mem.SeriesRSS) < 64<<20 || get(mem.SeriesMinorFaults) < 64<<20/int64(os.Getpagesize())/600 {
		t.Errorf("RSS %d, faults %d for 64 MiB touched", get(mem.SeriesRSS), get(mem.SeriesMinorFaults))
	}
	pss, uss := get(mem.SeriesPSS), get(mem.SeriesUSS)
	if uss < 64<<20 || pss < uss || pss > get(mem.SeriesRSS)+1<<20 {
		t.Errorf("USS %d, PSS %d, RSS %d", uss, pss, get(mem.SeriesRSS))
	}
	if sum := sink.last["0  "+string(mem.SeriesTreeRSS)]; sum != get(mem.SeriesRSS) {
		t.Errorf("tree RSS %d", sum)
	}
	if p := sink.processes[pid]; filepath.Base(p.Command[0]) != "python3" || p.Command[1] != "-c" || p.StartTicks == 0 {
		t.Errorf("%+v", p)
	}
	if sink.last["0  "+string(mem.SeriesSystemAvailable)] <= 0 || sink.last["0  "+string(mem.SeriesOwnRSS)] <= 0 {
		t.Errorf("host not seen: %v", sink.last)
	}
	end()
	s.Tick(monotonic())
	if sink.gone[pid] != 1 || len(s.Processes()) != 0 {
		t.Errorf("its end was not seen: %v", sink.gone)
	}
}

// TestSampleGrowing: what a process takes fast is seen between two ticks, too.
func TestParseQueued(t *testing.T) {
	for text, want := range map[string]int64{"5389877866 7655489940 3106\n": 7655489940, "1 0 1\n": 0, "": -1, "12": -1,
		"12 ": -1, "12 x\n": -1} {
		got, ok := parseQueued([]byte(text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestSampleGrowing(t *testing.T) {
	c, _ := start(t, "python3", "-c", `
import signal, sys
held = []
signal.signal(signal.SIGUSR1, lambda *_: held.append(b"x" * (64 << 20)))
print("ready", flush=True)
sys.stdin.read()`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	s.Tick(monotonic())
	rss := func() int64 { return sink.last[fmt.Sprintf("%d  %s", c.Process.Pid, mem.SeriesRSS)] }
	if s.Growing() {
		t.Error("it is said to grow, and was seen once")
	}
	begin := rss()
	const slack = 4 << 20 // the kernel counts pages for each processor, and sums them up now and then
	syscall.Kill(c.Process.Pid, syscall.SIGUSR1)
	until(t, "64 MiB more", func() bool {
		figures, err := s.tree.Find(c.Process.Pid).stat()
		if err != nil {
			t.Fatal(err)
		}
		return figures.rssPages*pageSize >= begin+64<<20-slack
	})
	s.Tick(monotonic())
	if !s.Growing() {
		t.Error("it grew by 64 MiB between two ticks and is not said to")
	}
	syscall.Kill(c.Process.Pid, syscall.SIGUSR1)
	until(t, "another 64 MiB, between two ticks", func() bool {
		s.SampleGrowing(monotonic())
		return rss() >= begin+128<<20-slack
	})
	s.Tick(monotonic())
	if s.Growing() {
		t.Error("it grows no more")
	}
}

// TestLeave: a process that is named as no part of the run is looked at no more, whether it was seen before or not.
// Nor is what it starts from then on.
func TestLeave(t *testing.T) {
	sink := newSeen()
	s := New(Options{Leader: os.Getpid()}, sink)
	defer s.Close()
	gated := func() (*exec.Cmd, io.WriteCloser) {
		c := exec.Command("sh", "-c", "read go; sleep 60; true")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			_ = c.Wait()
		})
		return c, in
	}
	known, goKnown := gated()
	until(t, "the first child", func() bool {
		s.Tick(monotonic())
		return s.tree.Find(known.Process.Pid) != nil
	})
	fresh, goFresh := gated()
	for _, c := range []*exec.Cmd{known, fresh} {
		s.Leave(c.Process.Pid, monotonic())
	}
	for _, in := range []io.Writer{goKnown, goFresh} {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*exec.Cmd{known, fresh} {
		children := fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid)
		until(t, "its sleep", func() bool {
			pids, err := os.ReadFile(children)
			return err == nil && len(pids) > 0
		})
	}
	for range 3 {
		s.Tick(monotonic())
	}
	if len(s.Processes()) != 0 || len(sink.processes) != 1 || sink.gone[known.Process.Pid] != 1 {
		t.Errorf("watched %v, told of %v, gone %v", s.Processes(), sink.processes, sink.gone)
	}
}

// TestMarkedAside: what hightide's own package starts is never looked at, nor is what that starts; a process that was
// seen before it called exec is given up.
func TestMarkedAside(t *testing.T) {
	sink := newSeen()
	s := New(Options{Leader: os.Getpid()}, sink)
	defer s.Close()
	begin := func(script string, env ...string) int {
		c := exec.Command("sh", "-c", script)
		c.Env = append(env, os.Environ()...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
			_ = c.Wait()
		})
		return c.Process.Pid
	}
	marked := strings.TrimSuffix(asideMark, "\x00")
	begin("sleep 60 & sleep 61; true", marked)
	plain := begin("sleep 62; true", "OTHER=1")
	late := begin("sleep 0.2; exec env -i " + marked + " sleep 63")
	until(t, "exec of the last", func() bool {
		s.Tick(monotonic())
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", late))
		return err == nil && string(name) == "sleep\n"
	})
	until(t, "the last to be given up", func() bool {
		s.Tick(monotonic())
		return s.tree.Find(late) == nil
	})
	for pid, p := range sink.processes {
		if pid != plain && p.Parent != plain && p.Parent != late { // as the sleep of before its exec
			t.Errorf("%d is told of: %v", pid, p.Command)
		}
	}
	if sink.processes[plain] == nil {
		t.Error("a process of the program is not told of")
	}
}

// TestTree: children and grandchildren, one whose parent ended before, exec that changes the name,
// and none of the machine's other processes.
func TestTree(t *testing.T) {
	c, _ := start(t, "sh", "-c", `sleep 60 & (sleep 61 & ) ; sh -c 'sleep 62; true' & echo ready; cat`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	// "sleep 61" lost its parent before the first look and we are not a subreaper: it is not ours to see.
	want := []string{"cat", "sh", "sh -c sleep 62; true", "sleep 60", "sleep 62"}
	var commands []string
	until(t, "the tree", func() bool { // a shell's children take a while to be what they become
		s.Tick(monotonic())
		commands = commands[:0]
		for _, p := range s.Processes() {
			command := strings.Join(p.Command, " ")
			if p.PID == c.Process.Pid {
				command = "sh"
			}
			commands = append(commands, command)
		}
		slices.Sort(commands)
		return slices.Equal(commands, want)
	})
}

// TestFirstThreadEnded: a program goes on after its first thread, although the kernel calls it a zombie.
func TestFirstThreadEnded(t *testing.T) {
	c, end := start(t, "python3", "-c", `
import ctypes, sys, threading, time
def stay():
    for _ in range(1000):
        if ") Z " in open("/proc/self/stat").read():
            break
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.read()
    import os
    os._exit(0)
threading.Thread(target=stay, daemon=True).start()
ctypes.CDLL(None).pthread_exit(None)`)
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid)); err != nil || !strings.Contains(string(text), ") Z ") {
		t.Skipf("this libc or kernel does not make it a zombie: %s", text)
	}
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	s.Tick(monotonic())
	if sink.gone[c.Process.Pid] != 0 || sink.processes[c.Process.Pid] == nil {
		t.Errorf("taken for dead: %v", sink.gone)
	}
	end()
	s.Tick(monotonic())
	if sink.gone[c.Process.Pid] != 1 {
		t.Errorf("its end was not seen: %v", sink.gone)
	}
}

// TestJoin: an orphan that its parents do not lead to is seen once it is named, with the process that it is a copy
// of. It is not under the start of another, nor after it was left.
func TestJoin(t *testing.T) {
	c, _ := start(t, "python3", "-c", `
import os, sys, time
held = bytearray(32 << 20)
asked, answer = os.pipe()
if os.fork() == 0:
    pid = os.fork()
    if pid:
        os.write(answer, b"%d\n" % pid)
        os._exit(0)
    time.sleep(600)
os.wait()
open(sys.argv[1], "wb").write(os.read(asked, 99))
print("ready", flush=True)
sys.stdin.read()`, filepath.Join(t.TempDir(), "pid"))
	text, err := os.ReadFile(c.Args[len(c.Args)-1])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	now := monotonic()
	s.Tick(now)
	if len(s.Processes()) != 1 {
		t.Fatalf("the tree is %v", s.Processes())
	}
	stat, err := openProcess("/", pid, make([]byte, 4096))
	if err != nil {
		t.Fatal(err)
	}
	stat.close()
	s.Join(pid, stat.StartTicks+1, now)
	if s.tree.Find(pid) != nil {
		t.Error("a process that began at another time was taken for it")
	}
	s.Join(pid, stat.StartTicks, now)
	p := s.tree.Find(pid)
	if p == nil || sink.processes[pid] == nil || p.lineage == nil || p.lineage != s.tree.Find(c.Process.Pid).lineage {
		t.Fatalf("the orphan is %+v", p)
	}
	s.Leave(pid, now)
	s.Join(pid, stat.StartTicks, now)
	if s.Tick(monotonic()); s.tree.Find(pid) != nil {
		t.Error("what had left came back")
	}
}

// TestOrphan: a process stays in the tree when its parent ends.
func TestOrphan(t *testing.T) {
	c, _ := start(t, "sh", "-c", `sh -c 'sleep 60 & sleep 61' & echo ready; cat`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	defer s.Close()
	sleeping := func(seconds string) (found *Process) {
		s.Tick(monotonic())
		for _, p := range s.Processes() {
			if len(p.Command) == 2 && p.Command[1] == seconds {
				found = p
			}
		}
		return found
	}
	var child *Process
	until(t, "the child of a child", func() bool { child = sleeping("60"); return child != nil })
	parent := child.Parent
	syscall.Kill(parent, syscall.SIGKILL)
	until(t, "its parent's end", func() bool { s.Tick(monotonic()); return sink.gone[parent] > 0 })
	if sleeping("60") != child || sink.gone[child.PID] > 0 {
		t.Errorf("the orphan is not seen any more: %v", sink.gone)
	}
}

// TestManyChildren: 200 processes started and gone within a second cost little and leave nothing open.
func TestManyChildren(t *testing.T) {
	before := openFiles(t)
	// Then one after the other: on a busy machine the sampler's budget lets it look for children seldom.
	c, end := start(t, "sh", "-c",
		`echo ready; i=0; while [ $i -lt 200 ]; do sleep 0.05 & i=$((i+1)); done; while sleep 0.1; do :; done & cat`)
	sink := newSeen()
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true}, sink)
	cpu, began := ThreadCPUAll(), time.Now()
	ticks := 0
	until(t, "some of them", func() bool {
		s.Tick(monotonic())
		ticks++
		return time.Since(began) > 1500*time.Millisecond && len(sink.processes) > 1
	})
	spent, took := ThreadCPUAll()-cpu, time.Since(began)
	end()
	until(t, "the end of all", func() bool { // what was killed takes a while to die, and one tick pays for few
		s.Tick(monotonic())
		return len(s.Processes()) == 0
	})
	if len(sink.processes) < 2 || len(s.Processes()) != 0 || len(sink.gone) != len(sink.processes) {
		t.Errorf("saw %d start, %d end, %d live", len(sink.processes), len(sink.gone), len(s.Processes()))
	}
	for pid, times := range sink.gone {
		if times != 1 {
			t.Errorf("process %d ended %d times", pid, times)
		}
	}
	t.Logf("saw %d of 200 and more; %v of processor time for %d ticks in %v", len(sink.processes), time.Duration(spent),
		ticks, took)
	if spent > int64(took/5) {
		t.Errorf("%v of processor time in %v", time.Duration(spent), took)
	}
	s.Close()
	if after := openFiles(t); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func ThreadCPUAll() int64 { ns, _ := clock(2); return ns }

func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestTickAllocatesNothing once everything is known.
func TestTickAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	c, _ := start(t, "python3", "-c", fmt.Sprintf(hold, 1))
	s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}, quiet{})
	defer s.Close()
	now := monotonic()
	s.Tick(now)
	if n := testing.AllocsPerRun(50, func() { now += 1000; s.Tick(now) }); n > 0 {
		t.Errorf("%v allocations in a tick", n)
	}
}

// quiet is a Sink that takes no notice.
type quiet struct{}

func (quiet) Process(*Process)                                    {}
func (quiet) Left(*Process)                                       {}
func (quiet) Gone(*Process, int64)                                {}
func (quiet) SharedLeft(int64, []Left)                            {}
func (quiet) Descriptors(*Process, int64, map[string]int64)       {}
func (quiet) Unobserved(string, string)                           {}
func (quiet) Sample(*Process, string, mem.Quantity, int64, int64) {}

// BenchmarkTick is the cost of a tick with one process; the fixed part (host, group) included.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, _ := start(b, "python3", "-c",
				"import os\nfor _ in range("+fmt.Sprint(n-1)+"):\n  if not os.fork(): break\n"+fmt.Sprintf(hold, 16))
			s := New(Options{Leader: c.Process.Pid, WatchLeader: true, Vendors: []Vendor{}, Share: 1}, quiet{})
			defer s.Close()
			now := monotonic()
			for range 100 {
				s.Tick(now)
			}
			b.ResetTimer()
			for range b.N {
				now += 100e6 // a hundred milliseconds: the slow figures come every tenth time
				s.discover(now)
				s.readProcesses(now, now%1e9 < 100e6)
				s.host.sample(s.sink, now, false)
			}
		})
	}
}

// BenchmarkPSS is the price of one reading of PSS, for memory in small and in huge pages. How many
// GiB: $SAMPLER_BENCH_GIB (default 1).
func BenchmarkPSS(b *testing.B) {
	gib := cmp.Or(os.Getenv("SAMPLER_BENCH_GIB"), "1")
	for _, advice := range []string{"MADV_NOHUGEPAGE", "MADV_HUGEPAGE"} {
		b.Run(advice+"-"+gib+"GiB", func(b *testing.B) {
			c, _ := start(b, "python3", "-c", `
import mmap, sys
n = `+gib+` << 30
m = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.`+advice+`)
for i in range(0, n, 4096):
    m[i] = 1
print("ready", flush=True)
sys.stdin.read()`)
			p, err := openProcess("/", c.Process.Pid, make([]byte, 4096))
			if err != nil {
				b.Fatal(err)
			}
			defer p.close()
			b.ResetTimer()
			for range b.N {
				if _, _, err := p.proportional(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
