package system

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Name is what people call this system, and Imagines whether it has imaginary GPUs: their library is for Linux. Procfs
// says whether there is /proc, and Untried how observing programs was tried.
const (
	Name     = "Windows"
	Imagines = false
	Procfs   = false
	Untried  = "tried under Wine, on no Windows of its own"
)

// HasOwners says whether a file has an owner and rights that are numbers, and LocksFolders whether a folder can be
// locked as a file can.
const (
	HasOwners    = false
	LocksFolders = false
)

// FoldsVariables says whether PATH and Path are one variable. Separators cannot stand in a folder of PYTHONPATH.
const (
	FoldsVariables = true
	Separators     = "\n;"
)

// SharedMemory is the folder of files that programs share as memory: there is none that is never written to a disk.
func SharedMemory() string { return os.TempDir() }

// Flags of os.OpenFile. Windows follows no link where one may not make links, and has no such pipes in folders.
const (
	NoFollow = 0
	NonBlock = 0
	Folder   = 0
)

// Signals that Windows does not have: nobody is sent them.
const (
	SIGTSTP  = syscall.Signal(0x14)
	SIGTTIN  = syscall.Signal(0x15)
	SIGTTOU  = syscall.Signal(0x16)
	SIGSTOP  = syscall.Signal(0x13)
	SIGCONT  = syscall.Signal(0x12)
	SIGUSR1  = syscall.Signal(0x0a)
	SIGUSR2  = syscall.Signal(0x0c)
	SIGWINCH = syscall.Signal(0x1c)
)

// Kill ends a process by SIGKILL; other signals and groups are not there.
func Kill(pid int, s syscall.Signal) error {
	if s != syscall.SIGKILL || pid <= 0 {
		return errors.ErrUnsupported
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// SignalName is as "killed".
func SignalName(s syscall.Signal) string { return s.String() }

// OwnGroup has a command lead a process group of its own: Ctrl-C in the terminal does not reach it.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// OwnSession has a command outlive the terminal.
func OwnSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// OpenMoving opens a file that may be renamed or removed while it is open. Of other files Windows refuses that.
func OpenMoving(path string, flags int, mode fs.FileMode) (*os.File, error) {
	folder, err := os.OpenRoot(filepath.Dir(path)) // which opens all files so, where os.OpenFile does not
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.OpenFile(filepath.Base(path), flags, mode)
}

// lockAt is the byte that stands for a file, far behind the end of any.
const lockAt = 1 << 30

func locked() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: lockAt} }

// Lock takes a lock that ends with the file, or this process. It does not wait: ErrLocked.
func Lock(f *os.File, shared bool) error {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, locked())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// Unlock gives a lock back before the file is closed.
func Unlock(f *os.File) error { return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, locked()) }

// NoLocks says that the file system has no locks: of folders there are none.
func NoLocks(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_INVALID_HANDLE)
}

// Owner is not a number on Windows.
func Owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

// Removed says whether a file that is open has no name any more: Windows keeps it until it is closed.
func Removed(fs.FileInfo) bool { return false }

// FreeBytes is the room for this user on the file system of a folder.
func FreeBytes(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}

// MayWrite says in an error why a file cannot be written: it is marked so.
func MayWrite(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o200 == 0 && !info.IsDir() {
		err = os.ErrPermission
	}
	return err
}

// MayRun says in an error why a program cannot be run.
func MayRun(path string) error { _, err := os.Stat(path); return err }

// Map is the beginning of a file as memory that others see change. Unmap gives it back.
func Map(f *os.File, bytes int, writable bool) ([]byte, error) {
	protection, access := uint32(windows.PAGE_READONLY), uint32(windows.FILE_MAP_READ)
	if writable {
		protection, access = windows.PAGE_READWRITE, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE
	}
	mapping, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, protection, uint32(uint64(bytes)>>32),
		uint32(bytes), nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(mapping) // the view keeps it
	address, err := windows.MapViewOfFile(mapping, access, 0, 0, uintptr(bytes))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), bytes), nil
}

// Unmap gives back what Map returned.
func Unmap(mapping []byte) error {
	if len(mapping) == 0 {
		return nil
	}
	return windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(mapping))))
}

// TerminalSize is in characters; zeros where the file is not a terminal.
func TerminalSize(f *os.File) (columns, rows int) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}

// IsTerminal says whether a file is one.
func IsTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// InForeground is true: Windows has no job control.
func InForeground(*os.File) bool { return true }

// CanOpen says that no number of a descriptor can be handed to a program.
func CanOpen(int) bool { return false }

// MaxFiles is not limited.
func MaxFiles() uint64 { return 0 }

// Follow does nothing: what is written is seen later.
func Follow(*os.File) {}

// Followed says that nobody is known to follow a file.
func Followed(*os.File) bool { return false }

// Reserve is not there; the caller writes zeros.
func Reserve(*os.File, int64) error { return errors.ErrUnsupported }

var frequency = func() (f int64) { call("QueryPerformanceFrequency", &f); return max(f, 1) }()

func call(name string, into *int64) {
	_, _, _ = windows.NewLazySystemDLL("kernel32.dll").NewProc(name).Call(uintptr(unsafe.Pointer(into)))
}

// Monotonic is in ns, the clock of recordings.
func Monotonic() int64 {
	var ticks int64
	call("QueryPerformanceCounter", &ticks)
	return ticks/frequency*1e9 + ticks%frequency*1e9/frequency
}

// WallClock is in ns since 1970.
func WallClock() int64 { return time.Now().UnixNano() }

// SinceBoot is in ns, time asleep included.
func SinceBoot() int64 { return windows.DurationSinceBoot().Nanoseconds() }

// RunsPrograms says that programs may be loaded from any folder.
func RunsPrograms(dir string) (runs, known bool) {
	_, err := os.Stat(dir)
	return err == nil, err == nil
}

// EndWithParent does nothing.
func EndWithParent() {}

// Limits is what a process may take, in bytes, seconds and files.
type Limits struct{ Memory, CPU, Files uint64 }

// Confine limits this process for good, by a job that it is put into: its memory and its time.
func Confine(l Limits) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY |
		windows.JOB_OBJECT_LIMIT_PROCESS_TIME | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
	info.BasicLimitInformation.ActiveProcessLimit = 1
	info.BasicLimitInformation.PerProcessUserTimeLimit = int64(l.CPU) * 1e7 // 100 ns
	info.ProcessMemoryLimit = uintptr(l.Memory)
	if _, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return err
	}
	return windows.AssignProcessToJobObject(job, windows.CurrentProcess())
}

// MemoryFile is not there.
func MemoryFile(string, []byte) (*os.File, error) { return nil, errors.ErrUnsupported }

// NextData is the first place from an offset on at which a file has data: holes are not looked for here.
//
// Errors: io.EOF, there is no data from there on.
func NextData(f io.Seeker, at int64) (int64, error) { return dataTo(f, at) }

// NextHole is the first place from an offset on at which a file has no data: its end.
func NextHole(f io.Seeker, _ int64) (int64, error) { return f.Seek(0, io.SeekEnd) }
