package main

import (
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

// TestStoppedTraining: SIGSTOP of the command is not job control: the engine goes on watching, and
// the command ends as it would.
func TestStoppedTraining(t *testing.T) {
	t.Parallel() // ten seconds of nothing
	s := newSession(t)
	c := s.command("run", "-q", "--", "sh", "-c", "echo $$; until [ -e go ]; do sleep 0.05; done; echo woke; exit 5")
	var out output
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(out.String(), "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	stopped := time.Now().UnixNano()
	time.Sleep(10 * time.Second)
	continued := time.Now().UnixNano()
	write(t, s.dir, "go", "")
	_ = syscall.Kill(pid, syscall.SIGCONT)
	err = c.Wait()
	if code := err.(*exec.ExitError).ExitCode(); code != 5 || !strings.Contains(out.String(), "woke") {
		t.Errorf("code %d, output %q", code, out.String())
	}
	run, seen := s.last(), 0
	for _, at := range run.Find(0, mem.SeriesTreeRSS).Times {
		if wall := run.Info.StartWall + at - run.Info.StartMono; wall > stopped && wall < continued {
			seen++
		}
	}
	if seen < 20 { // of a hundred, on a machine with nothing else to do
		t.Errorf("%d samples of 10 s: the standstill was not watched", seen)
	}
}

// clockShim is a preload of the user's: once there is a file "stepped", the wall clock is an hour back.
const clockShim = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
	long result = syscall(SYS_clock_gettime, id, t);
	if (id == CLOCK_REALTIME && syscall(SYS_faccessat, AT_FDCWD, "stepped", F_OK) == 0) t->tv_sec -= 3600;
	return (int)result;
}
`

// TestClockStepsBack: the wall clock of the training goes back by an hour; what is recorded is
// ordered and dated by a clock that does not.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	shim := filepath.Join(s.dir, "clock.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", shim,
		write(t, s.dir, "clock.c", clockShim)).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	script := write(t, s.dir, "clock.py", `
import subprocess, sys, time
began, held = time.time(), []
for i in range(8):
    held.append(b"x" * (32 << 20))
    if i == 2:
        open("stepped", "w").close()
    subprocess.run([sys.executable, "-c", "pass"])  # a process that begins before its parent, by that clock
    time.sleep(0.1)
print("back" if time.time() < began - 3000 else "the clock did not step")
`)
	c := s.command("run", "-q", "--", pythonPath(t), script)
	c.Env = append(c.Env, "LD_PRELOAD="+shim)
	out, err := c.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "back" {
		t.Fatalf("%v: %s", err, out)
	}
	run := s.last()
	if run.End == nil || run.End.Time-run.Info.StartMono < 800e6 || run.End.Time-run.Info.StartMono > 600e9 {
		t.Errorf("end: %+v", run.End)
	}
	if len(run.Processes) != 9 {
		t.Errorf("%d processes, want 9", len(run.Processes))
	}
	for _, series := range run.Series {
		if !slices.IsSorted(series.Times) {
			t.Errorf("%s of process %d goes back in time", series.Name, series.Process)
		}
	}
	if peak := peakRSS(run); peak < growBytes {
		t.Errorf("peak %d of %d bytes taken", peak, growBytes)
	}
}

// ignored says whether this process was started with a signal ignored. signal.Ignored does not know.
func ignored(signal syscall.Signal) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(status), "SigIgn:")
	mask, err := strconv.ParseUint(strings.Fields(after)[0], 16, 64)
	return err == nil && mask>>(uint(signal)-1)&1 == 1
}

// TestSignalsReachTheCommand: what somebody sends to hightide alone, the command gets.
func TestSignalsReachTheCommand(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		if signal == syscall.SIGHUP && ignored(signal) {
			continue // under nohup: what is ignored from the start no shell can trap
		}
		s := newSession(t)
		name := map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGHUP: "HUP",
			syscall.SIGUSR1: "USR1"}[signal]
		c := s.command("run", "-q", "--", "sh", "-c",
			"trap 'echo got; exit 9' "+name+"; echo ready; while :; do sleep 0.05; done")
		var out output
		c.Stdout = &out
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return strings.Contains(out.String(), "ready") })
		_ = c.Process.Signal(signal)
		err := c.Wait()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != 9 || strings.Count(out.String(), "got") != 1 {
			t.Errorf("%v: %v, output %q; want the command's own handler, once", signal, err, out.String())
		}
	}
}

// TestInterruptedReport: a signal during the report ends hightide; nobody waits for a report that nobody reads.
func TestInterruptedReport(t *testing.T) {
	s := newSession(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	fill(t, writer) // so that the report waits for a reader
	c := s.command("run", "--", "/bin/true")
	c.Stderr = writer
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	waitFor(t, func() bool { // its report is made, and then shown
		found, _ := filepath.Glob(filepath.Join(s.dir, "data", "runs", "*", "report.html"))
		return len(found) > 0
	})
	_ = c.Process.Signal(syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = c.Process.Kill()
		t.Fatal("a minute after SIGINT it still waits to print its report")
	}
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want SIGINT", c.ProcessState)
	}
	if run := s.last(); run.End == nil || run.End.Reason != "exit" {
		t.Errorf("end %+v; the recording was complete by then", run.End)
	}
}

// TestReportNobodyReads: hightide ends as the command did, also where its report cannot be printed.
func TestReportNobodyReads(t *testing.T) {
	s := newSession(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	c := s.command("run", "--", "sh", "-c", "exit 3")
	c.Stderr = writer
	err = c.Run()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 {
		t.Errorf("%v, want exit status 3", err)
	}
}

// fill writes to a pipe until it holds no more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	conn, err := pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	err = conn.Write(func(fd uintptr) bool { // Go's own pipes do not block
		for _, err := syscall.Write(int(fd), block); err == nil; {
			_, err = syscall.Write(int(fd), block)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestManyChildren: 200 Python children that come and go within a second leave their agents' words
// in the recording, and nothing in shared memory.
func TestManyChildren(t *testing.T) {
	s := newSession(t)
	script := write(t, s.dir, "many.py", `
import os, sys, time
for i in range(200):
    if os.fork() == 0:
        held = bytearray(8 << 20)
        os._exit(0)
for i in range(200):
    os.wait()
time.sleep(0.3)
`)
	if out, err := s.command("run", "-q", "--", pythonPath(t), script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := s.last()
	if n := len(run.Processes); n < 201 {
		t.Errorf("%d processes recorded, want 201", n)
	}
	counted := 0
	for _, p := range run.Processes {
		// it may end before its pages are looked at again
		if h := run.Heap[p.ID]; p.Role != "main" && h != nil && h.Peak != nil && h.Peak.Live+h.Peak.Absent >= 8<<20 {
			counted++
		}
	}
	if counted < 200 {
		t.Errorf("the 8 MiB of %d children are counted, want all 200", counted)
	}
	for _, d := range run.Drops {
		t.Errorf("dropped: %+v", d)
	}
}

// TestUnusableDataDirectory: a data directory that cannot be made does not stop a run.
func TestUnusableDataDirectory(t *testing.T) {
	s := newSession(t)
	blocked := write(t, s.dir, "file", "not a folder")
	c := s.command("run", "--data-dir", filepath.Join(blocked, "data"), "--json=o.json", "-q", "--", "sh", "-c", "exit 3")
	c.Env = append(c.Env, "TMPDIR="+t.TempDir())
	out, err := c.CombinedOutput()
	if code := err.(*exec.ExitError).ExitCode(); code != 3 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if !strings.Contains(string(out), "instead") {
		t.Errorf("it does not say where it recorded: %s", out)
	}
}
