//go:build !linux

package launch

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Nothing is started or attached to elsewhere than on Linux: what observes it is made for that.

func ownAndLast() *syscall.SysProcAttr { return nil }

func start(string, []string, *syscall.ProcAttr) (pid int, err error) { return 0, errors.ErrUnsupported }

func startIn(Group, string, []string, *syscall.ProcAttr) (pid int, err error) {
	return 0, errors.ErrUnsupported
}

func waitFor(int, *syscall.WaitStatus, *syscall.Rusage) error { return errors.ErrUnsupported }

func waitForEnd(int) (status syscall.WaitStatus) { return status }

func endedAlready(int) (status syscall.WaitStatus, ended bool) { return status, true }

func maxRSS(*syscall.Rusage) int64 { return 0 }

func statusOf(uint32) (status syscall.WaitStatus) { return status }

func openProcess(int) (int, error) { return -1, errors.ErrUnsupported }

func closeProcess(int) error { return nil }

func awaitEnd(int, *os.File) (ended bool, err error) { return false, errors.ErrUnsupported }

func exitOf(int) (status syscall.WaitStatus, known bool) { return status, false }

func hasTerminal() bool { return false }

func foreground() bool { return true }

// Die does nothing: the caller ends with 128 + signal.
func Die(syscall.Signal) {}

func stopByTerminal(time.Duration) {}

func terminalOf(*os.File) uint64 { return 0 }

func openTerminal(*os.File) (source, end *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func blockingPipe() (source, end *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func resize(*os.File, int, int) {}
