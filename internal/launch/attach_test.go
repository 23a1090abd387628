package launch

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shell starts a program that waits for its standard input to end.
func shell(t *testing.T, text string) (*exec.Cmd, func()) {
	t.Helper()
	c := exec.Command("sh", "-c", "echo ready; read line; "+text)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = c.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c, func() { in.Close() }
}

func look(t *testing.T, pid int) *Target {
	t.Helper()
	target, err := Look(pid)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// change waits for one of a stranger's process.
func change(t *testing.T, c *Child) (Change, bool) {
	t.Helper()
	select {
	case change, ok := <-c.Changes:
		return change, ok
	case <-time.After(time.Minute):
		t.Fatal("its end was not seen")
		return Change{}, false
	}
}

// TestStrangersEnd: its end is seen, and how it ended while its parent has not asked; with and without a descriptor
// of the kernel's.
func TestStrangersEnd(t *testing.T) {
	for name, prepare := range map[string]func(*Target){"pidfd": func(*Target) {}, "older kernel": (*Target).Close} {
		t.Run(name, func(t *testing.T) {
			command, end := shell(t, "exit 7")
			target := look(t, command.Process.Pid)
			prepare(target)
			child := target.Attach(&Runtime{})
			defer child.Close()
			end()
			got, ok := change(t, child)
			if !ok || got.Status.ExitStatus() != 7 {
				t.Errorf("ended with %v, %v; want exit code 7, which the zombie tells", got.Status, ok)
			}
		})
	}
}

// TestStrangersEndBySignal: a signal is told as one.
func TestStrangersEndBySignal(t *testing.T) {
	command, end := shell(t, "kill -USR1 $$")
	child := look(t, command.Process.Pid).Attach(&Runtime{})
	defer child.Close()
	end()
	if got, ok := change(t, child); !ok || !got.Status.Signaled() ||
		got.Status.Signal().String() != "user defined signal 1" {
		t.Errorf("ended with %v, %v", got.Status, ok)
	}
}

// TestNobodyWaitsAnyMore: a recording that ends first leaves no goroutine behind, and the process as it is.
func TestNobodyWaitsAnyMore(t *testing.T) {
	command, _ := shell(t, "exit 0")
	target := look(t, command.Process.Pid)
	done, ended := make(chan struct{}), make(chan bool)
	go func() { ended <- target.ends(done) }()
	close(done)
	if <-ended {
		t.Error("it is said to have ended")
	}
	target.Close()
	if processState(command.Process.Pid) == 0 {
		t.Error("it is gone")
	}
}

// TestWhatIsNoTarget: each has its own reason.
func TestWhatIsNoTarget(t *testing.T) {
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	for processState(zombie.Process.Pid) != 'Z' {
		time.Sleep(time.Millisecond)
	}
	for name, test := range map[string]struct {
		pid  int
		want string
	}{
		"itself": {os.Getpid(), "hightide itself"},
		"zombie": {zombie.Process.Pid, "has ended"},
		"none":   {1 << 22, "there is no process"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Look(test.pid)
			var why *NoTarget
			if !errors.As(err, &why) || why.Denied || !strings.Contains(why.Text, test.want) {
				t.Errorf("%v; want %q in it", err, test.want)
			}
		})
	}
}

// TestTargetIsWhoItIs: command, folder and environment are the process's own.
func TestTargetIsWhoItIs(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command("sh", "-c", "echo; read line", "a b")
	c.Dir, c.Env = dir, []string{"ONE=1"}
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = c.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	target := look(t, c.Process.Pid)
	defer target.Close()
	if target.Cwd != dir || len(target.Command) != 4 || target.Command[3] != "a b" || Lookup(target.Env, "ONE") != "1" ||
		target.Foreign != "" {
		t.Errorf("%+v", target)
	}
}
