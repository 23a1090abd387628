package observe

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
