package main

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// counting prints each signal that it gets.
const counting = `
import signal, time
def told(number, frame):
    print(signal.Signals(number).name, flush=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, told)
print("ready", flush=True)
while True:
    time.sleep(0.01)
`

// TestSignalToTheWholeGroup: without a terminal, what is sent to the group reaches the program once, and what is sent
// to hightide alone reaches it too.
func TestSignalToTheWholeGroup(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../internal/launch/lib/" + runtime.GOARCH + "/hightide-witness"); err != nil {
		t.Skip("what tells such signals apart is not built: make -C internal/launch")
	}
	s := newSession(t)
	c := s.command("run", "-q", "--", pythonPath(t), write(t, s.dir, "counting.py", counting))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out output
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() }()
	waitFor(t, func() bool { return strings.Contains(out.String(), "ready\n") })
	said := "ready\n"
	expect := func(to int, signal syscall.Signal, name string) {
		t.Helper()
		if err := syscall.Kill(to, signal); err != nil {
			t.Fatal(err)
		}
		said += name + "\n"
		waitFor(t, func() bool { return strings.HasPrefix(out.String(), said) || len(out.String()) > len(said) })
		if out.String() != said {
			t.Fatalf("the program got\n%s, want\n%s", out.String(), said)
		}
	}
	group, alone := -c.Process.Pid, c.Process.Pid
	for range 3 { // a second one would come before what is sent to hightide alone
		expect(group, syscall.SIGINT, "SIGINT")
		expect(alone, syscall.SIGUSR1, "SIGUSR1")
		expect(group, syscall.SIGTERM, "SIGTERM")
		expect(alone, syscall.SIGUSR1, "SIGUSR1")
		expect(group, syscall.SIGHUP, "SIGHUP")
		expect(alone, syscall.SIGUSR1, "SIGUSR1")
		expect(group, syscall.SIGUSR2, "SIGUSR2")
		expect(alone, syscall.SIGUSR1, "SIGUSR1")
	}
}
