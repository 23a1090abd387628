package sampler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"syscall"
	"unsafe"

	"hightide/internal/system"

	"golang.org/x/sys/unix"
)

// openFile, pread and readFile go around os.File: a tick opens nothing it keeps and allocates nothing. What
// the kernel answers at once (all but smaps_rollup) is asked raw. The runtime's monitor, which wakes up
// for an ordinary system call and polls for as long as we work, costs more than the answer.
func openFile(path string, flags int) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	at := unix.AT_FDCWD
	for {
		fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(name)),
			uintptr(syscall.O_RDONLY|syscall.O_CLOEXEC|flags), 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case syscall.EINTR:
		default:
			return -1, errno
		}
	}
}

func pread(fd int, buffer []byte) (int, error) { return preadAt(fd, buffer, 0) }

func preadAt(fd int, buffer []byte, offset int64) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(buffer))), uintptr(len(buffer)), uintptr(offset), 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// sizeOf is what the kernel says of an open file or folder, 0 where it says nothing.
func sizeOf(fd int) int64 {
	var info syscall.Stat_t
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&info)), 0)
	if errno != 0 {
		return 0
	}
	return info.Size
}

func closeFile(fd int) { _, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

// readSlowly is readFile of what takes the kernel long.
func readSlowly(path string, buffer []byte) (int, error) {
	fd, err := openFile(path, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(fd)
	for {
		n, err := syscall.Pread(fd, buffer, 0)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// Clocks of processor time, see clock_getcpuclockid(3).
const (
	processClock = 2
	threadClock  = 3
)

func clockOf(pid int) int { return ^pid<<3 | 2 }

// clock reads a clock in ns.
func clock(id int) (int64, bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano(), errno == 0
}

// eachName visits the names in a folder that is open, from its beginning.
func eachName(folder int, buffer []byte, visit func(name []byte)) error {
	if _, err := syscall.Seek(folder, 0, 0); err != nil {
		return err
	}
	for {
		n, err := syscall.ReadDirent(folder, buffer)
		if err != nil || n <= 0 {
			return err
		}
		eachEntry(buffer[:n], visit)
	}
}

// eachEntry visits the names in a buffer of struct linux_dirent64, without "." and "..".
func eachEntry(buffer []byte, visit func(name []byte)) {
	for len(buffer) > 19 {
		size := int(binary.NativeEndian.Uint16(buffer[16:]))
		if size <= 19 || size > len(buffer) {
			return
		}
		name := buffer[19:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if len(name) > 0 && name[0] != '.' {
			visit(name)
		}
		buffer = buffer[size:]
	}
}

// ownerOf is the user whose a file is, as a process' folder is that of who runs it.
func ownerOf(path string) (uint32, bool) {
	var info syscall.Stat_t
	err := syscall.Stat(path, &info)
	return info.Uid, err == nil
}

func inodeOf(path string) (uint64, bool) {
	var info syscall.Stat_t
	err := syscall.Stat(path, &info)
	return info.Ino, err == nil
}

// memoryOf is what a file of a file system in memory takes of it, in bytes, and when it or what is known of it changed, in
// ns of the wall clock.
func memoryOf(path string) (inode uint64, user int, bytes, changed int64, ok bool) {
	var info syscall.Stat_t
	if syscall.Lstat(path, &info) != nil {
		return 0, 0, 0, 0, false
	}
	return info.Ino, int(info.Uid), info.Blocks * 512, max(info.Mtim.Nano(), info.Ctim.Nano()), true
}

// fileSystem is room to ask in without allocating.
type fileSystem unix.Statfs_t

// inMemory is what an open folder's file system holds of memory and may at most, in bytes; zeros where it is none that
// lies in memory.
func (f *fileSystem) inMemory(folder int) (used, total int64) {
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSTATFS, uintptr(folder), uintptr(unsafe.Pointer(f)), 0)
	if errno != 0 || f.Type != unix.TMPFS_MAGIC {
		return 0, 0
	}
	return int64(f.Blocks-f.Bfree) * f.Bsize, int64(f.Blocks) * f.Bsize
}

// sendIf sends a signal to a process that same says is the right one, and to no other that has its number by then: ESRCH.
func sendIf(pid int, signal syscall.Signal, same func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		if !same() {
			return syscall.ESRCH
		}
		return system.Kill(pid, signal)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !same() {
		return syscall.ESRCH
	}
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}
