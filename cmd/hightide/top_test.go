package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a terminal with hightide on it.
type console struct {
	t       *testing.T
	command *exec.Cmd
	master  *os.File
	slave   *os.File // open, to look at its settings after the end
	before  unix.Termios
	mutex   sync.Mutex
	screen  *screen
	ended   chan error
}

// openConsole starts hightide on a terminal of 80 x 24.
func openConsole(t *testing.T, data string, env []string, args ...string) *console {
	t.Helper()
	return openTerminal(t, data, env, append([]string{"hightide"}, args...)...)
}

// openTerminal starts a program there.
func openTerminal(t *testing.T, data string, env []string, command ...string) *console {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil || unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0) != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: os.NewFile(uintptr(master), "ptmx"), slave: slave, screen: newScreen(80, 24),
		ended: make(chan error, 1)}
	c.resize(80, 24)
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	c.before = *mode
	c.command = exec.Command(command[0], command[1:]...)
	c.command.Env = append(os.Environ(), append([]string{"HIGHTIDE_DATA=" + data, "TERM=xterm-256color",
		"LC_ALL=C.UTF-8"}, env...)...)
	c.command.Stdin, c.command.Stdout, c.command.Stderr = slave, slave, slave
	c.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read()
	go func() { c.ended <- c.command.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL) // what it started as well
		slave.Close()
		c.master.Close()
	})
	return c
}

func (c *console) read() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.master.Read(buffer)
		c.mutex.Lock()
		c.screen.parser.Parse(buffer[:n])
		c.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *console) resize(width, height int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.screen.resize(width, height)
	if err := unix.IoctlSetWinsize(int(c.slave.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) keys(text string) {
	if _, err := c.master.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// patience is how long a test waits for a state before it gives up; it never waits for time to pass.
const patience = time.Minute

// until waits until the screen is as it should be, and returns what it shows.
func (c *console) until(what string, is func(text string) bool) string {
	c.t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c.mutex.Lock()
		text := c.screen.text()
		good := is(text)
		c.mutex.Unlock()
		if good {
			return text
		}
		if time.Now().After(late) {
			c.t.Fatalf("waited for %s in vain, the screen is\n%s", what, text)
		}
	}
}

// shows waits for words.
func (c *console) shows(words ...string) string {
	c.t.Helper()
	return c.until(strings.Join(words, " and "), func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}

// end waits for the end of hightide, and checks that the terminal is as it was.
func (c *console) end() (code int) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.t.Fatal("hightide does not end")
	}
	c.until("the screen as it was", func(string) bool { return c.screen.main == nil && !c.screen.hidden })
	mode, err := unix.IoctlGetTermios(int(c.slave.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	if mode.Lflag != c.before.Lflag || mode.Iflag != c.before.Iflag || mode.Oflag != c.before.Oflag {
		c.t.Errorf("the terminal's settings are %+v, they were %+v", mode, c.before)
	}
	return c.command.ProcessState.ExitCode()
}

// record starts a run that goes on until the test ends, and returns its engine.
func record(t *testing.T, data, folder string) *exec.Cmd {
	t.Helper()
	c := exec.Command("hightide", "run", "--quiet", "--name", "watched", "--", "sh", "-c",
		"touch begun; while sleep 0.1; do :; done")
	c.Dir, c.Env = folder, append(os.Environ(), "HIGHTIDE_DATA="+data)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	exists(t, filepath.Join(folder, "begun"))
	return c
}

func exists(t *testing.T, path string) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("waited for %s in vain", path)
		}
	}
}

// TestTop watches a run whose engine is killed and which is removed then, on a terminal that changes its size.
func TestTop(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	run := record(t, data, folder)
	c := openConsole(t, data, nil, "top", "--interval", "100ms")
	c.shows("1 Overview", "Memory", "watched", "running", "sh -c 'touch")
	c.keys("5")
	c.shows("tree.rss", "SERIES")
	c.keys("?")
	c.shows("these keys")
	c.keys("?7")
	c.shows("nothing was lost")
	c.resize(120, 40)
	c.shows("7 Diagnostics", "8 Heap")
	c.keys("1/touchbegun")
	c.shows("filter: touchbegun")
	c.keys("\x15watched\r")
	c.until("one run and its processes", func(text string) bool {
		return strings.Contains(text, "watched") &&
			!strings.Contains(text, "reading")
	})
	c.keys("\x1b[B\r") // the run, opened
	c.shows("▸ tree.")
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.keys("1")
	c.until("its end", func(text string) bool {
		return strings.Contains(text, "cut off") || strings.Contains(text, "recovered")
	})
	if out, err := exec.Command("hightide", "rm", "--data-dir", data, "watched").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.shows("none; record one")
	c.keys("5")
	c.shows("No run yet")
	c.keys("q")
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTopSignals sends a process SIGTERM, after a question.
func TestTopSignals(t *testing.T) {
	t.Parallel()
	target := exec.Command("sleep", "987654")
	target.Env = []string{"HF_TOKEN=hf_abcdefghijklmnopqrstuvwx"}
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Process.Kill() })
	c := openConsole(t, t.TempDir(), []string{"NO_COLOR=1"}, "top", "--filter", "sleep 987654", "--interval", "100ms")
	c.shows(fmt.Sprint(target.Process.Pid), "none; record one")
	c.until("the process alone", func(text string) bool {
		c.keys("j")
		return strings.Contains(text, fmt.Sprintf("▸ %7d", target.Process.Pid))
	})
	c.keys("e")
	c.shows("HF_TOKEN  ***")
	c.keys("qx")
	c.shows("▸ SIGTERM")
	c.keys("\r")
	c.shows(fmt.Sprintf("Send SIGTERM to process %d?", target.Process.Pid))
	c.keys("y")
	if err := target.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended with %v", err)
	}
	c.shows("SIGTERM was sent")
	c.keys("\x03")
	c.end()
}

// TestRunLive shows a program's output while it runs, prints it again at its end, and ends as it did.
func TestRunLive(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := openConsole(t, t.TempDir(), nil, "run", "--live", "--", "sh", "-c",
		"test -t 1 && echo one; until test -e "+folder+"/go; do sleep 0.1; done; echo two; exit 7")
	c.shows("9 Output", "one", "host")
	c.keys("1")
	c.shows("Memory", "running")
	write(t, folder, "go", "")
	if code := c.end(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if text := c.shows("one\n", "two\n", "exit code 7"); strings.Index(text, "two") > strings.Index(text, "exit code 7") {
		t.Errorf("the output comes after the report:\n%s", text)
	}
}

// TestRunLiveLeft: the program goes on where the view is left, Ctrl-C is its own, and nothing that it writes is lost.
func TestRunLiveLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := openConsole(t, t.TempDir(), nil, "run", "--live", "--", "sh", "-c",
		"trap 'echo interrupted; touch "+folder+"/seen' INT; echo one; until test -e "+folder+"/go; do sleep 0.1; done; "+
			"echo two")
	c.shows("9 Output", "one")
	c.keys("\x03")
	exists(t, filepath.Join(folder, "seen"))
	c.shows("interrupted")
	c.keys("q")
	c.until("the output on the main screen", func(text string) bool {
		return c.screen.main == nil &&
			strings.Contains(text, "interrupted")
	})
	write(t, folder, "go", "")
	c.shows("one\n", "interrupted\n", "two\n", "Again:")
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTopOfASnapshot walks through a real snapshot by keyboard.
func TestTopOfASnapshot(t *testing.T) {
	t.Parallel()
	c := openConsole(t, t.TempDir(), nil, "top", filepath.Join("..", "..", "testdata", "real",
		"h100-lm-ctx128-train-step.pickle"))
	c.shows("51.3 GiB", "HOLDS", "benchmark.py:452")
	c.keys("\x1b[C")
	c.shows("▾ <module>")
	c.keys("m")
	c.shows("bytes × time")
	c.keys("q")
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
