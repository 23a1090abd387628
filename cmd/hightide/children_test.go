package main

import (
	"strconv"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// kinds makes a child of every kind. Each takes 24 MiB in a function of its own name, says its pid and what it has
// resident, and stays until that was seen.
const kinds = `
import ctypes, multiprocessing, os, subprocess, sys, time

def take(kind):
    held = bytearray(24 << 20)
    held[::4096] = b"x" * len(held[::4096])
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    print(kind, os.getpid(), resident, flush=True)
    end = time.monotonic() + 60
    while not os.path.exists(f"seen-{os.getpid()}") and time.monotonic() < end:
        time.sleep(0.01)

def fork():
    pid = os.fork()
    if pid == 0:
        take("fork")
        os._exit(0)
    os.waitpid(pid, 0)

def raw_fork():
    pid = ctypes.CDLL(None).syscall(57)
    if pid == 0:
        take("raw")
        os._exit(0)
    os.waitpid(pid, 0)

def start(method):
    p = multiprocessing.get_context(method).Process(target=take, args=(method,))
    p.start()
    p.join()

if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(sys.argv[1])
        sys.exit()
    fork()
    raw_fork()
    start("spawn")
    multiprocessing.get_context("fork")
    start("forkserver")
    subprocess.run([sys.executable, __file__, "subprocess"], check=True)
    os.system(f"{sys.executable} {__file__} shell")
    os.execv(sys.executable, [sys.executable, __file__, "exec"])
`

// TestEveryKindOfChild: however a process comes to be, its bytes are counted, on its own account
// and on the line that took them.
func TestEveryKindOfChild(t *testing.T) {
	s := newSession(t)
	script := write(t, s.dir, "kinds.py", kinds)
	c := s.command("run", "-q", "--", pythonPath(t), script)
	var out output
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	told := 0 // lines of its output whose process was seen
	waitFor(t, func() bool {
		lines := strings.Split(out.String(), "\n")
		if told == len(lines)-1 { // the last is not whole yet
			return told == 7
		}
		said := strings.Fields(lines[told])
		pid, _ := strconv.Atoi(said[1])
		resident, _ := strconv.ParseInt(said[2], 10, 64)
		if s.sampled(pid, resident-1<<20) { // the kernel counts pages for each processor, and sums them up now and then
			write(t, s.dir, "seen-"+said[1], "")
			told++
		}
		return false
	})
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	run := s.last()
	seen := 0
	for line := range strings.Lines(out.String()) {
		said := strings.Fields(line)
		if len(said) != 3 {
			t.Fatalf("output %q", line)
		}
		kind := said[0]
		pid, err := strconv.Atoi(said[1])
		if err != nil {
			t.Fatalf("output %q", line)
		}
		seen++
		p := processOf(run, pid)
		if p == nil {
			t.Errorf("%s: process %d is not in the recording", kind, pid)
			continue
		}
		if rss := run.Find(p.ID, mem.SeriesRSS); rss == nil || rss.Values[rss.Peak()] < 24<<20 {
			t.Errorf("%s: RSS of its 24 MiB was not sampled", kind)
		}
		// A bytearray ends in a zero byte. What was resident of it is known as exactly as the kernel counts.
		if held := heldBy(run, p.ID, "take"); held > 24<<20+1 || held < 23<<20 {
			t.Errorf("%s: take holds %d bytes at the peak of the heap, want 24 MiB and 1", kind, held)
		}
	}
	if seen != 7 {
		t.Errorf("%d kinds of children spoke: %s", seen, out.String())
	}
}

// sampled says whether the recording so far has a process with that much resident.
func (s *session) sampled(pid int, bytes int64) bool {
	_, run, err := s.engine().Load(s.t.Context(), "last")
	if err != nil {
		return false
	}
	p := processOf(run, pid)
	if p == nil {
		return false
	}
	rss := run.Find(p.ID, mem.SeriesRSS)
	return rss != nil && rss.Values[rss.Peak()] >= bytes
}

// processOf is the newest process of that pid.
func processOf(run *mem.Run, pid int) *mem.Process {
	var found *mem.Process
	for _, p := range run.Processes {
		if p.PID == pid {
			found = p
		}
	}
	return found
}

// heldBy sums the blocks at the peak of a process's heap that were allocated right in a function.
func heldBy(run *mem.Run, process uint32, function string) (held mem.Bytes) {
	heap := run.Heap[process]
	if heap == nil || heap.Peak == nil {
		return 0
	}
	for _, site := range heap.Peak.Sites {
		for _, place := range run.Stacks.Frames(site.Stack) {
			if place.Native {
				continue
			}
			if place.Function == function && site.Live >= 16<<20 {
				held += site.Live
			}
			break
		}
	}
	return held
}
