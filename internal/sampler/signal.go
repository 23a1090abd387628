package sampler

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to the process that began at startTicks. A descriptor of the process is taken first, so that a number which
// became another's in between is never signalled.
func Signal(pid int, startTicks uint64, signal syscall.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		if !sameProcess("/", pid, startTicks) {
			return ErrGone
		}
		return signalError(syscall.Kill(pid, signal))
	}
	if err != nil {
		return signalError(err)
	}
	defer unix.Close(fd)
	if !sameProcess("/", pid, startTicks) {
		return ErrGone
	}
	return signalError(unix.PidfdSendSignal(fd, signal, nil, 0))
}

func signalError(err error) error {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return ErrGone
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("it belongs to another user")
	}
	return err
}
