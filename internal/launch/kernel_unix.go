//go:build unix

package launch

import (
	"syscall"

	"hightide/internal/system"

	"golang.org/x/sys/unix"
)

func start(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	return syscall.ForkExec(path, argv, attr)
}

// begun is a program that was started.
type begun struct{ pid int }

// wait waits until it is stopped or ends.
func (b *begun) wait(change *Change) error {
	for {
		if _, err := syscall.Wait4(b.pid, &change.Status, syscall.WUNTRACED, &change.Usage); err != syscall.EINTR {
			return err
		}
	}
}

// signal sends a signal; to all of its group, where it leads one of its own.
func (b *begun) signal(s syscall.Signal, group bool) {
	if group {
		_ = system.Kill(-b.pid, s)
		return
	}
	_ = system.Kill(b.pid, s)
}

// members is nil: the processes of a program are found by their parents.
func (*begun) members() func() []int { return nil }

func (*begun) close() {}

// waitForEnd gives how a process of ours ended.
func waitForEnd(pid int) (status syscall.WaitStatus) {
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status
		}
	}
}

// endedAlready gives how a process of ours ended, if it did.
func endedAlready(pid int) (status syscall.WaitStatus, ended bool) {
	done, _ := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return status, done != 0
}

// hasTerminal says whether the process has a controlling terminal that is still there.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// foreground says whether our process group is the one the terminal talks to.
func foreground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
