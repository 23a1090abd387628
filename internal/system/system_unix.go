//go:build unix

package system

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// HasOwners says whether a file has an owner and rights that are numbers, and LocksFolders whether a folder can be
// locked as a file can.
const (
	HasOwners    = true
	LocksFolders = true
)

// FoldsVariables says whether PATH and Path are one variable. Separators cannot stand in a folder of PYTHONPATH or
// LD_PRELOAD.
const (
	FoldsVariables = false
	Separators     = ": \t\n;"
)

// Flags of os.OpenFile.
const (
	NoFollow = unix.O_NOFOLLOW  // a link is an error
	NonBlock = unix.O_NONBLOCK  // opening a pipe does not wait for its other end
	Folder   = unix.O_DIRECTORY // anything but a folder is an error
)

// Signals that not all systems have.
const (
	SIGTSTP  = syscall.SIGTSTP
	SIGTTIN  = syscall.SIGTTIN
	SIGTTOU  = syscall.SIGTTOU
	SIGSTOP  = syscall.SIGSTOP
	SIGCONT  = syscall.SIGCONT
	SIGUSR1  = syscall.SIGUSR1
	SIGUSR2  = syscall.SIGUSR2
	SIGWINCH = syscall.SIGWINCH
)

// Kill sends a signal; to a process group where pid is negative, to our own where it is 0.
func Kill(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

// SignalName is as SIGKILL, "" of a number that is no signal.
func SignalName(s syscall.Signal) string { return unix.SignalName(s) }

// OwnGroup has a command lead a process group of its own: Ctrl-C in the terminal does not reach it.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// OwnSession has a command outlive the terminal.
func OwnSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// OpenMoving opens a file that may be renamed or removed while it is open, as any may here.
func OpenMoving(path string, flags int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flags, mode)
}

// Lock takes a lock that ends with the file, or this process. It does not wait: ErrLocked.
func Lock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Unlock gives a lock back before the file is closed.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// NoLocks says that the file system has no locks.
func NoLocks(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}

// Owner is the user that a file belongs to.
func Owner(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// Removed says whether a file that is open has no name any more.
func Removed(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}

// FreeBytes is the room for this user on the file system of a folder.
func FreeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	if err == nil && s.Blocks == 0 { // a file system that does not count
		err = errors.ErrUnsupported
	}
	return int64(s.Bavail) * int64(s.Bsize), err
}

// MayWrite says in an error why this user cannot write a file or into a folder.
func MayWrite(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
}

// MayRun says in an error why this user cannot run a program.
func MayRun(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// Map is the beginning of a file as memory that others see change. Unmap gives it back.
func Map(f *os.File, bytes int, writable bool) ([]byte, error) {
	rights := unix.PROT_READ
	if writable {
		rights |= unix.PROT_WRITE
	}
	return unix.Mmap(int(f.Fd()), 0, bytes, rights, unix.MAP_SHARED)
}

// Unmap gives back what Map returned.
func Unmap(mapping []byte) error { return unix.Munmap(mapping) }

// TerminalSize is in characters; zeros where the file is not a terminal.
func TerminalSize(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// InForeground says whether the terminal talks to our process group; true of a file that is not a terminal.
func InForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// CanOpen says whether a number is an open descriptor, and keeps it from programs that we start.
func CanOpen(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		return false
	}
	syscall.CloseOnExec(fd)
	return true
}

// MaxFiles is how many files this process may have open, as far as it may raise that itself; 0: not known.
func MaxFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	// Go has raised its limit to one below what is allowed
	return min(uint64(limit.Cur)+1, uint64(limit.Max))
}

// NextData is the first place from an offset on at which a file has data. One that does not tell its holes is all data.
//
// Errors: io.EOF, there is no data from there on.
func NextData(f io.Seeker, at int64) (int64, error) {
	found, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, io.EOF
	case err != nil:
		return dataTo(f, at)
	}
	return found, nil
}

// NextHole is the first place from an offset on at which a file has no data: at the latest its end.
func NextHole(f io.Seeker, at int64) (int64, error) {
	if found, err := f.Seek(at, unix.SEEK_HOLE); err == nil {
		return found, nil
	}
	return f.Seek(0, io.SeekEnd)
}
