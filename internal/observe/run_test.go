package observe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/sampler"
)

// memorySink adds every frame to a Run, as a reader of the recording would.
type memorySink struct {
	t   testing.TB
	run *mem.Run
}

func (s memorySink) Write(f mem.Frame) error {
	if err := s.run.Add(f); err != nil {
		s.t.Errorf("frame %T: %v", f, err)
	}
	return nil
}

func (s memorySink) Flush() error { return nil }

// record runs a command and returns its recording.
func record(t *testing.T, opts Options) (*mem.Run, Outcome) {
	t.Helper()
	dir := t.TempDir()
	opts.ID, opts.Verb, opts.Label = "test", "run", mem.Measured
	opts.Channels, opts.OutDir = filepath.Join(dir, "channels"), dir
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	sink := memorySink{t, mem.NewRun()}
	outcome, err := Run(t.Context(), &opts, sink)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Sink != nil {
		t.Errorf("sink: %v", outcome.Sink)
	}
	return sink.run, outcome
}

// python is an interpreter itself, not a script that looks for one.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("no python3 here")
	}
	return strings.TrimSpace(string(out))
}

// once makes a file as soon as the recorder's status is as a program waits for; programs wait in untilFile.
func once(t *testing.T, file string, seen func(Status) bool) event.Sink {
	return func(e event.Event) {
		if s, ok := e.(Status); ok && seen(s) {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
}

// untilFile is Python that waits, a minute at most, for the file that its first argument names.
const untilFile = `
import os, sys, time
end = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < end: time.sleep(0.01)
`

func TestRunRecordsWhatTheProgramTook(t *testing.T) {
	const size = 300 << 20
	seen := filepath.Join(t.TempDir(), "seen")
	run, outcome := record(t, Options{
		Command:  []string{python(t), "-c", "x = bytearray(300 << 20); x[::4096] = b'x' * len(x[::4096])" + untilFile, seen},
		Interval: 20 * time.Millisecond,
		Events:   once(t, seen, func(s Status) bool { return s.RSS.Or(0) > size }),
	})
	if code, ok := outcome.ExitCode.Get(); !ok || code != 0 {
		t.Fatalf("outcome %+v, want exit code 0", outcome)
	}
	rss := run.Find(0, mem.SeriesTreeRSS)
	if rss == nil {
		t.Fatal("no series of the tree's RSS")
	}
	peak := rss.Values[rss.Peak()]
	main := run.Processes[0]
	if kernel, ok := main.MaxRSS.Get(); !ok || peak < size || peak > kernel || float64(peak) < 0.98*float64(kernel) {
		t.Errorf("peak %d, kernel says %v: want within 2 %% below it, and at least %d", peak, main.MaxRSS, size)
	}
	if main.Role != "main" || !main.End.Known() || main.ExitCode.Or(-1) != 0 {
		t.Errorf("main process %+v", main)
	}
	if run.End == nil || run.End.Reason != "exit" {
		t.Errorf("end %+v", run.End)
	}
}

// closing counts how often it is closed.
type closing struct {
	sampler.Vendor
	closed int
}

func (c *closing) Devices() []mem.GPU { return nil }
func (c *closing) Close()             { c.closed++ }

// TestNothingStaysOpenWhereTheStartFails: whatever stands in the way, the devices are closed, once.
func TestNothingStaysOpenWhereTheStartFails(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nonexistent/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx               context.Context
		command, channels string
	}{
		"no such program":     {t.Context(), "/nonexistent/program", t.TempDir()},
		"no such interpreter": {t.Context(), script, t.TempDir()},
		"no channels":         {t.Context(), "/bin/true", "/dev/null"},
		"cancelled":           {cancelled, "/bin/true", t.TempDir()},
	} {
		device := &closing{}
		_, err := Run(test.ctx, &Options{ID: "x", Command: []string{test.command},
			Channels: filepath.Join(test.channels, "channels"), Env: os.Environ(),
			Devices: []sampler.Vendor{device}}, memorySink{t, mem.NewRun()})
		if err == nil || device.closed != 1 {
			t.Errorf("%s: %v, and closed %d times", name, err, device.closed)
		}
	}
}

// TestCancelled: the command is told to end, and the recording is complete.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sink := memorySink{t, mem.NewRun()}
	dir := t.TempDir()
	outcome, err := Run(ctx, &Options{ID: "x", Command: []string{"/bin/sleep", "60"},
		Channels: filepath.Join(dir, "channels"), Env: os.Environ(),
		Events: func(e event.Event) {
			if s, ok := e.(Status); ok && s.Processes == 1 {
				cancel()
			}
		}}, sink)
	if err != nil || !outcome.Stopped || outcome.Signal.Or(0) != int64(syscall.SIGTERM) {
		t.Errorf("%+v, %v; want it stopped, by SIGTERM", outcome, err)
	}
	if run := sink.run; run.End == nil || run.End.Reason != "stopped" || len(run.Processes) != 1 ||
		!run.Processes[0].End.Known() {
		t.Errorf("end %+v of %d processes", run.End, len(run.Processes))
	}
}

func TestManyShortChildren(t *testing.T) {
	run, _ := record(t, Options{Command: []string{"sh", "-c",
		"i=0; while [ $i -lt 200 ]; do /bin/true & i=$((i+1)); done; wait; sleep 0.3"}})
	if run.End == nil || run.End.ExitCode.Or(-1) != 0 {
		t.Errorf("end %+v", run.End)
	}
	for _, p := range run.Processes {
		if !p.End.Known() {
			t.Errorf("process %d has no end", p.PID)
		}
	}
}

// TestKilledChildKeepsItsPeak: a child that is killed as soon as it has its memory, before anyone looks. It is larger
// than its parent from the start, by which it is reported from it where no agent watches.
func TestKilledChildKeepsItsPeak(t *testing.T) {
	const size, early = 300 << 20, 40 << 20
	seen := filepath.Join(t.TempDir(), "seen")
	child := "early = b'x' * (40 << 20)" + untilFile + "held = b'x' * (260 << 20); os.kill(os.getpid(), 9)"
	run, _ := record(t, Options{
		Command: []string{python(t), "-c", `
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", *sys.argv[1:]]).returncode != -9)`, child, seen},
		Interval: 600 * time.Millisecond,
		Events:   once(t, seen, func(s Status) bool { return s.Processes == 2 && s.Busiest[0].RSS.Or(0) > early }),
	})
	for _, p := range run.Processes {
		peak := p.MaxRSS.Or(0)
		switch {
		case p.Parent == 0 && peak > size:
			t.Errorf("the parent's peak is %d; it was its child's", peak)
		case p.Parent != 0 && (peak < size || peak > size+64<<20):
			t.Errorf("the killed child's peak is %d of the %d it took", peak, size)
		}
	}
	if len(run.Processes) != 2 {
		t.Errorf("%d processes, want a parent and its child", len(run.Processes))
	}
}

// TestPeakBeginsWithTheProgram: between fork and exec a child shows its parent's pages, which are not its program's.
func TestPeakBeginsWithTheProgram(t *testing.T) {
	const held = 200 << 20
	run, _ := record(t, Options{
		Command: []string{python(t), "-c", `
import os, time
held = b'x' * (200 << 20)
child = os.fork()
if child == 0:
    time.sleep(0.4)
    os.execvp("sleep", ["sleep", "1.5"])
os.waitpid(child, 0)`},
		Interval: 20 * time.Millisecond,
	})
	for _, p := range run.Processes {
		if peak := p.MaxRSS.Or(0); p.Parent != 0 && (peak == 0 || peak > held/2) {
			t.Errorf("the peak of %q is %d; its parent held %d when it forked", p.Command, peak, held)
		}
		if rss := run.Find(p.ID, mem.SeriesRSS); p.Parent != 0 && (rss == nil || rss.Values[rss.Peak()] > held/2) {
			t.Errorf("the RSS of %q is its parent's, or was not seen", p.Command)
		}
	}
	if len(run.Processes) != 2 {
		t.Errorf("%d processes, want a parent and its child", len(run.Processes))
	}
}

// TestStopIsTheSameEachTime: a stop that was asked for is one, whatever the command makes of the signal, and takes with
// it what a shell started. A command that fails by itself has failed.
func TestStopIsTheSameEachTime(t *testing.T) {
	for name, script := range map[string]string{
		"dies of it":        `exec sleep 60`,
		"ends with a code":  `trap 'kill $!; exit 7' TERM; touch "$1"; sleep 60 & wait`,
		"ends well":         `trap 'kill $!; exit 0' TERM; touch "$1"; sleep 60 & wait`,
		"leaves a child":    `sleep 60 & echo $! > "$1"; wait`,
		"has failed before": `exit 7`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dir := t.TempDir()
			ready := filepath.Join(dir, "ready")
			sink := memorySink{t, mem.NewRun()}
			outcome, err := Run(ctx, &Options{ID: "x", Command: []string{"/bin/sh", "-c", script, "sh", ready},
				Channels: filepath.Join(dir, "channels"), Env: os.Environ(),
				Events: func(e event.Event) {
					_, err := os.Stat(ready)
					if s, ok := e.(Status); ok && (err == nil || name == "dies of it" && s.Processes == 1) {
						cancel()
					}
				}}, sink)
			failed := name == "has failed before"
			if err != nil || outcome.Stopped == failed || (sink.run.End.Reason == "stopped") == failed {
				t.Errorf("%+v, %v, end %+v", outcome, err, sink.run.End)
			}
			if text, err := os.ReadFile(ready); err == nil && len(text) > 0 {
				child, err := strconv.Atoi(strings.TrimSpace(string(text)))
				if err != nil {
					t.Fatal(err)
				}
				for end := time.Now().Add(time.Minute); lives(child); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("process %d lives on, unobserved", child)
					}
				}
			}
		})
	}
}

// lives says whether a process runs; one that nobody waits for does not.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
