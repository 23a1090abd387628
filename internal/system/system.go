// Package system is what hightide asks of an operating system, in words of its own: locks on files, the size of a
// terminal, groups of processes, clocks. Linux, macOS and Windows each answer in a file of their own; callers have no
// build tags. What a system cannot do says so with errors.ErrUnsupported, and is never a value that looks like an answer.
//
//	system.go ─▶ system_unix.go ─▶ system_linux.go, system_darwin.go
//	          └▶ system_windows.go
package system

import (
	"errors"
	"io"
	"os"
)

// ErrLocked says that another process holds the lock that was asked for.
var ErrLocked = errors.New("another process holds the lock")

// Descriptor of a file. Unlike Fd it leaves the file's flags alone, which others may share.
func Descriptor(f *os.File) (fd uintptr, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	return fd, conn.Control(func(number uintptr) { fd = number })
}

// dataTo is an offset in a file that is all data.
func dataTo(f io.Seeker, at int64) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil && at >= end {
		err = io.EOF
	}
	return at, err
}
