package observe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/processes/psutil"
)

// TestRunByATable: a run that is seen through a table of processes, as on macOS, has the figures of one that is seen
// through /proc, and says once what it cannot have.
func TestRunByATable(t *testing.T) {
	const size = 300 << 20
	seen := filepath.Join(t.TempDir(), "seen")
	program := "import subprocess\nx = bytearray(300 << 20); x[::4096] = b'x' * len(x[::4096])\n" +
		"child = subprocess.Popen([sys.executable, '-c', 'import sys; x = bytearray(50 << 20); x[::4096] = b\"x\" * len(x[::4096]); " +
		"sys.stdin.read()'], stdin=subprocess.PIPE)" + untilFile + "child.stdin.close(); child.wait(); sys.exit(7)"
	program = "import sys\n" + program
	run, outcome := record(t, Options{
		Command: []string{python(t), "-c", program, seen}, Interval: 20 * time.Millisecond, Table: &psutil.Table{},
		Events: once(t, seen, func(s Status) bool { return s.RSS.Or(0) > size+50<<20 }),
	})
	if outcome.ExitCode != mem.Some(7) {
		t.Fatalf("outcome %+v, want exit code 7", outcome)
	}
	rss := run.Find(0, mem.SeriesTreeRSS)
	if rss == nil || rss.Values[rss.Peak()] < size+50<<20 || rss.Values[rss.Peak()] > size+150<<20 {
		t.Fatalf("the tree's RSS: %+v", rss)
	}
	if len(run.Processes) != 2 || run.Processes[1].Parent != run.Processes[0].ID || run.Processes[1].Role != "child" {
		t.Fatalf("processes %+v", run.Processes)
	}
	for _, p := range run.Processes {
		if !p.End.Known() || p.Start < run.Info.StartMono || p.Start > p.End.Or(0) || len(p.Command) < 3 {
			t.Errorf("process %+v", p)
		}
	}
	if mark := run.Processes[0].MaxRSS.Or(0); mark < size { // of wait4
		t.Errorf("the mark of the command is %d", mark)
	}
	for _, name := range []mem.Quantity{mem.SeriesSwap, mem.SeriesTreePSS, mem.SeriesCgroupUsed, mem.SeriesHeapLive} {
		for id := range uint32(3) {
			if series := run.Find(id, name); series != nil {
				t.Errorf("%s of %d is there: %v", name, id, series.Values)
			}
		}
	}
	said := 0
	for _, e := range run.Events {
		if e.Kind == "unobserved" && strings.Contains(e.Text, "control groups") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it says %d times what it cannot have", said)
	}
}

// elsewhere is a program whose agent believes to be on another system: it may open nothing of /proc.
const elsewhere = `
import builtins, os, sys
sys.platform = sys.argv[1]
def kept_from(call):
    def opens(path, *more, **named):
        if str(path).startswith("/proc"):
            os._exit(99)
        return call(path, *more, **named)
    return opens
builtins.open, os.open, os.listdir = kept_from(open), kept_from(os.open), kept_from(os.listdir)
sys.path.insert(0, sys.argv[2])
from hightide_agent import start
start.start()
import hightide
with hightide.span("fill"):
    kept = bytearray(64 << 20)
    kept[::4096] = b"x" * len(kept[::4096])
sys.exit(5)
`

// TestAgentElsewhere: the agent of macOS and of Windows writes a channel that is read, of a process that it does not
// know the start of. What the system of this test does not have is not told.
func TestAgentElsewhere(t *testing.T) {
	source, err := filepath.Abs("../../agent/python/src")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin", "win32"} {
		t.Run(system, func(t *testing.T) {
			run, outcome := record(t, Options{Command: []string{python(t), "-c", elsewhere, system, source},
				Env: append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), Table: &psutil.Table{}})
			if outcome.ExitCode != mem.Some(5) {
				t.Fatalf("outcome %+v, want exit code 5 (99: it read /proc)", outcome)
			}
			if len(run.Processes) != 1 {
				t.Fatalf("processes %+v", run.Processes)
			}
			p := run.Processes[0]
			if p.Python == "" || p.StartTicks == 0 || p.Role != "main" || p.ExitCode != mem.Some(5) {
				t.Errorf("process %+v", p)
			}
			spans := 0
			for span := range run.Spans.User() {
				if span.Phase == mem.PhaseUser {
					spans++
					if span.RSSStart.Known() {
						t.Errorf("span %+v: its memory cannot be known here", span)
					}
				}
			}
			if spans != 1 {
				t.Errorf("%d spans", spans)
			}
		})
	}
}
