package sampler

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"hightide/internal/mem"
)

// TestMachineSeesThisMachine: we are among the processes, with our parent, our size and processor time that grows.
func TestMachineSeesThisMachine(t *testing.T) {
	m := OpenMachine("/")
	defer m.Close()
	m.Read(1e9)
	for range 1 << 22 { // some processor time
		_ = os.Getpid()
	}
	p := m.Read(2e9)
	if p.Total.Or(0) <= p.Available.Or(0) || p.Available.Or(0) <= 0 || p.Cores < 1 || p.Load == "" {
		t.Errorf("the machine is %+v", p)
	}
	us := seenAs(&p, os.Getpid())
	if us == nil {
		t.Fatal("we are not among the processes")
	}
	if us.Parent != os.Getppid() || us.RSS < 1<<20 || us.User != uint32(os.Getuid()) || !us.Busy.Known() ||
		len(us.Command) == 0 {
		t.Errorf("we are %+v", us)
	}
}

func seenAs(p *Picture, pid int) *Seen {
	for i := range p.Processes {
		if p.Processes[i].PID == pid {
			return &p.Processes[i]
		}
	}
	return nil
}

// TestSignalReachesWhoIsMeant: the process that began then, and no other of its number.
func TestSignalReachesWhoIsMeant(t *testing.T) {
	c := exec.Command("sleep", "1000")
	c.Env = []string{"HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "PLAIN=1"}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	m := OpenMachine("/")
	defer m.Close()
	p := m.Read(1e9)
	seen := seenAs(&p, c.Process.Pid)
	if seen == nil {
		t.Fatal("the child is not among the processes")
	}
	if err := Signal(seen.PID, seen.StartTicks+1, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("another process of that number: %v", err)
	}
	env, err := Environ("/", seen.PID, seen.StartTicks)
	if err != nil || len(env) != 2 || env[0] != (mem.Variable{Name: "HF_TOKEN", Value: mem.Masked}) ||
		env[1].Value != "1" {
		t.Errorf("environment %v, %v", env, err)
	}
	if err := Signal(seen.PID, seen.StartTicks, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", err)
	}
	if err := Signal(seen.PID, seen.StartTicks, syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("after its end: %v", err)
	}
	q := m.Read(2e9)
	if seenAs(&q, seen.PID) != nil {
		t.Error("it is still among the processes")
	}
}

func TestParseCPU(t *testing.T) {
	got := parseCPU([]byte("cpu  10 1 5 80 4 0 0 0 3 0\ncpu0 1 2\n"))
	if got != (cpuTimes{busy: 16, all: 100}) {
		t.Errorf("got %+v", got)
	}
	if got := parseCPU(nil); got != (cpuTimes{}) {
		t.Errorf("of nothing: %+v", got)
	}
}
