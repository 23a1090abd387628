package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"hightide/internal/system"

	"golang.org/x/sys/unix"
)

// ownAndLast has a command lead a process group of its own, and end with us.
func ownAndLast() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startIn starts a program in a control group. Version 1 has no way to say so of a process that does not exist yet: it
// begins where the thread is that starts it.
func startIn(group Group, path string, argv []string, attr *syscall.ProcAttr) (*begun, error) {
	pid, err := startPID(group, path, argv, attr)
	return &begun{pid}, err
}

func startPID(group Group, path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	switch group.Version {
	case 1:
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := enter(group.Folder); err != nil {
			return 0, err
		}
		pid, err = start(path, argv, attr)
		return pid, errors.Join(err, enter(filepath.Dir(group.Folder)))
	case 2:
		folder, err := os.Open(group.Folder)
		if err != nil {
			return 0, err
		}
		defer folder.Close()
		own := syscall.SysProcAttr{}
		if attr.Sys != nil {
			own = *attr.Sys
		}
		own.UseCgroupFD, own.CgroupFD = true, int(folder.Fd())
		with := *attr
		with.Sys = &own
		return start(path, argv, &with)
	}
	return start(path, argv, attr)
}

// enter moves this thread into a control group of version 1.
func enter(folder string) error {
	return os.WriteFile(filepath.Join(folder, "tasks"), strconv.AppendInt(nil, int64(unix.Gettid()), 10), 0)
}

func maxRSS(change *Change) int64 { return change.Usage.Maxrss << 10 }

func statusOf(code uint32) syscall.WaitStatus { return syscall.WaitStatus(code) }

// openProcess is a descriptor of a process: from there on its number is of this process, or of none.
func openProcess(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func closeProcess(fd int) error { return unix.Close(fd) }

// awaitEnd waits for the end of a process; false: something came to woken before.
func awaitEnd(process int, woken *os.File) (ended bool, err error) {
	fds := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}, {Fd: int32(woken.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return false, err
		}
		switch {
		case fds[0].Revents != 0:
			return true, nil
		case fds[1].Revents != 0:
			return false, nil
		}
	}
}

// exitOf is how the process of a descriptor ended, where the kernel says so to one who is not its parent.
func exitOf(process int) (syscall.WaitStatus, bool) {
	info := pidfdInfo{Mask: pidfdInfoExit}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(process), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return syscall.WaitStatus(info.ExitCode), process >= 0 && errno == 0 && info.Mask&pidfdInfoExit != 0
}

// pidfdInfo is the beginning of the kernel's struct pidfd_info, whose size is in the number of the request.
type pidfdInfo struct {
	Mask, Cgroup uint64
	_            [11]uint32 // numbers of the process and its user
	ExitCode     int32
}

const (
	pidfdInfoExit = 1 << 3     // once the parent has asked, from Linux 6.15 on
	pidfdGetInfo  = 0xC040FF0B // _IOWR(0xFF, 11, 64 bytes)
)

// Die ends this process by a signal, as the command ended. It returns only where the signal cannot
// kill; then the caller ends with 128 + signal. No core is written: it would be ours.
func Die(s syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	swapAction(s, sigaction{})
	_ = system.Kill(os.Getpid(), s)
	time.Sleep(50 * time.Millisecond)
}

// stopByTerminal stops this process, and returns when it has gone on for as long as sending a signal takes.
func stopByTerminal(sending time.Duration) {
	before := swapAction(syscall.SIGTSTP, sigaction{})
	_ = system.Kill(os.Getpid(), syscall.SIGTSTP)
	time.Sleep(sending)
	swapAction(syscall.SIGTSTP, before)
}

// sigaction is the kernel's: handler (0: the default), flags, restorer, mask.
type sigaction [4]uint64

// swapAction sets what a signal does behind the back of Go's runtime, whose own handlers print a traceback for some
// signals and drop others where the default is wanted.
func swapAction(s syscall.Signal, to sigaction) (before sigaction) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&to)),
		uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

// terminalOf is the device of a terminal, 0 of what is none.
func terminalOf(f *os.File) uint64 {
	fd, err := system.Descriptor(f)
	if err != nil {
		return 0
	}
	var info unix.Stat_t
	if _, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err != nil || unix.Fstat(int(fd), &info) != nil {
		return 0
	}
	return info.Rdev
}

// openTerminal makes a terminal of the size of another. It leaves every byte as the program writes it, and is
// nobody's controlling one.
func openTerminal(like *os.File) (source, end *os.File, err error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal for the program: %w", err)
	}
	source = os.NewFile(uintptr(master), "/dev/ptmx")
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	}
	slave := -1
	if err == nil {
		slave, err = unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		source.Close()
		return nil, nil, fmt.Errorf("open a terminal for the program: %w", err)
	}
	if mode, err := unix.IoctlGetTermios(slave, unix.TCGETS); err == nil {
		mode.Oflag &^= unix.OPOST
		mode.Lflag &^= unix.ECHO
		_ = unix.IoctlSetTermios(slave, unix.TCSETS, mode)
	}
	if fd, err := system.Descriptor(like); err == nil {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			_ = unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, size)
		}
	}
	return source, os.NewFile(uintptr(slave), "/dev/pts"), nil
}

// blockingPipe is a pipe whose ends wait, as programs expect of theirs.
func blockingPipe() (source, end *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe for the program's output: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// resize gives a terminal another size.
func resize(f *os.File, columns, rows int) {
	_ = unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
}
