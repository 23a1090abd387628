package system

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Name is what people call this system, and Imagines whether it has imaginary GPUs: their library is for Linux. Procfs
// says whether there is /proc, and Untried how observing programs was tried.
const (
	Name     = "macOS"
	Imagines = false
	Procfs   = false
	Untried  = "compiled and tested as far as Linux allows, run on no Mac by us"
)

// SharedMemory is the folder of files that programs share as memory: there is none that is never written to a disk.
func SharedMemory() string { return os.TempDir() }

// Follow would tell who writes a file that it is followed: macOS's locks belong to a process, so it cannot. What is
// written is seen later.
func Follow(*os.File) {}

// Followed says that nobody is known to follow a file.
func Followed(*os.File) bool { return false }

// Reserve takes room on the disk for a file.
func Reserve(f *os.File, bytes int64) error {
	return unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &unix.Fstore_t{Flags: unix.F_ALLOCATEALL,
		Posmode: unix.F_PEOFPOSMODE, Length: bytes})
}

// Monotonic is in ns, the clock of recordings: that of Python's time.monotonic, which stands still while the machine
// sleeps. What macOS calls CLOCK_MONOTONIC does not.
func Monotonic() int64 { return clock(unix.CLOCK_UPTIME_RAW) }

// WallClock is in ns since 1970.
func WallClock() int64 { return time.Now().UnixNano() }

// SinceBoot is in ns, time asleep included.
func SinceBoot() int64 { return clock(unix.CLOCK_MONOTONIC) }

func clock(id int32) int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts)
	return ts.Nano()
}

// IsTerminal says whether a file is one.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}

// RunsPrograms says whether programs and libraries may be loaded from a folder; known is false where there is no such folder.
func RunsPrograms(dir string) (runs, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return false, false
	}
	return s.Flags&unix.MNT_NOEXEC == 0, true
}

// EndWithParent does nothing: macOS tells nobody that a parent has ended.
func EndWithParent() {}

// Limits is what a process may take, in bytes, seconds and files.
type Limits struct{ Memory, CPU, Files uint64 }

// Confine limits this process for good: it writes nothing, dumps no core. macOS does not limit memory by itself.
func Confine(l Limits) error {
	for kind, limit := range map[int]uint64{
		unix.RLIMIT_CPU: l.CPU, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: l.Files, unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	return nil
}

// MemoryFile is not there.
func MemoryFile(string, []byte) (*os.File, error) { return nil, errors.ErrUnsupported }
