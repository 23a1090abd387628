package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"hightide/internal/system"
)

// ownAndLast has a command lead a process group of its own. macOS does not end it with us.
func ownAndLast() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// startIn starts a program; there are no control groups.
func startIn(_ Group, path string, argv []string, attr *syscall.ProcAttr) (*begun, error) {
	pid, err := start(path, argv, attr)
	return &begun{pid}, err
}

func maxRSS(change *Change) int64 { return change.Usage.Maxrss } // bytes, where Linux has KiB

// Die ends this process by a signal, as the command ended. It returns where the signal cannot kill, or Go's runtime
// would print a traceback for it; then the caller ends with 128 + signal.
func Die(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGKILL:
		signal.Reset(s)
		_ = system.Kill(os.Getpid(), s)
		time.Sleep(50 * time.Millisecond)
	}
}

// stopByTerminal stops this process as SIGSTOP does: what its own handler of SIGTSTP would do cannot be taken off here.
func stopByTerminal(time.Duration) { _ = system.Kill(os.Getpid(), system.SIGSTOP) }
