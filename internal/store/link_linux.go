package store

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lostAfter is how long what was sent may go unanswered.
const lostAfter = 30 * time.Second

// noticeLoss ends a connection whose other side does not say that it has what was sent.
func noticeLoss(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { // best effort: a socket of a file has no such thing
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
}
