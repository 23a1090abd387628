package observe

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"hightide/internal/launch"

	"golang.org/x/sys/unix"
)

// monotonic is CLOCK_MONOTONIC in ns, the clock of every recording.
func monotonic() int64 { return clock(unix.CLOCK_MONOTONIC) }

// wallClock is CLOCK_REALTIME in ns since 1970.
func wallClock() int64 { return clock(unix.CLOCK_REALTIME) }

// clock and changedAt are called many times a second and never wait: as raw system calls they leave the
// runtime's monitor asleep (see timer).
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

// timer wakes the loop. It is the kernel's timer, read as a file is: one thread wakes up, works and goes
// back to sleep. A time.Timer wakes the runtime's monitor beside it, which polls every 20 µs for as
// long as we are awake and starts a second thread. Together they cost more than a visit does.
type timer struct {
	C    chan struct{}
	file *os.File
	fd   uintptr
	soon *time.Timer // where there is no timerfd
}

func newTimer() *timer {
	a := &timer{C: make(chan struct{}, 1)}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		a.soon = time.AfterFunc(time.Hour, a.ring)
		return a
	}
	a.fd, a.file = uintptr(fd), os.NewFile(uintptr(fd), "timer")
	conn, err := a.file.SyscallConn()
	if err != nil {
		a.close()
		a.file, a.soon = nil, time.AfterFunc(time.Hour, a.ring)
		return a
	}
	go func() {
		_ = conn.Read(func(fd uintptr) bool { // until it is closed; called when it may be readable
			var times uint64
			if n, _, _ := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&times)), 8); n == 8 {
				a.ring()
			}
			return false
		})
	}()
	return a
}

func (a *timer) ring() {
	select {
	case a.C <- struct{}{}:
	default:
	}
}

// set rings once after a time, in place of what was set before.
func (a *timer) set(after time.Duration) {
	after = max(after, 1) // 0 would be never
	if a.file == nil {
		a.soon.Reset(after)
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

func (a *timer) close() {
	if a.soon != nil {
		a.soon.Stop()
	}
	if a.file != nil {
		_ = a.file.Close()
	}
}
