package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hightide/internal/mem"
)

// taken is what each of the scripts below takes in a line that is marked, after it has done its worst.
const taken = 64 << 20

const takes = `
held = bytearray(64 << 20)  # TAKES
held[::4096] = b"x" * len(held[::4096])
import time; time.sleep(0.4)
`

// misbehaviours are scripts that do what an observer could stumble over.
var misbehaviours = []struct {
	name, before, after string
	options             []string
	code                int
	unobserved          string // in a note of the recording
	site                string // of the user's own sitecustomize
	preload             string
}{
	{name: "umask", before: "import os; os.umask(0o777)"},
	{name: "cwd", before: "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)"},
	{name: "streams", before: "import os; os.close(0); os.close(1); os.close(2)"},
	{name: "redirect",
		before: "import os; os.dup2(os.open('mine', os.O_CREAT | os.O_RDWR, 0o600), 1); print('mine', flush=True)",
		after:  "assert open('mine').read() == 'mine\\n', 'somebody wrote into the file'"},
	{name: "hook", before: "import sys; sys.excepthook = lambda *a: None", after: "raise RuntimeError", code: 1},
	{name: "import", after: "import no_such_module", code: 1},
	{name: "descriptors", before: "import os; os.closerange(3, 4096); mine = [open(f'm{n}', 'w+b') for n in range(20)]",
		after: "assert not any(f.seek(0) or f.read() for f in mine), 'somebody wrote into a file'"},
	{name: "environment", before: "import os; os.environ.clear()"},
	{name: "sitecustomize", site: "import builtins; builtins.mine = __file__",
		before: "assert mine, 'the sitecustomize of the user did not run'"},
	{name: "preload", preload: "/no/such/library.so"},
	// Nothing inside tells how much they had; it has to be seen.
	{name: "isolated", options: []string{"-I"}, unobserved: "-I", after: "time.sleep(2)"},
	{name: "no site", options: []string{"-S"}, unobserved: "-S", after: "time.sleep(2)"},
	{name: "no environment", options: []string{"-E"}, unobserved: "-E", after: "time.sleep(2)"},
}

// TestMisbehavingScripts: whatever a script does to itself, its bytes are counted by RSS and on their line.
func TestMisbehavingScripts(t *testing.T) {
	for _, test := range misbehaviours {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			script := write(t, s.dir, "script.py", strings.Join([]string{test.before, takes, test.after, ""}, "\n"))
			command := append([]string{"run", "-q", "--", pythonPath(t)}, append(test.options, script)...)
			c := s.command(command...)
			if test.site != "" {
				c.Env = append(c.Env, "PYTHONPATH="+filepath.Dir(write(t, t.TempDir(), "sitecustomize.py", test.site)))
			}
			if test.preload != "" {
				c.Env = append(c.Env, "LD_PRELOAD="+test.preload)
			}
			out, _ := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != test.code {
				t.Fatalf("exit code %d, want %d: %s", code, test.code, out)
			}
			run := s.last()
			checkTaken(t, run)
			if test.unobserved != "" && !says(run, test.unobserved) {
				t.Errorf("nothing says what python %s hides: %+v", test.unobserved, run.Events)
			}
		})
	}
}

func checkTaken(t *testing.T, run *mem.Run) {
	t.Helper()
	if peak := peakRSS(run); peak < taken {
		t.Errorf("peak RSS is %d, less than the %d bytes taken", peak, taken)
	}
	// a bytearray ends in a zero byte
	if held := lineAtPeak(run, "script.py", lineOf(takes, "# TAKES")+1); held != taken+1 {
		t.Errorf("the line holds %d bytes at the peak, want %d", held, taken+1)
	}
	if len(run.Drops) > 0 {
		t.Errorf("dropped: %+v", run.Drops)
	}
}

func says(run *mem.Run, what string) bool {
	for _, e := range run.Events {
		if e.Kind == "unobserved" && strings.Contains(e.Text, what) {
			return true
		}
	}
	return false
}

// lineOf is the number of the line that holds a mark.
func lineOf(text, mark string) int {
	before, _, _ := strings.Cut(text, mark)
	return 1 + strings.Count(before, "\n")
}

// TestTwoEnginesAtOnce: two runs in one data directory count each their own.
func TestTwoEnginesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	script := write(t, s.dir, "script.py", "\n"+takes)
	var both sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		both.Go(func() {
			if out, err := s.command("run", "-q", "--name", name, "--", pythonPath(t), script).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		})
	}
	both.Wait()
	for _, name := range []string{"a", "b"} {
		_, run, err := s.engine().Load(s.t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		checkTaken(t, run)
	}
}

// TestReadOnlyHome: where nothing can be written under the home, the run is recorded elsewhere, in full.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	script := write(t, s.dir, "script.py", "\n"+takes)
	home := write(t, s.dir, "home", "a file cannot be written into, whoever one is")
	out := filepath.Join(s.dir, "out.hightide")
	c := s.command("run", "-q", "--out", out, "--", pythonPath(t), script)
	c.Env = append(os.Environ(), "HIGHTIDE_DATA=", "HOME="+home, "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=",
		"TMPDIR="+t.TempDir())
	if text, err := c.CombinedOutput(); err != nil || !strings.Contains(string(text), "instead") {
		t.Fatalf("%v: %s", err, text)
	}
	_, run, err := s.engine().Load(s.t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	checkTaken(t, run)
}
