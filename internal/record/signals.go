package record

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the terminal sends to the whole process group the command has already got; what somebody
// sends to us alone we pass on. SIGTSTP is only caught: we stop when the command does (followStop),
// and go on when it goes on.
var (
	endings = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	others  = []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGPIPE}
)

// signals are those that are caught; the zero value catches none.
type signals struct {
	endings chan os.Signal // only while the command runs: after it they are meant for us
	others  chan os.Signal
}

// catchSignals must come before the command starts, so that no signal ends us and leaves it alone.
// A signal that was ignored when we were started (nohup) stays ignored, in us and in the command.
func catchSignals() signals {
	s := signals{make(chan os.Signal, 8), make(chan os.Signal, 32)}
	catch := func(into chan os.Signal, list []os.Signal) {
		for _, one := range list {
			if !signal.Ignored(one) {
				signal.Notify(into, one)
			}
		}
	}
	catch(s.endings, endings)
	catch(s.others, others)
	return s
}

// caught says whether signals are caught at all.
func (s signals) caught() bool { return s.others != nil }

// ended: the command has. What would end us does so again; a terminal that hangs up leaves us time to
// complete the recording.
func (s signals) ended() {
	if s.caught() {
		signal.Stop(s.endings)
	}
}

// stop gives all of them back.
func (s signals) stop() {
	if s.caught() {
		signal.Stop(s.endings)
		signal.Stop(s.others)
	}
}

// pass decides what becomes of a signal that reached us.
func (c *child) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGTSTP, syscall.SIGPIPE:
	case syscall.SIGINT, syscall.SIGQUIT:
		if !foreground() { // else the terminal sent it, to both of us
			c.signalUnlessSeen(s)
		}
	case syscall.SIGHUP:
		if !c.hadTerminal || hasTerminal() { // else the terminal hung up, on both of us
			c.signalUnlessSeen(s)
		}
	case syscall.SIGCONT:
		if procState(c.pid) == 'T' {
			_ = syscall.Kill(c.pid, s)
		}
	default:
		c.signalUnlessSeen(s)
	}
}

// signalUnlessSeen passes a signal on, unless the command is about to end: then the sender meant
// the whole group, and a second one would hit its cleaning up. Nothing tells the two apart while
// the command lives; then it gets a second one, which pending signals of the same kind merge with.
func (c *child) signalUnlessSeen(s syscall.Signal) {
	go func() {
		time.Sleep(20 * time.Millisecond)
		if state := procState(c.pid); state != 'Z' && state != 0 {
			_ = syscall.Kill(c.pid, s)
		}
	}()
}

// followStop stops us as the command was stopped, so that a shell sees one job. Only for the
// signals of job control, and only where there is a terminal: a command stopped by SIGSTOP, or
// where nobody can type fg, is watched while it stands still.
func followStop(s syscall.Signal) {
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		if hasTerminal() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}
}

// hasTerminal says whether the process has a controlling terminal that is still there.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// foreground says whether our process group is the one the terminal talks to.
func foreground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Die ends this process by a signal, as the command ended. It returns only where the signal cannot
// kill; then the caller ends with 128 + signal. No core is written: it would be ours.
func Die(s syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// Go's own handlers print a traceback for some signals, so the default is set behind its back.
	var standard [4]uint64 // struct kernel_sigaction: handler SIG_DFL, flags, restorer, mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&standard)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(50 * time.Millisecond)
}
