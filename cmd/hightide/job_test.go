package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// openShell starts a shell with job control on a terminal.
func openShell(t *testing.T, data string) *console {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash: another shell words what becomes of a job in its own way")
	}
	c := openTerminal(t, data, []string{"PS1=$ ", "HISTFILE="}, bash, "--norc", "--noprofile", "-i")
	c.shows("$")
	return c
}

// job is the process that the shell has in front.
func (c *console) job() (pid int) {
	c.t.Helper()
	file := fmt.Sprintf("/proc/%d/task/%[1]d/children", c.command.Process.Pid)
	for late := time.Now().Add(patience); pid == 0; time.Sleep(20 * time.Millisecond) {
		children, err := os.ReadFile(file)
		if err != nil || time.Now().After(late) {
			c.t.Fatalf("the shell has no job: %v", err)
		}
		if words := strings.Fields(string(children)); len(words) == 1 {
			pid, _ = strconv.Atoi(words[0])
		}
	}
	return pid
}

// stopped waits until a process is, and the shell has its terminal back, whole.
func (c *console) stopped(pid int) {
	c.t.Helper()
	c.until("the shell", func(text string) bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return c.screen.main == nil && !c.screen.hidden && strings.Contains(string(stat), ") T ") &&
			strings.Contains(text, "Stopped")
	})
}

// views waits for those.
func (c *console) views(words ...string) {
	c.t.Helper()
	c.until("the views with "+strings.Join(words, " and "), func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return c.screen.main != nil && c.screen.hidden
	})
}

// TestRunLiveStopped: a job with views is stopped by Ctrl-Z, by a signal to hightide alone and by one to the job. The
// shell has its terminal whole each time, and with fg the views are there again, of the size that the terminal has by
// then. In the background there are none.
func TestRunLiveStopped(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "program",
		"trap 'echo size; stty size <&2' WINCH\necho one\nuntil test -e go; do sleep 0.1; done\necho two\nexit 7\n")
	c := openShell(t, t.TempDir())
	c.keys("cd " + folder + "; hightide run --live -- bash program\r")
	c.views("9 Output", "one")
	c.resize(100, 30)
	c.views("25 100") // without the lines that are not the program's
	engine := c.job()
	c.keys("\x1a")
	c.stopped(engine)
	c.resize(60, 20)
	c.keys("fg\r")
	c.views("15 60", "running")
	for _, to := range []int{engine, -engine} {
		if err := syscall.Kill(to, syscall.SIGTSTP); err != nil {
			t.Fatal(err)
		}
		c.stopped(engine)
		c.keys("fg\r")
		c.views("running", "9 Output")
	}
	c.resize(30, 5)
	c.views("needs 40 x 10")
	c.resize(1, 1)
	c.resize(80, 24)
	c.views("running", "9 Output")
	c.keys("\x1a")
	c.stopped(engine)
	c.keys("bg\r")
	c.shows("]+ hightide run")
	write(t, folder, "go", "")
	c.shows("one\n", "two\n", "exit code 7")
	c.keys("\recho ali''ve\r")
	c.shows("\nalive")
	c.keys("exit\r")
	c.end()
}

// TestTopStopped: hightide top stops and goes on as an editor does, and leaves the terminal whole when a signal ends
// it.
func TestTopStopped(t *testing.T) {
	t.Parallel()
	c := openShell(t, t.TempDir())
	for n, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal == syscall.SIGHUP && ignored(signal) {
			continue // the tests were started by nohup, and so is top
		}
		c.keys("hightide top\r")
		c.views("1 Overview", "Memory")
		top := c.job()
		if n == 0 {
			c.keys("\x1a")
			c.stopped(top)
			c.keys("fg\r")
			c.views("1 Overview", "Memory")
			_ = syscall.Kill(top, syscall.SIGTSTP)
			c.stopped(top)
			c.keys("fg\r")
			c.views("1 Overview", "Memory")
		}
		_ = syscall.Kill(top, signal)
		c.until("the shell after "+signal.String(), func(string) bool { return c.screen.main == nil && !c.screen.hidden })
		c.keys(fmt.Sprintf("echo en''ded %d with $?\r", n))
		c.shows(fmt.Sprintf("ended %d with 0", n))
	}
	c.keys("exit\r")
	c.end()
}

// TestRunLiveKilled: SIGTERM to hightide is the program's, and the terminal is whole after both.
func TestRunLiveKilled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := openConsole(t, t.TempDir(), nil, "run", "--live", "--", "sh", "-c",
		"echo $PPID > "+folder+"/pid; trap 'echo told; exit 3' TERM; while :; do sleep 0.1; done")
	c.shows("9 Output", "running")
	exists(t, filepath.Join(folder, "pid"))
	_ = c.command.Process.Signal(syscall.SIGTERM)
	if code := c.end(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	c.shows("told\n", "exit code 3")
}
