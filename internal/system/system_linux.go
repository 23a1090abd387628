package system

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Name is what people call this system, and Imagines whether it has imaginary GPUs: their library is for these. Procfs
// says whether there is /proc, and Untried how observing programs was tried where not.
const (
	Name     = "Linux on " + runtime.GOARCH
	Imagines = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	Procfs   = true
	Untried  = ""
)

// SharedMemory is the folder of files that programs share as memory.
func SharedMemory() string { return "/dev/shm" }

// followMark is the byte, far behind the end of any file, on which followers hold a shared lock. The system gives it
// back for one that is killed, and a writer sees it in any process. File systems without such locks only make
// followers see what is written later.
const followMark = 1 << 62

func mark(kind int16) unix.Flock_t { return unix.Flock_t{Type: kind, Start: followMark, Len: 1} }

// Follow tells who writes a file that it is followed, until this one is closed.
func Follow(f *os.File) {
	lock := mark(unix.F_RDLCK)
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
}

// Followed says whether somebody follows a file.
func Followed(f *os.File) bool {
	lock := mark(unix.F_WRLCK)
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// Reserve takes room on the disk for a file.
func Reserve(f *os.File, bytes int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, bytes) }

// Monotonic is CLOCK_MONOTONIC in ns, the clock of recordings: it stands still while the machine sleeps.
func Monotonic() int64 { return clock(unix.CLOCK_MONOTONIC) }

// WallClock is in ns since 1970.
func WallClock() int64 { return clock(unix.CLOCK_REALTIME) }

// SinceBoot is in ns, time asleep included.
func SinceBoot() int64 { return clock(unix.CLOCK_BOOTTIME) }

// clock is read many times a second and never waits: as a raw system call it leaves the runtime's monitor asleep.
func clock(id int32) int64 {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// IsTerminal says whether a file is one.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// RunsPrograms says whether programs and libraries may be loaded from a folder; known is false where there is no such folder.
func RunsPrograms(dir string) (runs, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return false, false
	}
	return s.Flags&unix.ST_NOEXEC == 0, true
}

// EndWithParent has this process asked to end (SIGTERM) once its parent has.
func EndWithParent() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0) }

// Limits is what a process may take, in bytes, seconds and files.
type Limits struct{ Memory, CPU, Files uint64 }

// Confine limits this process for good: it writes nothing, dumps no core, gains no rights.
func Confine(l Limits) error {
	for kind, limit := range map[int]uint64{
		unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_CPU: l.CPU, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: l.Files,
		unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // before Linux 3.5 there is none
	return nil
}

// MemoryFile is a file of some content that has no name in any folder: nothing to clean up. As a program it is run by
// /proc/self/fd/N.
func MemoryFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
