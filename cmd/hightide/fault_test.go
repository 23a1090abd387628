package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hightide/internal/engine"
	"hightide/internal/mem"
)

// grow takes 32 MiB every 100 ms, eight times, and says how far it is; then it does what its
// argument says.
const grow = `
import os, signal, sys, time
held = []
for i in range(8):
    held.append(bytearray(32 << 20))
    held[-1][::4096] = b"x" * len(held[-1][::4096])
    print("took", i + 1, flush=True)
    time.sleep(0.1)
what = sys.argv[1]
if what == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if what == "wait":
    end = time.monotonic() + 60
    while not os.path.exists("go") and time.monotonic() < end:
        time.sleep(0.01)
if what == "close":
    os.closerange(3, 4096)
    mine = [open(f"mine-{n}", "w+b") for n in range(20)]
    held.append(bytearray(64 << 20))
    time.sleep(0.5)
    for f in mine:
        f.seek(0)
        assert f.read() == b"", "somebody wrote into the script's own file"
print("done", flush=True)
`

const growBytes = 8 * 32 << 20

// session is a folder with a data directory and the script.
type session struct {
	t      testing.TB
	dir    string
	script string
	env    []string // more of it, for each command
}

func newSession(t testing.TB) *session {
	dir := t.TempDir()
	return &session{t: t, dir: dir, script: write(t, dir, "grow.py", grow)}
}

// command is a hightide command in the session.
func (s *session) command(args ...string) *exec.Cmd {
	c := exec.Command("hightide", args...)
	c.Dir = s.dir
	c.Env = append(append(os.Environ(), "HIGHTIDE_DATA="+filepath.Join(s.dir, "data")), s.env...)
	return c
}

func (s *session) engine() *engine.Engine {
	return &engine.Engine{DataDir: filepath.Join(s.dir, "data")}
}

func (s *session) last() *mem.Run {
	s.t.Helper()
	_, run, err := s.engine().Load(s.t.Context(), "last")
	if err != nil {
		s.t.Fatal(err)
	}
	if len(run.Damage) > 0 {
		s.t.Errorf("damage: %+v", run.Damage)
	}
	return run
}

// recovered is the last run once what a dead engine left was brought in: by the first look at it
// after the training has died, and dying takes a while.
func (s *session) recovered() (run *mem.Run) {
	s.t.Helper()
	waitFor(s.t, func() bool {
		run = s.last()
		return run.End != nil
	})
	return run
}

// written waits until the recording of the engine that runs is as wanted, and of a moment ago: it is written twice a
// second, where the machine lets it. It returns the wall time at which the recording ends.
func (s *session) written(enough func(*mem.Run) bool) (until int64) {
	s.t.Helper()
	var last *mem.Run
	defer func() {
		if s.t.Failed() && last != nil {
			s.t.Logf("the recording ends %v ago, with peak RSS %d", time.Duration(time.Now().UnixNano()-endsAt(last)),
				peakRSS(last))
			for process, heap := range last.Heap {
				s.t.Logf("process %d: at the end %+v", process, heap.History[len(heap.History)-1])
			}
		}
	}()
	waitFor(s.t, func() bool {
		_, run, err := s.engine().Load(s.t.Context(), "last")
		if err != nil {
			return false
		}
		last, until = run, endsAt(run)
		return enough(run) && time.Now().UnixNano()-until < int64(1500*time.Millisecond)
	})
	return until
}

// endsAt is the wall time of a recording's last sample; 0: it has none yet.
func endsAt(run *mem.Run) int64 {
	rss := run.Find(0, mem.SeriesTreeRSS)
	if rss == nil {
		return 0
	}
	return run.Info.StartWall + rss.Times[len(rss.Times)-1] - run.Info.StartMono
}

// peakRSS is the most that was sampled, or that the kernel's mark says of one process. What was taken right before
// the end, or while the machine did not let us look, falls between samples.
func peakRSS(run *mem.Run) (peak int64) {
	if rss := run.Find(0, mem.SeriesTreeRSS); rss != nil {
		peak = rss.Values[rss.Peak()]
	}
	for _, p := range run.Processes {
		peak = max(peak, p.MaxRSS.Or(0))
	}
	return peak
}

// tookAll says whether the recording has all that grow.py takes. While it is written, a line that changes by less than
// a hundredth is not told again.
func tookAll(run *mem.Run) bool {
	return peakRSS(run) > growBytes && lineAtEnd(run, "grow.py", 5) >= growBytes*98/100 && settled(run)
}

// settled says whether all that a heap holds has been found to be resident: it did not change any more in the last
// second and a half.
func settled(run *mem.Run) bool {
	for _, heap := range run.Heap {
		last := heap.History[len(heap.History)-1]
		for _, point := range heap.History {
			if point.Time > last.Time-int64(1500*time.Millisecond) && (point.Live != last.Live || point.Absent != last.Absent) {
				return false
			}
		}
	}
	return true
}

// checkBytes: the recording counts all that the script took, by RSS and by the heap's lines.
func checkBytes(t *testing.T, run *mem.Run) {
	t.Helper()
	if peakRSS(run) < growBytes {
		t.Errorf("peak RSS is less than the %d bytes taken", growBytes)
	}
	for id, heap := range run.Heap {
		if heap.Peak == nil {
			continue
		}
		var held mem.Bytes
		for _, site := range heap.Peak.Sites {
			for _, place := range run.Stacks.Frames(site.Stack) {
				if filepath.Base(place.File) == "grow.py" && place.Line == 5 {
					held += site.Live
					break
				}
			}
		}
		if held < growBytes || held > growBytes+4<<20 {
			t.Errorf("process %d: line 5 of grow.py holds %d bytes at the peak, want the %d it took (recorded whole)", id,
				held, growBytes)
		}
		return
	}
	t.Error("no heap was recorded; is the heap library built?")
}

func TestKilledTrainingLosesNothing(t *testing.T) {
	s := newSession(t)
	err := s.command("run", "-q", "--", pythonPath(t), s.script, "die").Run()
	if status := err.(*exec.ExitError).Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("hightide ended with %v, want the command's SIGKILL", err)
	}
	run := s.last()
	checkBytes(t, run)
	if run.End == nil || run.End.Signal.Or(0) != int64(syscall.SIGKILL) || run.End.Reason != "signal" {
		t.Errorf("end %+v", run.End)
	}
}

func TestKilledEngineLeavesTheTrainingAlone(t *testing.T) {
	s := newSession(t)
	c := s.command("run", "-q", "--", pythonPath(t), s.script, "wait")
	var out output
	c.Stdout = &out
	c.WaitDelay = 10 * time.Second // the training keeps our pipe open after its engine is gone
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	written := s.written(tookAll)
	_ = c.Process.Kill()
	write(t, s.dir, "go", "")
	_ = c.Wait() // returns once the training closed the pipe
	if !strings.Contains(out.String(), "done") {
		t.Fatalf("the training did not finish: %q", out.String())
	}
	run := s.recovered()
	checkBytes(t, run)
	if run.End == nil || run.End.Reason != "recovered" {
		t.Errorf("end %+v, want one that says recovered", run.End)
	}
	if lost := written - endsAt(run); lost > 0 {
		t.Errorf("%v of the recording were lost with the engine", time.Duration(lost))
	}
	if left, _ := filepath.Glob("/dev/shm/hightide-*/" + run.Info.ID + "*"); len(left) > 0 {
		t.Errorf("left in shared memory: %q", left)
	}
}

// TestKilledEngineWhoeverLooksFirst: the report of a run whose engine was killed is the same whether the runs were
// listed before it, or not.
func TestKilledEngineWhoeverLooksFirst(t *testing.T) {
	complete, peak := map[string]bool{}, map[string]int64{}
	for _, first := range []string{"ls", "show"} {
		s := newSession(t)
		c := s.command("run", "-q", "--", pythonPath(t), s.script, "wait")
		c.WaitDelay = 10 * time.Second
		var out output
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		s.written(tookAll)
		_ = c.Process.Kill()
		write(t, s.dir, "go", "")
		_ = c.Wait()
		if text, err := s.command(first).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", first, err, text)
		}
		text, err := s.command("show", "last", "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var shown struct {
			Headline struct {
				Complete bool
				Peak     struct {
					HostRSS int64 `json:"host_rss_bytes"`
				}
			}
			Notes []string
		}
		if err := json.Unmarshal(text, &shown); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		killed := 0
		for _, note := range shown.Notes {
			if strings.HasPrefix(note, "The recorder was killed: samples of memory end ") {
				killed++
			}
		}
		if killed != 1 || shown.Headline.Peak.HostRSS < growBytes {
			t.Errorf("after %s: %d notes of a killed recorder, peak %d: %q", first, killed, shown.Headline.Peak.HostRSS,
				shown.Notes)
		}
		complete[first], peak[first] = shown.Headline.Complete, shown.Headline.Peak.HostRSS
	}
	if off := peak["ls"] - peak["show"]; complete["ls"] != complete["show"] || max(off, -off) > 16<<20 {
		t.Errorf("complete %v, peak %v", complete, peak)
	}
}

// goOn takes memory, and once its engine is dead takes more and frees some of what the engine had seen.
const goOn = `
import os, signal, time
held = [bytearray(32 << 20) for _ in range(8)]      # 2
small = [bytes(40_000) for _ in range(2000)]        # 3
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
held += [bytearray(48 << 20) for _ in range(3)]     # 7
del held[:4], small[:]
later = [bytes(40_000) for _ in range(2000)]        # 9
os.kill(os.getpid(), signal.SIGKILL)
`

// TestHeapGoesOnWithoutItsEngine: what a training allocates and frees after its engine was killed is
// in the recording to the byte, frees of what only the dead engine knew included.
func TestHeapGoesOnWithoutItsEngine(t *testing.T) {
	const sampled = 4 * 6_500_000 // four standard errors of 80 MB in small blocks
	s := newSession(t)
	c := s.command("run", "-q", "--", pythonPath(t), write(t, s.dir, "goon.py", strings.TrimLeft(goOn, "\n")))
	var out output
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(out.String(), "ready") })
	s.written(func(run *mem.Run) bool {
		return lineAtEnd(run, "goon.py", 2) >= 8*32<<20*98/100 && lineAtEnd(run, "goon.py", 3) > 80_000_000-sampled &&
			settled(run)
	})
	_ = c.Process.Kill()
	write(t, s.dir, "go", "")
	_ = c.Wait()
	run := s.recovered()
	if len(run.Drops) > 0 {
		t.Errorf("dropped: %+v", run.Drops)
	}
	for _, want := range []struct {
		line               int
		end, peak, precise mem.Bytes
	}{
		{2, 4 * 32 << 20, 8 * 32 << 20, 64 << 10},
		{3, 0, 80_000_000, sampled},
		{7, 3 * 48 << 20, 3 * 48 << 20, 64 << 10},
		{9, 80_000_000, 0, sampled},
	} {
		end, peak := lineAtEnd(run, "goon.py", want.line), lineAtPeak(run, "goon.py", want.line)
		if d := max(end-want.end, want.end-end); d > want.precise {
			t.Errorf("line %d holds %d bytes at the end, want %d", want.line, end, want.end)
		}
		if d := max(peak-want.peak, want.peak-peak); d > want.precise {
			t.Errorf("line %d holds %d bytes at the peak, want %d", want.line, peak, want.peak)
		}
	}
	if end := lineAtEnd(run, "goon.py", 3); end != 0 {
		t.Errorf("line 3 holds %d bytes at the end: frees were lost", end)
	}
}

// lineAtEnd is what a line of a script holds when the recording ends, lineAtPeak at the peak.
func lineAtEnd(run *mem.Run, file string, line int) (held mem.Bytes) {
	for _, heap := range run.Heap {
		for stack, points := range heap.Sites {
			if innermostOf(run.Stacks.Frames(stack), file) == line {
				held += points[len(points)-1].Live
			}
		}
	}
	return held
}

func lineAtPeak(run *mem.Run, file string, line int) (held mem.Bytes) {
	for _, heap := range run.Heap {
		for _, site := range heap.Peak.Sites {
			if innermostOf(run.Stacks.Frames(site.Stack), file) == line {
				held += site.Live
			}
		}
	}
	return held
}

func innermostOf(stack []mem.Location, file string) int {
	for _, place := range stack {
		if filepath.Base(place.File) == file {
			return place.Line
		}
	}
	return 0
}

func TestBothKilled(t *testing.T) {
	s := newSession(t)
	c := s.command("run", "-q", "--", pythonPath(t), s.script, "wait")
	var out output
	c.Stdout = &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.written(tookAll)
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	_ = c.Wait()
	run := s.recovered()
	checkBytes(t, run)
	if run.End == nil || run.End.Reason != "recovered" {
		t.Errorf("end %+v, want one that says recovered", run.End)
	}
}

// TestOwnFilesStayTheScripts: a script that closes every descriptor and opens its own files never
// finds a byte of ours in them, and goes on being recorded.
func TestOwnFilesStayTheScripts(t *testing.T) {
	s := newSession(t)
	out, err := s.command("run", "-q", "--", pythonPath(t), s.script, "close").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done") {
		t.Fatalf("%v: %s", err, out)
	}
	run := s.last()
	if peak := peakRSS(run); peak < growBytes {
		t.Errorf("peak %d", peak)
	}
	for _, heap := range run.Heap {
		if heap.Peak != nil && heap.Peak.Live < growBytes+64<<20 {
			t.Errorf("heap peak %d: what came after the descriptors were closed is missing", heap.Peak.Live)
		}
	}
}

// TestCaughtOutOfMemory: a script that catches its MemoryErrors still ran out of memory, here and there.
func TestCaughtOutOfMemory(t *testing.T) {
	s := newSession(t)
	script := write(t, s.dir, "caught.py", `
for i in range(3):
    try:
        bytearray(1 << 60)
    except MemoryError:
        print("went on", flush=True)
bytearray(1 << 59)
`)
	out, err := s.command("run", "-q", "--", pythonPath(t), script).CombinedOutput()
	if err == nil || strings.Count(string(out), "went on") != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	var told []string
	for _, e := range s.last().Events {
		if e.Kind == "oom" {
			told = append(told, e.Facts["source"]+" "+strconv.FormatInt(e.Bytes.Or(-1), 10))
		}
	}
	slices.Sort(told) // once what was caught, once what ended it
	if want := []string{"MemoryError -1", "malloc 1152921504606846977"}; !slices.Equal(told, want) {
		t.Errorf("out of memory: %q, want %q", told, want)
	}
}

// output gathers what a command prints while a test looks at it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited a minute in vain")
		}
	}
}
