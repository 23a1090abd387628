package launch

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"hightide/internal/system"
)

// What the terminal sends to the whole process group the command has already got; what somebody
// sends to us alone we pass on. SIGTSTP does not stop us: we stop when the command does (FollowStop),
// and go on when it goes on.
var (
	ending   = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	stopping = []os.Signal{system.SIGTSTP}
	others   = []os.Signal{syscall.SIGHUP, system.SIGUSR1, system.SIGUSR2, syscall.SIGALRM, system.SIGCONT,
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
	case system.SIGCONT:
		if processState(c.PID) == 'T' {
			_ = system.Kill(c.PID, s)
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
	case state == 'T' && s == system.SIGTSTP: // it would stop once more when it goes on
	default:
		_ = system.Kill(c.PID, s)
	}
}

// sendingTakes is how long somebody who sends a signal to each of a group may take.
const sendingTakes = 20 * time.Millisecond

// fromTerminal says whether a signal is one that the terminal sends to the whole group, as far as we can tell.
func (c *Child) fromTerminal(s syscall.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, system.SIGTSTP:
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
	case system.SIGTSTP, system.SIGTTIN, system.SIGTTOU:
		return c.Ending != nil && hasTerminal()
	}
	return false
}

// FollowStop stops us, until somebody lets the job go on. A SIGTSTP that came to us as well, or is on its way, has
// done its work: passed on later it would stop the command again.
func (c *Child) FollowStop() {
	c.forgetStops()
	c.deciding.Wait()
	_ = system.Kill(os.Getpid(), system.SIGSTOP)
	c.forgetStops()
}

func (c *Child) forgetStops() {
	time.Sleep(sendingTakes)
	for len(c.Stopping) > 0 {
		<-c.Stopping
	}
	c.witness.forget(system.SIGTSTP)
}

// StopByTerminal stops this process as Ctrl-Z stops one that does not catch SIGTSTP: not where no shell could let it
// go on. It returns when the process goes on.
func StopByTerminal() { stopByTerminal(sendingTakes) }
