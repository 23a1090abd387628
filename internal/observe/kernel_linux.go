package observe

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changedAt is when a folder last changed, in ns of the wall clock. It is asked many times a second and never waits:
// as a raw system call it leaves the runtime's monitor asleep (see timer).
func changedAt(folder string) (int64, error) {
	path, err := unix.BytePtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var info unix.Stat_t
	here := unix.AT_FDCWD
	_, _, errno := syscall.RawSyscall6(unix.SYS_NEWFSTATAT, uintptr(here), uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&info)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return info.Mtim.Nano(), nil
}

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

// ownMaxRSS is the most that hightide itself has had resident, in bytes.
func ownMaxRSS() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss << 10
}

// scanRequest is struct pm_scan_arg of linux/fs.h.
type scanRequest struct {
	size, flags         uint64
	start, end, walkEnd uint64 // bytes
	vector, length      uint64
	most                uint64
	inverted            uint64 // categories that a page must not have, of those in mask
	mask, any, told     uint64
}

// pageRun is struct page_region.
type pageRun struct{ start, end, categories uint64 }

const (
	pagemapScan    = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	pageIsPresent  = 1 << 3
	pageIsZeroPage = 1 << 5
	runsAtOnce     = 512
)

// scanPages counts the resident pages of a range of page numbers; false where the kernel cannot. runs is room to ask in.
func scanPages(file *os.File, runs *[]pageRun, first, last uint64) (here int, ok bool) {
	const page = 4096
	if *runs == nil {
		*runs = make([]pageRun, runsAtOnce)
	}
	request := scanRequest{
		start: first * page, end: last * page, vector: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(*runs)))),
		length:   runsAtOnce,
		inverted: pageIsZeroPage, mask: pageIsPresent | pageIsZeroPage, told: pageIsPresent,
	}
	request.size = uint64(unsafe.Sizeof(request))
	for request.start < request.end {
		n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), pagemapScan, uintptr(unsafe.Pointer(&request)))
		runtime.KeepAlive(*runs)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0 || request.walkEnd <= request.start:
			return 0, false
		}
		for _, run := range (*runs)[:n] {
			here += int((run.end - run.start) / page)
		}
		request.start = request.walkEnd
	}
	return here, true
}
