package sampler

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/processes"
	"hightide/internal/processes/psutil"
)

// tree has memory in three processes. When it reads a line, the second ends and leaves the third behind.
const tree = `
import subprocess, sys, threading
depth = int(sys.argv[2])
kept = bytearray((60 - 20 * depth) << 20)
for i in range(0, len(kept), 4096): kept[i] = 1
threading.Thread(target=threading.Event().wait, daemon=True).start()
files = [open("/dev/null") for _ in range(10)]
if depth < 2:
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[1], str(depth + 1)], stdin=subprocess.PIPE)
else:
    print("ready", flush=True)
    threading.Event().wait()
sys.stdin.readline()
if depth == 0:
    child.stdin.close()
    child.wait()
    sys.stdin.readline()
`

// TestPortableAgrees: on one tree of processes the sampler that reads /proc and the one that asks a table say the same.
// This is how the part for macOS is tried where macOS is not.
func TestPortableAgrees(t *testing.T) {
	command, input := startTree(t)
	theirs, ours := newSeen(), newSeen()
	options := Options{Leader: command.Process.Pid, WatchLeader: true, Vendors: []Vendor{}}
	procfs := New(options, theirs)
	defer procfs.Close()
	options.Table = &psutil.Table{}
	portable := Open(options, ours).(*Portable)
	defer portable.Close()
	procfs.Tick(monotonic())
	portable.Tick(monotonic())
	pids := slices.Sorted(maps.Keys(theirs.processes))
	if got := slices.Sorted(maps.Keys(ours.processes)); !slices.Equal(got, pids) || len(pids) != 3 {
		t.Fatalf("it sees %v, procfs %v", got, pids)
	}
	if text := ours.unobserved[absent]; text == "" || len(ours.unobserved) != 1 {
		t.Errorf("it says of what it cannot see: %v", ours.unobserved)
	}
	for _, pid := range pids {
		samePicture(t, pid, theirs, ours)
		if got, want := ours.processes[pid].Command, theirs.processes[pid].Command; !slices.Equal(got, want) {
			t.Errorf("%d: its command is %q, to procfs %q", pid, got, want)
		}
	}
	agree(t, 0, mem.SeriesTreeRSS, theirs, ours, 3<<20)
	agree(t, 0, mem.SeriesTreeThreads, theirs, ours, 0)
	agree(t, 0, mem.SeriesSystemTotal, theirs, ours, 0)
	for _, name := range []mem.Quantity{mem.SeriesSwap, mem.SeriesTreePSS, mem.SeriesCgroupUsed, mem.SeriesPrivate} {
		if value, ok := ours.last[key(nil, "", name)]; ok {
			t.Errorf("%s is %d: nobody told it", name, value)
		}
	}
	fmt.Fprintln(input)
	until(t, "the end of the second", func() bool {
		procfs.Tick(monotonic())
		portable.Tick(monotonic())
		return len(theirs.gone) == 1 && len(ours.gone) == 1
	})
	agree(t, 0, mem.SeriesTreeRSS, theirs, ours, 2<<20)
	if !maps.Equal(theirs.gone, ours.gone) || len(portable.Processes()) != 2 {
		t.Errorf("it saw the end of %v and follows %d; procfs saw that of %v", ours.gone, len(portable.Processes()), theirs.gone)
	}
}

// startTree runs the program tree; a line on input has its second process end.
func startTree(t *testing.T) (*exec.Cmd, io.Writer) {
	c := exec.Command("python3", "-c", tree, tree, "0")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Stderr = os.Stderr
	input, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c, input
}

func samePicture(t *testing.T, pid int, theirs, ours *seen) {
	t.Helper()
	agree(t, pid, mem.SeriesRSS, theirs, ours, 1<<20)
	agree(t, pid, mem.SeriesVMS, theirs, ours, 1<<20)
	agree(t, pid, mem.SeriesMinorFaults, theirs, ours, 100)
	agree(t, pid, mem.SeriesMajorFaults, theirs, ours, 10)
	agree(t, pid, mem.SeriesCPU, theirs, ours, 40e6) // ticks of 10 ms, of user and system
	agree(t, pid, mem.SeriesThreads, theirs, ours, 0)
	agree(t, pid, mem.SeriesFiles, theirs, ours, 0)
	if mark := ours.processes[pid].Usage.MaxRSS; mark.Known() {
		t.Errorf("%d: its mark is %v, which this table does not have", pid, mark)
	}
}

func agree(t *testing.T, pid int, name mem.Quantity, theirs, ours *seen, most int64) {
	t.Helper()
	at := strings.TrimSpace(strconv.Itoa(pid) + "  " + string(name))
	want, known := theirs.last[at]
	got, ok := ours.last[at]
	if !known || !ok || max(got-want, want-got) > most {
		t.Errorf("%s of %d is %d (%v), to procfs %d (%v): further apart than %d", name, pid, got, ok, want, known, most)
	}
}

// table is one that a test writes.
type table struct {
	all     []processes.Process
	figures map[int]processes.Figures
}

func (t *table) List() ([]processes.Process, error) { return t.all, nil }
func (t *table) Figures(pid int) (processes.Figures, bool) {
	f, ok := t.figures[pid]
	return f, ok
}
func (t *table) Command(pid int) []string { return []string{"p" + strconv.Itoa(pid)} }
func (t *table) Memory() processes.Memory { return processes.Memory{} }

// TestPortableIdentity: a number that was given again is another process, and no child of what it was; a job counts
// those whose parents were never seen.
func TestPortableIdentity(t *testing.T) {
	some := func(rss int64) processes.Figures { return processes.Figures{RSS: rss} }
	sees := &table{
		all: []processes.Process{{PID: 30, Parent: 20, Start: 300}, {PID: 20, Parent: 10, Start: 200},
			{PID: 10, Parent: 1, Start: 100}, {PID: 40, Parent: 10, Start: 50}, {PID: 60, Parent: 999, Start: 150}},
		figures: map[int]processes.Figures{10: some(1), 20: some(2), 30: some(4), 40: some(8), 60: some(16)},
	}
	sink := newSeen()
	s := NewPortable(Options{Leader: 10, WatchLeader: true, Table: sees, Members: func() []int { return []int{10, 60} }}, sink)
	followed := func() (pids []int) {
		for _, p := range s.Processes() {
			pids = append(pids, p.PID)
		}
		slices.Sort(pids)
		return pids
	}
	s.Tick(1)
	if got := followed(); !slices.Equal(got, []int{10, 20, 30, 60}) { // 40 is older than its parent
		t.Fatalf("it follows %v", got)
	}
	if rss := sink.last["0  tree.rss"]; rss != 1+2+4+16 {
		t.Errorf("the tree has %d", rss)
	}
	for name := range sink.last {
		if strings.HasSuffix(name, string(mem.SeriesCPU)) || strings.HasSuffix(name, string(mem.SeriesVMS)) {
			t.Errorf("%s: the table did not tell it", name)
		}
	}
	sees.all = []processes.Process{{PID: 10, Parent: 1, Start: 100}, {PID: 20, Parent: 1, Start: 900},
		{PID: 30, Parent: 20, Start: 300}, {PID: 31, Parent: 20, Start: 250}}
	sees.figures[31] = some(32)
	s.next = 0
	s.Tick(2)
	if got := followed(); !slices.Equal(got, []int{10, 30, 31}) {
		t.Errorf("it follows %v: 20 is another's number now, 31 a child of what it was", got)
	}
	if sink.gone[20] != 1 || sink.gone[60] != 1 || sink.gone[10] != 0 {
		t.Errorf("their ends were told so often: %v", sink.gone)
	}
	sees.figures = map[int]processes.Figures{} // zombies
	s.next = 0
	s.Tick(3)
	s.next = 0
	s.Tick(4)
	if got := followed(); len(got) != 0 || sink.gone[10] != 1 {
		t.Errorf("it follows %v, which have ended; told %v", got, sink.gone)
	}
}
