package observe

import (
	"strconv"
	"syscall"
	"unsafe"

	"hightide/internal/launch"

	"golang.org/x/sys/unix"
)

// monotonic is CLOCK_MONOTONIC in ns, the clock of every recording.
func monotonic() int64 { return clock(unix.CLOCK_MONOTONIC) }

// wallClock is CLOCK_REALTIME in ns since 1970.
func wallClock() int64 { return clock(unix.CLOCK_REALTIME) }

// clock and changedAt are called many times a second and never wait: as raw system calls they leave the
// runtime's monitor asleep (alarm.go).
func clock(id int32) int64 {
	var ts unix.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// changedAt is when a folder last changed, CLOCK_REALTIME in ns.
func changedAt(folder string) (int64, error) {
	path, err := unix.BytePtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var info unix.Stat_t
	here := unix.AT_FDCWD
	_, _, errno := syscall.RawSyscall6(syscall.SYS_NEWFSTATAT, uintptr(here), uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&info)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return info.Mtim.Nano(), nil
}

// procAlive says whether the process of that identity still runs; a zombie does not.
func procAlive(pid int, start uint64) bool {
	fields := launch.StatFields(pid)
	return len(fields) >= 20 && fields[0] != "Z" && fields[0] != "X" && fields[19] == strconv.FormatUint(start, 10)
}

// ticksToMono turns clock ticks since boot into CLOCK_MONOTONIC ns. The ticks count time asleep
// too, which the monotonic clock leaves out.
func ticksToMono(ticks uint64) int64 {
	asleep := clock(unix.CLOCK_BOOTTIME) - monotonic()
	return int64(ticks)*(1e9/userHZ) - asleep
}

const userHZ = 100 // clock ticks a second, on every Linux we build for
