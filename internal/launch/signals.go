package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the terminal sends to the whole process group the command has already got; what somebody
// sends to us alone we pass on. SIGTSTP does not stop us: we stop when the command does (FollowStop),
// and go on when it goes on.
var (
	ending   = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	stopping = []os.Signal{syscall.SIGTSTP}
	others   = []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT,
		syscall.SIGPIPE}
)

// catchSignals must come before the command starts, so that no signal ends us and leaves it alone.
// A signal that was ignored when we were started (nohup) stays ignored, in us and in the command.
func (c *Child) catchSignals() {
	c.Ending, c.Stopping, c.Others = make(chan os.Signal, 8), make(chan os.Signal, 8), make(chan os.Signal, 32)
	catch := func(into chan os.Signal, list []os.Signal) {
		for _, one := range list {
			if !signal.Ignored(one) {
				signal.Notify(into, one)
			}
		}
	}
	catch(c.Ending, ending)
	catch(c.Stopping, stopping)
	catch(c.Others, others)
}

// Pass decides what becomes of a signal that reached us.
func (c *Child) Pass(got os.Signal) {
	s, ok := got.(syscall.Signal)
	if !ok {
		return
	}
	switch s {
	case syscall.SIGPIPE:
	case syscall.SIGCONT:
		if processState(c.PID) == 'T' {
			_ = syscall.Kill(c.PID, s)
		}
	default:
		c.deciding.Go(func() { c.signalUnlessSeen(s) })
	}
}

// signalUnlessSeen passes a signal on, unless the command has got it too or is about to end: a second one would hit its
// cleaning up. It waits a little for a sender that has not come to all of the group yet.
func (c *Child) signalUnlessSeen(s syscall.Signal) {
	time.Sleep(sendingTakes)
	group, known := c.witness.saw(s)
	if group || !known && c.fromTerminal(s) {
		return
	}
	switch state := processState(c.PID); {
	case state == 'Z' || state == 0:
	case state == 'T' && s == syscall.SIGTSTP: // it would stop once more when it goes on
	default:
		_ = syscall.Kill(c.PID, s)
	}
}

// sendingTakes is how long somebody who sends a signal to each of a group may take.
const sendingTakes = 20 * time.Millisecond

// fromTerminal says whether a signal is one that the terminal sends to the whole group, as far as we can tell.
func (c *Child) fromTerminal(s syscall.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP:
		return foreground()
	case syscall.SIGHUP: // else it did not hang up
		return c.hadTerminal && !hasTerminal()
	}
	return false
}

// Follows says whether we stop as the command was stopped, so that a shell sees one job. Only for the
// signals of job control, and only where there is a terminal. A command stopped by SIGSTOP, or
// where nobody can type fg, is watched while it stands still.
func (c *Child) Follows(s syscall.Signal) bool {
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return c.Ending != nil && hasTerminal()
	}
	return false
}

// FollowStop stops us, until somebody lets the job go on. A SIGTSTP that came to us as well, or is on its way, has
// done its work: passed on later it would stop the command again.
func (c *Child) FollowStop() {
	c.forgetStops()
	c.deciding.Wait()
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	c.forgetStops()
}

func (c *Child) forgetStops() {
	time.Sleep(sendingTakes)
	for len(c.Stopping) > 0 {
		<-c.Stopping
	}
	c.witness.forget(syscall.SIGTSTP)
}

// processState is the state letter of a process, 0 where it is gone.
func processState(pid int) byte {
	fields := StatFields(pid)
	if len(fields) == 0 || fields[fieldState] == "" {
		return 0
	}
	return fields[fieldState][0]
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
	swapAction(s, sigaction{})
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(50 * time.Millisecond)
}

// StopByTerminal stops this process as Ctrl-Z stops one that does not catch SIGTSTP: not where no shell could let it
// go on. It returns when the process goes on.
func StopByTerminal() {
	before := swapAction(syscall.SIGTSTP, sigaction{})
	_ = syscall.Kill(os.Getpid(), syscall.SIGTSTP)
	time.Sleep(sendingTakes)
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
