package launch

import (
	"fmt"
	"os"
)

// Target is a process that runs already and is not ours, as far as it may be looked at.
type Target struct {
	PID        int
	StartTicks uint64   // when it began, see Identity: pids are given again, with it they are not
	Command    []string // as the kernel has it
	Cwd        string   // "": it may not be read
	Exe        string   // the file of its program; "": it may not be read
	Env        []string // as it was started; nil: it may not be read
	Foreign    string   // why nothing of ours can be brought into it; "": it can
	pidfd      int      // -1: the kernel is older than 5.3, or does not let us
}

// NoTarget says why a process cannot be recorded.
type NoTarget struct {
	Denied bool // it is there, and may not be looked at
	Text   string
	Hint   string
}

func (e *NoTarget) Error() string { return e.Text }

// Look finds the process of a pid. Errors are a *NoTarget. Close gives it back.
func Look(pid int) (*Target, error) {
	if pid == os.Getpid() {
		return nil, &NoTarget{Text: fmt.Sprintf("process %d is hightide itself", pid),
			Hint: "name the process that is to be recorded"}
	}
	t := &Target{PID: pid, pidfd: -1}
	if fd, err := openProcess(pid); err == nil {
		t.pidfd = fd // before all else: from here on the pid is of this process, or of none
	}
	if err := t.identify(); err != nil {
		t.Close()
		return nil, err
	}
	t.look()
	return t, nil
}

// Close gives back what Look opened.
func (t *Target) Close() {
	if t.pidfd >= 0 {
		_ = closeProcess(t.pidfd)
		t.pidfd = -1
	}
}
